"""What there is to choose from, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from gtx.models.egt import egt
from gtx.models.gat import gaan, gat, gatv2
from gtx.models.gps import gps
from gtx.models.graph_transformer import GraphTransformer
from gtx.models.graphormer import graphormer
from gtx.models.grit import grit
from gtx.models.mat import mat
from gtx.models.rmat import rmat
from gtx.models.sequence import MoleculeToSequence, molecule_to_sequence
from gtx.models.standard import standard
from gtx.models.transformer import transformer


class Architecture(NamedTuple):
    """A named setting of the graph transformer, as `gtx models` lists it.

    Attributes:
        make: makes the model: `make(out_channels, atom_sizes=..., bond_sizes=..., coordinates=..., ...)`.
        about: what it is, in a line.
        source: the paper.
    """

    make: Callable[..., GraphTransformer]
    about: str
    source: str

    @property
    def coordinates(self) -> str:
        """One of "needed", "optional" and "none"."""
        return getattr(self.make, "coordinates", "optional")


ARCHITECTURES: dict[str, Architecture] = {
    "standard": Architecture(
        standard,
        "the default: full attention beside bond message passing, pairs in score and value; substructures counted",
        "gtx",
    ),
    "transformer": Architecture(
        transformer, "attention over all pairs by content alone", "Vaswani et al. 2017, arXiv:1706.03762"
    ),
    "gat": Architecture(gat, "additive attention over the bonds", "Veličković et al. 2018, arXiv:1710.10903"),
    "gatv2": Architecture(
        gatv2,
        "as gat, the ranking of senders up to the receiver; bond types",
        "Brody et al. 2022, arXiv:2105.14491",
    ),
    "gaan": Architecture(gaan, "dot products over the bonds, with gated heads", "Zhang et al. 2018, arXiv:1803.07294"),
    "mat": Architecture(mat, "attention blended with distances and bonds", "Maziarka et al. 2020, arXiv:2002.08264"),
    "rmat": Architecture(
        rmat, "relative embeddings of each pair in key and value", "Maziarka et al. 2021, arXiv:2110.05841"
    ),
    "graphormer": Architecture(
        graphormer, "degrees, path distances and paths as biases; a virtual node", "Ying et al. 2021, arXiv:2106.05234"
    ),
    "egt": Architecture(egt, "gates and edge states updated in every layer", "Hussain et al. 2022, arXiv:2108.03348"),
    "grit": Architecture(
        grit, "vectors as scores and edge states, pair random walks", "Ma et al. 2023, arXiv:2305.17589"
    ),
    "gps": Architecture(gps, "message passing and attention in parallel", "Rampášek et al. 2022, arXiv:2205.12454"),
}
"""What `gtx train --model` takes."""

WRITERS: dict[str, Callable[..., MoleculeToSequence]] = {"molecule_to_sequence": molecule_to_sequence}
"""What `gtx train --task sequence` trains, as `make(size, atom_sizes=..., bond_sizes=..., coordinates=..., ...)`."""
