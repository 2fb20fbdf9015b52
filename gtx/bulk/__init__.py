"""Annex: prediction of folders of tables and data frames, shard by shard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gtx.lazy import lazy_names

if TYPE_CHECKING:
    from gtx.bulk.frames import DataFramePredictor
    from gtx.bulk.predicting import predict_folder_of_tables

__getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "DataFramePredictor",
    "predict_folder_of_tables",
]
