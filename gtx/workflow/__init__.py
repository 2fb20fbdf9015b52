"""Whole runs: training, scoring and reporting of a model from a table, benchmarks and tuning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gtx.lazy import lazy_names

if TYPE_CHECKING:
    from gtx.workflow.blending import blend_with_kernel
    from gtx.workflow.fine_tuning import PretrainedModel, adapt_pretrained_model
    from gtx.workflow.pipeline import RunResult, train_model
    from gtx.workflow.specs import (
        add_learned_arguments,
        check_model_settings,
        check_training_rows_option,
        make_model_spec,
    )


# the command line must not wait for any of it
__getattr__, __dir__ = lazy_names(__name__)
__all__ = [
    "PretrainedModel",
    "RunResult",
    "adapt_pretrained_model",
    "add_learned_arguments",
    "blend_with_kernel",
    "check_model_settings",
    "check_training_rows_option",
    "make_model_spec",
    "train_model",
]
