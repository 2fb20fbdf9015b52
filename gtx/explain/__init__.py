"""Explanations of a prediction: attention (with a test), Shapley values and rationales, as numbers and pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gtx.lazy import lazy_names

if TYPE_CHECKING:
    from gtx.explain.attribution import Attribution, ShapleyValues, attribute_prediction, compute_shapley_values
    from gtx.explain.explanation import Explanation, check_figure_name, explain_prediction
    from gtx.explain.findings import AttentionAnalysis
    from gtx.explain.rationales import Rationale, find_rationale
    from gtx.explain.relevance import (
        RemovalEffect,
        attention_rollout,
        average_attention_by_distance,
        gradient_weighted_attention,
        measure_faithfulness,
        score_atoms_by_attention,
        shortest_path_lengths,
        to_dense_attention,
    )
    from gtx.explain.subject import list_explainable_outputs


# the command line reads names without torch
__getattr__, __dir__ = lazy_names(__name__)
__all__ = [
    "AttentionAnalysis",
    "Attribution",
    "Explanation",
    "Rationale",
    "RemovalEffect",
    "ShapleyValues",
    "attention_rollout",
    "attribute_prediction",
    "average_attention_by_distance",
    "check_figure_name",
    "compute_shapley_values",
    "explain_prediction",
    "find_rationale",
    "gradient_weighted_attention",
    "list_explainable_outputs",
    "measure_faithfulness",
    "score_atoms_by_attention",
    "shortest_path_lengths",
    "to_dense_attention",
]
