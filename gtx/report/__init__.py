"""Reports of trainings: baseline models to compare with, figures, and the HTML page that shows the results."""

from __future__ import annotations

from gtx.report.context import DatasetCard
from gtx.report.page import write_run_report

__all__ = [
    "DatasetCard",
    "write_run_report",
]
