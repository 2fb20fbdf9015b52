"""Graph transformers for molecules: attention as an edge update, from a CSV to honest predictions.

    model = gtx.load("run/model.gtx")
    model.predict(["CCO", "c1ccccc1"])
    gtx.MoleculeRegressor().fit(smiles, y).predict(smiles)

Its names are imported when they are first read, so that `gtx --help` does not wait for PyTorch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gtx.base.errors import InputError
    from gtx.estimators import MoleculeClassifier, MoleculeRegressor
    from gtx.prediction import load_predictor as load

__version__ = "0.1.0"
__all__ = ["InputError", "MoleculeClassifier", "MoleculeRegressor", "load"]
HOMES = {
    "InputError": ("gtx.base.errors", "InputError"),
    "MoleculeClassifier": ("gtx.estimators", "MoleculeClassifier"),
    "MoleculeRegressor": ("gtx.estimators", "MoleculeRegressor"),
    "load": ("gtx.prediction", "load_predictor"),
}


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module 'gtx' has no attribute {name!r}")
    module, original = HOMES[name]
    return getattr(import_module(module), original)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
