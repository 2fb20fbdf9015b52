"""The main job from end to end: a table to a trained, scored and reported model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gtx.lazy import lazy_names

if TYPE_CHECKING:
    from gtx.workflow.fine_tuning import Further, adapt
    from gtx.workflow.mixing import mixed
    from gtx.workflow.pipeline import Outcome, train
    from gtx.workflow.specs import check_model, check_rows, learned_spec, model_spec


# the command line must not wait for any of it
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "mixing": ("mixed",),
        "pipeline": (
            "Outcome",
            "train",
        ),
        "fine_tuning": (
            "adapt",
            "Further",
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
    "Further",
    "Outcome",
    "adapt",
    "check_model",
    "check_rows",
    "learned_spec",
    "mixed",
    "model_spec",
    "train",
]
