"""Reports of trainings: baseline models to compare with, figures, and the HTML page that shows the results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gtx.lazy import lazy_names

if TYPE_CHECKING:
    from gtx.report.context import AtomBondReport, DatasetCard, NumericReport, RunReport, count_atoms
    from gtx.report.page import write_atom_bond_report, write_report, write_run_report


# matplotlib and scikit-learn are slow to import
__getattr__, __dir__ = lazy_names(__name__)
__all__ = [
    "AtomBondReport",
    "DatasetCard",
    "NumericReport",
    "RunReport",
    "count_atoms",
    "write_atom_bond_report",
    "write_report",
    "write_run_report",
]
