"""The named models."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from gtx.architectures import DESCRIBED
from gtx.kernel import KernelRidge
from gtx.models.egt import egt, tgt
from gtx.models.exphormer import exphormer
from gtx.models.gat import gaan, gat, gatv2
from gtx.models.gps import gps
from gtx.models.graph_transformer import GraphTransformer
from gtx.models.graphormer import graphormer
from gtx.models.grit import grit
from gtx.models.kernel import kernel
from gtx.models.mat import mat
from gtx.models.rmat import rmat
from gtx.models.sequence import MoleculeToSequence, molecule_to_sequence
from gtx.models.standard import standard
from gtx.models.tokengt import tokengt
from gtx.models.torchmd_net import torchmd_net
from gtx.models.transformer import transformer
from gtx.models.transformer_m import transformer_m


class Architecture(NamedTuple):
    """A named setting of the graph transformer.

    Attributes:
        make: makes the model: `make(out_channels, atom_sizes=..., bond_sizes=..., coordinates=..., ...)`.
        about: what it is, in a line.
        source: the paper.
    """

    make: Callable[..., GraphTransformer]
    about: str
    source: str

    @property
    def bonds(self) -> bool:
        """Whether it embeds bonds or pairs of atoms, and so can read features of bonds."""
        return DESCRIBED[self.make.__name__].bonds

    @property
    def coordinates(self) -> str:
        """One of "needed", "optional" and "none"."""
        return getattr(self.make, "coordinates", "optional")


_MAKERS = (
    standard,
    transformer,
    gat,
    gatv2,
    gaan,
    mat,
    rmat,
    graphormer,
    egt,
    grit,
    gps,
    exphormer,
    torchmd_net,
    tgt,
    transformer_m,
    tokengt,
)
ARCHITECTURES = {
    make.__name__: Architecture(make, DESCRIBED[make.__name__].about, DESCRIBED[make.__name__].source)
    for make in _MAKERS
}
"""What `gtx train --model` takes to train."""

SOLVED: dict[str, Callable[..., KernelRidge]] = {"kernel": kernel, "tanimoto": kernel}
"""What it takes beside them, solved in closed form; the second one is made without descriptors."""

WRITERS: dict[str, Callable[..., MoleculeToSequence]] = {"molecule_to_sequence": molecule_to_sequence}
"""What `gtx train --task sequence` trains, as `make(size, atom_sizes=..., bond_sizes=..., coordinates=..., ...)`."""
