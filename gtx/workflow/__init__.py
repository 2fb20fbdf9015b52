"""The main job from end to end: a table to a trained, scored and reported model."""

from __future__ import annotations

from gtx.lazy import lazy_names

# the command line must not wait for any of it
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "mixing": ("mixed",),
        "pipeline": ("Outcome", "train"),
        "adapting": ("adapt",),
        "further": ("Further",),
        "specs": ("check_model", "check_rows", "learned_spec", "model_spec"),
    },
)
