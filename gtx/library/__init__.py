"""Annex: prediction of folders of tables and data frames, shard by shard, and stores on disk to train from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gtx.lazy import lazy_names

if TYPE_CHECKING:
    from gtx.library.frames import DataFramePredictor
    from gtx.library.predicting import predict_folder
    from gtx.library.preparing import compute_store_checksum, is_prepared_store, prepare_store
    from gtx.library.stored import load_prepared_dataset, use_prepared_featuriser

__getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "DataFramePredictor",
    "compute_store_checksum",
    "is_prepared_store",
    "load_prepared_dataset",
    "predict_folder",
    "prepare_store",
    "use_prepared_featuriser",
]
