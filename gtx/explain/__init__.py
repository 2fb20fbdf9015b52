"""Explanations of a prediction: attention (with a test) and Shapley values, as numbers and pictures."""

from __future__ import annotations

from gtx.explain.attribution import Attribution, compute_attribution
from gtx.explain.explanation import Explanation, explain_prediction
from gtx.explain.relevance import average_attention_by_distance

__all__ = [
    "Attribution",
    "Explanation",
    "average_attention_by_distance",
    "compute_attribution",
    "explain_prediction",
]
