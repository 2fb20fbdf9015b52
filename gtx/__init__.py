"""Graph transformers for molecules: attention as an edge update, from a CSV to honest predictions.

    model = gtx.load("run/model.gtx")
    model.predict(["CCO", "c1ccccc1"])
    gtx.MoleculeRegressor().fit(smiles, y).predict(smiles)

Nothing heavy is imported until it is asked for, so `import gtx` and `gtx --help` are immediate.
"""

from __future__ import annotations

from importlib import import_module

__version__ = "0.1.0"

_LAZY = {
    "load": "gtx.prediction",
    "MoleculeRegressor": "gtx.estimators",
    "MoleculeClassifier": "gtx.estimators",
    "InputError": "gtx.errors",
}


def __getattr__(name: str) -> object:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'gtx' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_LAZY])
