"""Prediction for molecules: the model file, the predictor, intervals."""

from __future__ import annotations

from gtx.prediction.folders import DataFramePredictor, FolderOutcome, predict_folder
from gtx.prediction.model_file import ModelFileHeader, save_model
from gtx.prediction.predictor import Predictor, load_predictor
from gtx.prediction.streaming import RowSelection, TableOutcome, predict_table

__all__ = [
    "DataFramePredictor",
    "FolderOutcome",
    "ModelFileHeader",
    "Predictor",
    "RowSelection",
    "TableOutcome",
    "load_predictor",
    "predict_folder",
    "predict_table",
    "save_model",
]
