"""Whole runs: training, scoring and reporting of a model from a table, benchmarks and tuning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gtx.lazy import lazy_names

if TYPE_CHECKING:
    from gtx.workflow.fine_tuning import PretrainedModel
    from gtx.workflow.outputs import RunResult
    from gtx.workflow.pipeline import train_model
    from gtx.workflow.run import Run


# the command line must not wait for any of it
__getattr__, __dir__ = lazy_names(__name__)
__all__ = [
    "PretrainedModel",
    "Run",
    "RunResult",
    "train_model",
]
