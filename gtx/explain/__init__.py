"""Explanations of a prediction: attention (with a test) and Shapley values, as numbers and pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gtx.lazy import lazy_names

if TYPE_CHECKING:
    from gtx.explain.attribution import Attribution, ShapleyValues, compute_attribution, compute_shapley_values
    from gtx.explain.explanation import Explanation, explain_prediction
    from gtx.explain.findings import AttentionAnalysis
    from gtx.explain.relevance import (
        AtomRemovalEffect,
        attention_rollout,
        average_attention_by_distance,
        gradient_weighted_attention,
        measure_faithfulness,
        score_atoms_by_attention,
        to_dense_attention,
    )


# the command line reads names without torch
__getattr__, __dir__ = lazy_names(__name__)
__all__ = [
    "AtomRemovalEffect",
    "AttentionAnalysis",
    "Attribution",
    "Explanation",
    "ShapleyValues",
    "attention_rollout",
    "average_attention_by_distance",
    "compute_attribution",
    "compute_shapley_values",
    "explain_prediction",
    "gradient_weighted_attention",
    "measure_faithfulness",
    "score_atoms_by_attention",
    "to_dense_attention",
]
