"""Reports: baselines to compare with, pictures, and one page that holds them."""

from __future__ import annotations

from gtx.lazy import lazy_names

# matplotlib and scikit-learn are slow to import
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "context": ("DataCard", "PartReport", "Report", "RunReport", "SequenceReport", "count_atoms"),
        "page": ("write_report",),
        "parts_page": ("write_part_report",),
        "sequence_page": ("write_sequence_report",),
    },
)
