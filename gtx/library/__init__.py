"""Annex: folders of tables, predicted shard by shard, read once to stores on disk, and trained on; and data frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gtx.lazy import lazy_names

if TYPE_CHECKING:
    from gtx.library.frames import FramePredictor
    from gtx.library.predicting import predict_library
    from gtx.library.preparing import is_store, prepare, store_marks
    from gtx.library.stored import as_prepared, load_stored

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "predicting": ("predict_library",),
        "preparing": ("is_store", "prepare", "store_marks"),
        "stored": ("as_prepared", "load_stored"),
        "frames": ("FramePredictor",),
    },
)

__all__ = ["FramePredictor", "as_prepared", "is_store", "load_stored", "predict_library", "prepare", "store_marks"]
