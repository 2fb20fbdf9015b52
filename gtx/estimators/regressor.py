"""Numbers from SMILES."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from gtx.errors import InputError
from gtx.estimators.estimator import MoleculeEstimator
from gtx.estimators.given import as_columns, as_numbers
from gtx.estimators.scores import mean_score
from gtx.tasks import Regression, make
from gtx.tasks.conformal import fewest


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
        y, names = as_numbers(y)
        self.one_dimensional_ = y.ndim == 1
        if np.isinf(y).any():
            raise InputError(f"y holds an infinite value at {tuple(np.argwhere(np.isinf(y))[0].tolist())}")
        return self._fit(X, as_columns(y), make(Regression, names, self._options()), sample_weight)

    def predict(self, X: Any, return_std: bool = False) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Predictions in the targets' own units, float64 `[n]` or `[n, T]` as y was.

        A SMILES that cannot be read gives NaN, and all of them together one warning.

        Args:
            X: SMILES, as `fit` takes them.
            return_std: give standard deviations of the same shape too, as `(predictions, std)`.

        Raises:
            InputError: the model has no standard deviations.
        """
        check_is_fitted(self, "predictor_")
        if not return_std:
            return self._shaped(*self._warned(X, "mean"))
        if "std" not in self.predictor_.task.kinds(0, len(self.predictor_.members)):
            raise InputError(
                "return_std: this model has no standard deviations; expected one fitted with "
                'task_options={"uncertainty": "variance"}, another method of uncertainty, or ensemble=5'
            )
        mean, std = self._warned(X, "mean", "std")
        return self._shaped(mean), self._shaped(std)

    def predict_interval(self, X: Any) -> np.ndarray:
        """Low and high bounds of intervals, float64 `[n, 2]`, or `[n, T, 2]` where y was `[n, T]`.

        They hold 90 % of the values, or what `task_options={"coverage": ...}` says.

        They are split-conformal intervals, fitted on the rows that `fit` sets aside. A SMILES that cannot be read gives
        NaN, and all of them together one warning. A target with fewer than nine of these rows (19 for a coverage of
        0.95) has NaN too.

        Raises:
            InputError: no target has enough rows set aside.
        """
        check_is_fitted(self, "predictor_")
        if not self.predictor_.task.has_intervals:
            raise InputError(
                f"this model has no intervals: they take {fewest(self.predictor_.task.coverage)} rows set aside or "
                f"more, expected more rows or a larger validation_fraction than {self.validation_fraction}"
            )
        low, high = self._warned(X, "low", "high")
        return np.stack([self._shaped(low), self._shaped(high)], axis=-1)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of the predictions. Blanks (NaN) are left out, and of several targets it is the mean over those that have
        two different values or more.

        Raises:
            InputError: a SMILES cannot be read.
        """
        check_is_fitted(self, "predictor_")
        y, _ = as_numbers(y)
        return mean_score(r2_score, y, self._shaped(self._readable(X)), sample_weight, fewest=2)

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        return values[:, 0] if self.one_dimensional_ else values
