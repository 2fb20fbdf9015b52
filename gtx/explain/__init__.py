"""Pictures of what a trained model computes for one molecule, and a check of how much they say."""

from __future__ import annotations

from gtx.lazy import lazy_names

# the command line reads names without torch
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "explanation": ("explain", "Explanation", "check_name"),
        "subject": ("explained_names",),
        "account": ("Account",),
        "attribution": ("attribute", "Attribution"),
        "rationales": ("rationale", "Rationale"),
        "shapley_values": ("shapley", "Shapley"),
        "relevance": ("rollout", "gradient_weighted", "per_atom"),
        "distances": ("bond_distances", "by_distance"),
        "removal": ("faithfulness", "Removal"),
        "matrices": ("dense",),
    },
)
