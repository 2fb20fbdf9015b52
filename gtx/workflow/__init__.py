"""Whole runs: training, scoring and reporting of a model from a table, benchmarks and tuning."""

from __future__ import annotations

from gtx.workflow.fine_tuning import PretrainedModel
from gtx.workflow.outputs import RunResult
from gtx.workflow.run import Run, train_model

__all__ = [
    "PretrainedModel",
    "Run",
    "RunResult",
    "train_model",
]
