"""Reports of trainings: baseline models to compare with, figures, and the HTML page that shows the results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gtx.lazy import lazy_names

if TYPE_CHECKING:
    from gtx.report.context import DatasetCard
    from gtx.report.page import write_run_report


# matplotlib and scikit-learn are slow to import
__getattr__, __dir__ = lazy_names(__name__)
__all__ = [
    "DatasetCard",
    "write_run_report",
]
