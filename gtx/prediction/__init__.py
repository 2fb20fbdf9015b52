"""Prediction for molecules: the model file, the predictor, intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gtx.lazy import lazy_names

if TYPE_CHECKING:
    from gtx.prediction.extended import PredictorWithNeighbours, TautomerAveragingPredictor
    from gtx.prediction.foundation import (
        ASSAY_FOUNDATION_MODEL,
        FOUNDATION_MODEL,
        FOUNDATION_MODELS,
        describe_pretraining_overlap,
        read_model_card,
        resolve_model_path,
    )
    from gtx.prediction.loading import load_predictor
    from gtx.prediction.model_file import ModelHeader, load_networks, package_versions, save_model
    from gtx.prediction.predictor import Predictor
    from gtx.prediction.streaming import RowFilter, predict_table


# the command line reads names without torch
__getattr__, __dir__ = lazy_names(__name__)
__all__ = [
    "ASSAY_FOUNDATION_MODEL",
    "FOUNDATION_MODEL",
    "FOUNDATION_MODELS",
    "ModelHeader",
    "Predictor",
    "PredictorWithNeighbours",
    "RowFilter",
    "TautomerAveragingPredictor",
    "describe_pretraining_overlap",
    "load_networks",
    "load_predictor",
    "package_versions",
    "predict_table",
    "read_model_card",
    "resolve_model_path",
    "save_model",
]
