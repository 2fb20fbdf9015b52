"""Modules of attention layers, such as scores and normalisers, and attention over all pairs of atoms."""

from gtx.attention.complete import (
    AttentionOutput,
    HeadMerge,
    LearnedSumOverHeads,
    LinearHeadMerge,
    MaxOverHeads,
    attend_receiver_block,
)
from gtx.attention.edge_states import ClippedDotScore, GRITScore, ProjectedEdgeFeatures
from gtx.attention.normalisers import (
    DistanceAdjacencyBlend,
    GatedSoftmax,
    Hardmax,
    HeadGate,
    NoNormalisation,
    Normaliser,
    SigmoidGate,
    SiLUWithCutoff,
    Softmax,
)
from gtx.attention.receivers import CompleteGraphAggregator, EdgeListAggregator, ReceiverAggregator
from gtx.attention.scores import (
    AdditiveScore,
    BilinearScore,
    GATScore,
    GATv2Score,
    ModulatedDotScore,
    RelativeDotScore,
    ScaledDotScore,
    Score,
)
from gtx.attention.sums import attend
from gtx.elementwise import dropout

__all__ = [
    "AdditiveScore",
    "AttentionOutput",
    "BilinearScore",
    "ClippedDotScore",
    "CompleteGraphAggregator",
    "DistanceAdjacencyBlend",
    "EdgeListAggregator",
    "GATScore",
    "GATv2Score",
    "GRITScore",
    "GatedSoftmax",
    "Hardmax",
    "HeadGate",
    "HeadMerge",
    "LearnedSumOverHeads",
    "LinearHeadMerge",
    "MaxOverHeads",
    "ModulatedDotScore",
    "NoNormalisation",
    "Normaliser",
    "ProjectedEdgeFeatures",
    "ReceiverAggregator",
    "RelativeDotScore",
    "ScaledDotScore",
    "Score",
    "SiLUWithCutoff",
    "SigmoidGate",
    "Softmax",
    "attend",
    "attend_receiver_block",
    "dropout",
]
