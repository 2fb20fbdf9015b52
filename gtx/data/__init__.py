"""Molecules in bulk: tables, row ledger, targets, splits, named data sets, store and batches."""

from __future__ import annotations

from importlib import import_module

_MODULES = {
    "tables": ("Row", "Table", "column_index", "open_table"),
    "table_writer": ("TableWriter", "fresh_name"),
    "ledger": ("Ledger", "describe", "printable"),
    "targets": ("Duplicates", "conflicting_duplicates", "infer_task", "parse_targets", "read_targets"),
    "splits": (
        "SPLITS",
        "Split",
        "column_split",
        "leakage",
        "random_split",
        "read_split",
        "scaffold_split",
        "write_split",
    ),
    "named_sets": ("SETS", "NamedSet", "load_set"),
    "featurising": ("Featurised", "default_workers", "featurise", "featurise_stream"),
    "store": ("MoleculeStore",),
    "batches": ("PairBudgetSampler",),
}
_LAZY = {name: module for module, names in _MODULES.items() for name in names}  # tables need no torch


def __getattr__(name: str) -> object:
    if name in _LAZY:
        return getattr(import_module(f"gtx.data.{_LAZY[name]}"), name)
    raise AttributeError(f"module 'gtx.data' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_LAZY])
