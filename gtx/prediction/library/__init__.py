"""Many files of molecules, predicted shard by shard, by workers of several kinds."""

from __future__ import annotations

from gtx.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, {"predicting": ("predict_library",)})
