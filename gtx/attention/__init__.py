"""Interchangeable parts of attention layers, such as scores and normalisers, and attention over all pairs of atoms."""

from gtx.attention.complete import (
    AttentionOutput,
    HeadMerge,
    LinearHeadMerge,
    MaxOverHeads,
    WeightedSumOverHeads,
    attend_block,
)
from gtx.attention.edge_states import ClippedDot, GRITScore, ProjectedEdgeFeatures
from gtx.attention.normalisers import (
    CutoffSiLU,
    DistanceAdjacencyBlend,
    GatedSoftmax,
    Hardmax,
    HeadGate,
    NoNormalisation,
    Normaliser,
    SigmoidGate,
    Softmax,
)
from gtx.attention.receivers import CompleteGraphAggregator, EdgeListAggregator, ReceiverAggregator
from gtx.attention.scores import (
    BilinearScore,
    ConcatScore,
    GATScore,
    GATv2Score,
    ModulatedDot,
    RelativeDot,
    ScaledDot,
    Score,
)
from gtx.attention.sums import attend
from gtx.elementwise import dropout

__all__ = [
    "AttentionOutput",
    "BilinearScore",
    "ClippedDot",
    "CompleteGraphAggregator",
    "ConcatScore",
    "CutoffSiLU",
    "DistanceAdjacencyBlend",
    "EdgeListAggregator",
    "GATScore",
    "GATv2Score",
    "GRITScore",
    "GatedSoftmax",
    "Hardmax",
    "HeadGate",
    "HeadMerge",
    "LinearHeadMerge",
    "MaxOverHeads",
    "ModulatedDot",
    "NoNormalisation",
    "Normaliser",
    "ProjectedEdgeFeatures",
    "ReceiverAggregator",
    "RelativeDot",
    "ScaledDot",
    "Score",
    "SigmoidGate",
    "Softmax",
    "WeightedSumOverHeads",
    "attend",
    "attend_block",
    "dropout",
]
