"""The parts of attention one can swap, and the sum over all pairs."""

from gtx.attention.complete import (
    Attended,
    ConcatHeads,
    MaxHeads,
    MeanHeads,
    Merge,
    WeightedHeads,
    WeightTensor,
    attend_block,
)
from gtx.attention.edge_states import ClippedDot, EdgeFeatures, VectorScore
from gtx.attention.normalisers import (
    CutoffSiLU,
    GatedSoftmax,
    Hardmax,
    HeadGate,
    MoleculeBlend,
    Normaliser,
    Sigmoid,
    Softmax,
    Unnormalised,
)
from gtx.attention.receivers import EdgeListReceivers, PairReceivers, Receivers
from gtx.attention.scores import GAT, Concat, GATv2, General, ModulatedDot, RelativeDot, ScaledDot, Score
from gtx.attention.sums import attend
from gtx.native.elementwise import dropout

__all__ = [
    "GAT",
    "Attended",
    "ClippedDot",
    "Concat",
    "ConcatHeads",
    "CutoffSiLU",
    "EdgeFeatures",
    "EdgeListReceivers",
    "GATv2",
    "GatedSoftmax",
    "General",
    "Hardmax",
    "HeadGate",
    "MaxHeads",
    "MeanHeads",
    "Merge",
    "ModulatedDot",
    "MoleculeBlend",
    "Normaliser",
    "PairReceivers",
    "Receivers",
    "RelativeDot",
    "ScaledDot",
    "Score",
    "Sigmoid",
    "Softmax",
    "Unnormalised",
    "VectorScore",
    "WeightTensor",
    "WeightedHeads",
    "attend",
    "attend_block",
    "dropout",
]
