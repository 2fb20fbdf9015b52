"""Molecules in bulk: tables, row ledger, store, batches, splits, named data sets."""

from __future__ import annotations

from importlib import import_module

_LAZY = {
    "MoleculeStore": "store",
    "PairBudgetSampler": "batches",
    "Featurised": "featurising",
    "featurise": "featurising",
    "featurise_stream": "featurising",
    "default_workers": "featurising",
}

__all__ = list(_LAZY)  # noqa: PLE0605


def __getattr__(name: str) -> object:
    if name in _LAZY:
        return getattr(import_module(f"gtx.data.{_LAZY[name]}"), name)
    raise AttributeError(f"module 'gtx.data' has no attribute {name!r}")
