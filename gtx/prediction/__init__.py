"""From molecules to predictions: the model file, the predictor, intervals."""

from __future__ import annotations

from importlib import import_module

_LAZY = {
    "ModelHeader": "model_file",
    "Predictor": "predictor",
    "Predictions": "predictor",
    "conformal_half_width": "conformal",
    "library_versions": "versions",
    "load": "predictor",
    "load_model": "model_file",
    "predict_table": "streaming",
    "save_model": "model_file",
}

__all__ = list(_LAZY)


def __getattr__(name: str) -> object:
    if name in _LAZY:
        return getattr(import_module(f"gtx.prediction.{_LAZY[name]}"), name)
    raise AttributeError(f"module 'gtx.prediction' has no attribute {name!r}")
