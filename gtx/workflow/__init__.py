"""The main job from end to end: a table to a trained, scored and reported model."""

from __future__ import annotations

from importlib import import_module

_LAZY = {
    "DataSettings": "dataset",
    "Dataset": "dataset",
    "Outcome": "pipeline",
    "model_spec": "pipeline",
    "train": "pipeline",
}


def __getattr__(name: str) -> object:
    if name in _LAZY:
        return getattr(import_module(f"gtx.workflow.{_LAZY[name]}"), name)
    raise AttributeError(f"module 'gtx.workflow' has no attribute {name!r}")
