"""Reports: baselines to compare with, pictures, and one page that holds them."""

from __future__ import annotations

from importlib import import_module

_LAZY = {
    "DataCard": "context",
    "Report": "context",
    "baselines": "baseline",
    "count_atoms": "context",
    "predict_baselines": "baseline",
    "write_report": "page",
}

__all__ = list(_LAZY)


def __getattr__(name: str) -> object:
    # matplotlib and scikit-learn are slow to import
    if name in _LAZY:
        return getattr(import_module(f"gtx.report.{_LAZY[name]}"), name)
    raise AttributeError(f"module 'gtx.report' has no attribute {name!r}")
