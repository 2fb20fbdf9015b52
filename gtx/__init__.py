"""Graph transformers for molecules: attention as an edge update, from a CSV to honest predictions.

    model = gtx.load("run/model.gtx")
    model.predict(["CCO", "c1ccccc1"])
    gtx.MoleculeRegressor().fit(smiles, y).predict(smiles)

Nothing heavy is imported until it is asked for, so `import gtx` and `gtx --help` are immediate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gtx.lazy import lazy_names

if TYPE_CHECKING:
    from gtx.base.errors import InputError
    from gtx.estimators import MoleculeClassifier, MoleculeRegressor
    from gtx.prediction import load_predictor as load


__version__ = "0.1.0"

# import gtx and gtx --help are immediate
__getattr__, __dir__ = lazy_names(__name__)
__all__ = [
    "InputError",
    "MoleculeClassifier",
    "MoleculeRegressor",
    "load",
]
