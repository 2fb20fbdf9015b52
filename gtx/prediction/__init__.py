"""From molecules to predictions: the model file, the predictor, intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gtx.lazy import lazy_names

if TYPE_CHECKING:
    from gtx.prediction.foundation import ASSAYS, FOUNDATION, FOUNDATIONS, describe_seen, foundation_card, model_path
    from gtx.prediction.loading import load
    from gtx.prediction.model_file import ModelHeader, library_versions, load_model, save_model
    from gtx.prediction.neighbour_columns import WithNeighbours
    from gtx.prediction.predictor import Predictor
    from gtx.prediction.streaming import Selection, predict_table


# the command line reads names without torch
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "model_file": (
            "ModelHeader",
            "load_model",
            "save_model",
            "library_versions",
        ),
        "loading": ("load",),
        "neighbour_columns": ("WithNeighbours",),
        "foundation": (
            "ASSAYS",
            "FOUNDATION",
            "FOUNDATIONS",
            "foundation_card",
            "model_path",
            "describe_seen",
        ),
        "predictor": ("Predictor",),
        "streaming": (
            "predict_table",
            "Selection",
        ),
    },
)
__all__ = [
    "ASSAYS",
    "FOUNDATION",
    "FOUNDATIONS",
    "ModelHeader",
    "Predictor",
    "Selection",
    "WithNeighbours",
    "describe_seen",
    "foundation_card",
    "library_versions",
    "load",
    "load_model",
    "model_path",
    "predict_table",
    "save_model",
]
