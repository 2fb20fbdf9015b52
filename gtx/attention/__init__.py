"""The parts of attention one can swap, and the sum over all pairs."""

from gtx.attention.additive import GAT, Concat, GATv2
from gtx.attention.blends import CutoffSiLU, GatedSoftmax, MoleculeBlend
from gtx.attention.complete import Attended, attend_block
from gtx.attention.dropout import dropout
from gtx.attention.edge_features import EdgeFeatures
from gtx.attention.edge_states import ClippedDot, VectorScore
from gtx.attention.gates import HeadGate
from gtx.attention.merging import ConcatHeads, MaxHeads, MeanHeads, Merge, WeightedHeads, WeightTensor
from gtx.attention.modulated import ModulatedDot
from gtx.attention.normalisers import Hardmax, Normaliser, Sigmoid, Softmax, Unnormalised
from gtx.attention.receivers import EdgeListReceivers, PairReceivers, Receivers
from gtx.attention.relative import RelativeDot
from gtx.attention.scores import General, ScaledDot, Score
from gtx.attention.sums import attend

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
