"""Workflow: from a table to a trained, scored and reported model, with benchmark and tuning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gtx.lazy import lazy_names

if TYPE_CHECKING:
    from gtx.workflow.blending import blend
    from gtx.workflow.fine_tuning import FineTuning, adapt
    from gtx.workflow.pipeline import Outcome, train
    from gtx.workflow.specs import check_model, check_rows, learned_spec, model_spec


# the command line must not wait for any of it
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "blending": ("blend",),
        "pipeline": (
            "Outcome",
            "train",
        ),
        "fine_tuning": (
            "adapt",
            "FineTuning",
        ),
        "specs": (
            "check_model",
            "check_rows",
            "learned_spec",
            "model_spec",
        ),
    },
)
__all__ = [
    "FineTuning",
    "Outcome",
    "adapt",
    "blend",
    "check_model",
    "check_rows",
    "learned_spec",
    "model_spec",
    "train",
]
