"""The architectures there are, as `gtx models` lists them: without torch, whose import alone takes seconds.

`gtx.models.ARCHITECTURES` has the functions that make them.
"""

from __future__ import annotations

from typing import NamedTuple


class Described(NamedTuple):
    """A named setting of the graph transformer.

    Attributes:
        about: description of the model, in a line.
        source: citation of the paper.
        coordinates: one of "needed", "optional" and "none".
        weights: number of weights with default settings, for one target and the default featuriser.
        bonds: whether it embeds bonds or pairs of atoms, and so can read features of bonds.
    """

    about: str
    source: str
    coordinates: str
    weights: int
    bonds: bool = True


DESCRIBED = {
    "standard": Described(
        "the default: full attention beside bond message passing, pairs in score and value; substructures counted",
        "gtx",
        "optional",
        231_073,
    ),
    "transformer": Described(
        "attention over all pairs by content alone", "Vaswani et al. 2017, arXiv:1706.03762", "none", 232_641, False
    ),
    "gat": Described(
        "additive attention over the bonds", "Veličković et al. 2018, arXiv:1710.10903", "none", 132_865, False
    ),
    "gatv2": Described(
        "as gat, the ranking of senders up to the receiver; bond types",
        "Brody et al. 2022, arXiv:2105.14491",
        "none",
        158_273,
    ),
    "gaan": Described(
        "dot products over the bonds, with gated heads", "Zhang et al. 2018, arXiv:1803.07294", "none", 188_449, False
    ),
    "mat": Described(
        "attention blended with distances and bonds", "Maziarka et al. 2020, arXiv:2002.08264", "needed", 124_417, False
    ),
    "rmat": Described(
        "relative embeddings of each pair in key and value",
        "Maziarka et al. 2021, arXiv:2110.05841",
        "needed",
        177_602,
    ),
    "graphormer": Described(
        "degrees, path distances and paths as biases; a virtual node",
        "Ying et al. 2021, arXiv:2106.05234",
        "none",
        125_561,
    ),
    "egt": Described(
        "gates and edge states updated in every layer", "Hussain et al. 2022, arXiv:2108.03348", "none", 184_225
    ),
    "grit": Described(
        "vectors as scores and edge states, pair random walks", "Ma et al. 2023, arXiv:2305.17589", "none", 218_305
    ),
    "gps": Described(
        "message passing and attention in parallel", "Rampášek et al. 2022, arXiv:2205.12454", "none", 210_241
    ),
    "exphormer": Described(
        "gps with attention over bonds, a random regular graph and a virtual node",
        "Shirzad et al. 2023, arXiv:2303.06147",
        "none",
        223_713,
    ),
    "torchmd_net": Described(
        "equivariant: vectors in space beside channels; distances in score and value",
        "Thölke & De Fabritiis 2022, arXiv:2202.02541",
        "needed",
        254_977,
        False,
    ),
    "tgt": Described(
        "egt whose edge states attend to each other over triplets of atoms",
        "Hussain et al. 2024, arXiv:2402.04538",
        "optional",
        211_249,
    ),
    "transformer_m": Described(
        "one model for graphs and for molecules in space: graphormer and a channel of distances",
        "Luo et al. 2022, arXiv:2210.01765",
        "optional",
        131_281,
    ),
    "tokengt": Described(
        "atoms and bonds as tokens of a plain Transformer", "Kim et al. 2022, arXiv:2207.02505", "none", 126_057
    ),
}
"""Models that `gtx train --model` trains by gradient descent."""

CLOSED_FORM_MODELS = {
    "kernel": Described(
        "no network: ridge regression with a kernel of circular substructures and descriptors, in closed form",
        "Griffiths et al. 2023, arXiv:2212.04450",
        "none",
        0,
    ),
    "tanimoto": Described(
        "the same of substructures alone: the Tanimoto kernel of their counts",
        "Ralaivola et al. 2005",
        "none",
        0,
    ),
}
"""Models that `gtx train --model` solves in closed form, without gradient descent."""
