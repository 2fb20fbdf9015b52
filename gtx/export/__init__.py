"""Annex: export of a model to a file that runs without gtx's network code: ONNX, or a program of `torch.export`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gtx.lazy import lazy_names

if TYPE_CHECKING:
    from gtx.export.exporting import export_model
    from gtx.export.running import ExportedModel

__getattr__, __dir__ = lazy_names(__name__)

__all__ = ["ExportedModel", "export_model"]
