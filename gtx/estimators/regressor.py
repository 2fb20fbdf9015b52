"""Numbers from SMILES."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from gtx.errors import InputError
from gtx.estimators.estimator import MoleculeEstimator
from gtx.estimators.given import as_columns, as_targets
from gtx.tasks import Regression, make


class MoleculeRegressor(RegressorMixin, MoleculeEstimator):
    """Numbers from SMILES, as a scikit-learn regressor.

    MoleculeRegressor().fit(smiles, y).predict(smiles)
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train.

        Args:
            X: n SMILES: a list, an array, a pandas column, or a table of one column.
            y: `[n]` or `[n, T]`; NaN is a blank, which is masked.
            sample_weight: `[n]`, 0 or more, how much say each row has in the loss; by default the same.

        Raises:
            InputError: (a ValueError) a SMILES cannot be read, or the input or a parameter is otherwise at fault.
        """
        y, names = as_targets(y, float)
        self.one_dimensional_ = y.ndim == 1
        if np.isinf(y).any():
            raise InputError(f"y holds an infinite value at {tuple(np.argwhere(np.isinf(y))[0].tolist())}")
        return self._fit(X, as_columns(y), make(Regression, names, self._options()), sample_weight)

    def predict(self, X: Any) -> np.ndarray:
        """Predictions in the targets' own units, float64 `[n]` or `[n, T]` as y was.

        A SMILES that cannot be read gives NaN, and all of them together one warning.
        """
        values, complaint = self._predict(X)
        if complaint:
            warnings.warn(f"{complaint}; NaN is returned", stacklevel=2)
        return values[:, 0] if self.one_dimensional_ else values
