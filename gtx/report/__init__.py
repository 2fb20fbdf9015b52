"""Reports: baselines to compare with, pictures, and one page that holds them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gtx.lazy import lazy_names

if TYPE_CHECKING:
    from gtx.report.context import DataCard, LevelReport, Report, RunReport, SequenceReport, count_atoms
    from gtx.report.page import write, write_level_report, write_report, write_sequence_report


# matplotlib and scikit-learn are slow to import
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "context": (
            "DataCard",
            "LevelReport",
            "Report",
            "RunReport",
            "SequenceReport",
            "count_atoms",
        ),
        "page": (
            "write_report",
            "write",
            "write_level_report",
            "write_sequence_report",
        ),
    },
)
__all__ = [
    "DataCard",
    "LevelReport",
    "Report",
    "RunReport",
    "SequenceReport",
    "count_atoms",
    "write",
    "write_level_report",
    "write_report",
    "write_sequence_report",
]
