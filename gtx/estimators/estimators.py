"""The scikit-learn estimators: MoleculeRegressor and MoleculeClassifier."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from gtx.errors import InputError
from gtx.estimators.estimator import MoleculeEstimator, mean_score
from gtx.estimators.inputs import as_columns, as_numbers, as_targets, classes_of
from gtx.tasks import Classification, Multiclass, Regression, make
from gtx.tasks.calibration import fewest

# --- Numbers from SMILES.


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


# --- Classes from SMILES.


class MoleculeClassifier(ClassifierMixin, MoleculeEstimator):
    """One of several classes from SMILES, or several labels at once, as a scikit-learn classifier.

    MoleculeClassifier().fit(smiles, labels).predict_proba(smiles)

    `classes_` holds the classes in order. For several labels of zeros and ones it holds their numbers, as in
    scikit-learn's own multi-label classifiers; for labels of other classes it is a list with the classes of each.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train.

        Args:
            X: n SMILES: a list, an array, a pandas column, or a table of one column.
            y: `[n]` or `[n, T]`, two classes or more of any kind in each column; NaN is a blank, which is masked.
            sample_weight: `[n]`, 0 or more, how much say each row has in the loss; by default the same.

        Raises:
            InputError: (a ValueError) a SMILES cannot be read, y holds no classes, or a parameter is at fault.
        """
        y, names = as_targets(y, object)
        self.multi_label_ = y.ndim == 2
        columns = as_columns(y)
        classes = [classes_of(column, name) for column, name in zip(columns.T, names, strict=True)]
        words = tuple(tuple(map(str, each.tolist())) for each in classes)
        if not self.multi_label_:
            self.classes_ = classes[0]
        elif all(each.tolist() == [0, 1] for each in classes):
            self.classes_ = np.arange(len(classes))
            words = (("0", "1"),) * len(classes)
        else:
            self.classes_ = classes
        kind = Multiclass if any(len(each) > 2 for each in classes) else Classification
        task = replace(make(kind, names, self._options()), classes=words)
        numbers = np.full(columns.shape, np.nan)
        for t, each in enumerate(classes):
            known = ~pd.isna(columns[:, t])
            numbers[known, t] = np.searchsorted(each, np.array(columns[known, t].tolist()))
        return self._fit(X, numbers, task, sample_weight)

    def predict_proba(self, X: Any) -> np.ndarray | list[np.ndarray]:
        """Probabilities, float64 `[n, C]` in the order of `classes_`. For several labels of two classes `[n, T]`, that
        of the second class of each; where a label has more classes a list of T, `[n, C]` each, as scikit-learn's
        forests give it.

        A SMILES that cannot be read gives NaN, and all of them together one warning.
        """
        (values,) = self._warned(X, "mean")
        if not self.multi_label_:
            return np.concatenate([1 - values, values], axis=1) if values.shape[1] == 1 else values
        return self._by_label(values) if self._has_more_than_two() else values

    def predict(self, X: Any) -> np.ndarray:
        """The likeliest class `[n]`, or for several labels `[n, T]`: zeros and ones, or the classes of each as y had
        them.

        Raises:
            InputError: a SMILES cannot be read; there is no class that says so.
        """
        values = self._readable(X)
        if self._has_more_than_two():
            places = np.stack([probabilities.argmax(1) for probabilities in self._by_label(values)], axis=1)
        else:
            places = (values > 0.5).astype(int)
        if not self.multi_label_:
            return self.classes_[places[:, 0]]
        if isinstance(self.classes_, np.ndarray):
            return places
        every = zip(self.classes_, places.T, strict=True)
        return np.stack([classes.astype(object)[rows] for classes, rows in every], axis=1)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of right classes. Blanks (NaN) are left out, and of several labels it is the mean over those that
        have values.

        Raises:
            InputError: a SMILES cannot be read.
        """
        check_is_fitted(self, "predictor_")
        y, _ = as_targets(y, object)
        return mean_score(_right, y, self.predict(X), sample_weight, fewest=1)

    def _has_more_than_two(self) -> bool:
        return isinstance(self.predictor_.task, Multiclass)

    def _by_label(self, values: np.ndarray) -> list[np.ndarray]:
        """The probabilities of the classes of each label, `[n, C]` each, of those of all side by side."""
        return np.split(values, np.cumsum(self.predictor_.task.widths)[:-1], axis=1)


def _right(y: np.ndarray, predicted: np.ndarray, sample_weight: np.ndarray) -> float:
    return float(np.average(y == predicted, weights=sample_weight))
