"""Reports of trainings: baseline models to compare with, figures, and the HTML page that shows the results."""

from __future__ import annotations

from gtx.report.page import write_run_report

__all__ = [
    "write_run_report",
]
