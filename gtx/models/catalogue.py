"""The named models."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from gtx.architectures import DESCRIBED
from gtx.kernel import KernelRidge
from gtx.models.all_pairs import egt, gps, graphormer, grit, tgt, transformer
from gtx.models.graph_transformer import GraphTransformer
from gtx.models.in_space import mat, rmat, torchmd_net, transformer_m
from gtx.models.kernel import kernel
from gtx.models.sequence import MoleculeToSequence, molecule_to_sequence
from gtx.models.sparse import exphormer, gaan, gat, gatv2, tokengt
from gtx.models.standard import standard


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
        """True if it embeds bonds or pairs of atoms, and so can read features of bonds."""
        return DESCRIBED[self.make.__name__].bonds

    @property
    def coordinates(self) -> str:
        """Use of coordinates: "needed", "optional" or "none"."""
        return DESCRIBED[self.make.__name__].coordinates


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
"""Networks that `gtx train --model` can train."""

CLOSED_FORM: dict[str, Callable[..., KernelRidge]] = {"kernel": kernel, "tanimoto": kernel}
"""Models that `--model` takes beside them, solved in closed form; the second one has no descriptors."""

WRITERS: dict[str, Callable[..., MoleculeToSequence]] = {"molecule_to_sequence": molecule_to_sequence}
"""Models of `gtx train --task sequence`, as `make(size, atom_sizes=..., bond_sizes=..., coordinates=..., ...)`."""
