"""Modules of attention layers, such as scores and normalisers, and attention over all pairs of atoms."""

from gtx.attention.complete import HeadMerge, LearnedSumOverHeads, LinearHeadMerge, MaxOverHeads
from gtx.attention.definition import AttentionResult, AttentionRule, attend_edges
from gtx.attention.normalisers import (
    DistanceAdjacencyBlend,
    GatedSoftmax,
    Hardmax,
    HeadGate,
    NoNormalisation,
    Normaliser,
    Sigmoid,
    SiLUWithCutoff,
    Softmax,
)
from gtx.attention.scores import (
    AdditiveScore,
    BilinearScore,
    ClippedDotScore,
    EdgeModulatedDotScore,
    GATScore,
    GATv2Score,
    GRITScore,
    RMATScore,
    ScaledDotScore,
    Score,
)
from gtx.attention.sums import attend

__all__ = [
    "AdditiveScore",
    "AttentionResult",
    "AttentionRule",
    "BilinearScore",
    "ClippedDotScore",
    "DistanceAdjacencyBlend",
    "EdgeModulatedDotScore",
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
    "NoNormalisation",
    "Normaliser",
    "RMATScore",
    "ScaledDotScore",
    "Score",
    "SiLUWithCutoff",
    "Sigmoid",
    "Softmax",
    "attend",
    "attend_edges",
]
