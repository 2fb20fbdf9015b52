"""Explanations of a prediction: attention with a test of it, Shapley values, rationales; in numbers and pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gtx.lazy import lazy_names

if TYPE_CHECKING:
    from gtx.explain.attribution import Attribution, Shapley, attribute, shapley
    from gtx.explain.explanation import Explanation, check_name, explain
    from gtx.explain.findings import Account
    from gtx.explain.rationales import Rationale, rationale
    from gtx.explain.relevance import (
        Removal,
        bond_distances,
        by_distance,
        dense,
        faithfulness,
        gradient_weighted,
        per_atom,
        rollout,
    )
    from gtx.explain.subject import explained_names


# the command line reads names without torch
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "explanation": ("explain", "Explanation", "check_name"),
        "subject": ("explained_names",),
        "findings": ("Account",),
        "attribution": ("attribute", "Attribution", "shapley", "Shapley"),
        "rationales": ("rationale", "Rationale"),
        "relevance": (
            "rollout",
            "gradient_weighted",
            "per_atom",
            "bond_distances",
            "by_distance",
            "faithfulness",
            "Removal",
            "dense",
        ),
    },
)
__all__ = [
    "Account",
    "Attribution",
    "Explanation",
    "Rationale",
    "Removal",
    "Shapley",
    "attribute",
    "bond_distances",
    "by_distance",
    "check_name",
    "dense",
    "explain",
    "explained_names",
    "faithfulness",
    "gradient_weighted",
    "per_atom",
    "rationale",
    "rollout",
    "shapley",
]
