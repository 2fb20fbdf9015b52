"""Classes from SMILES."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import ClassifierMixin

from gtx.errors import InputError
from gtx.estimators.estimator import MoleculeEstimator
from gtx.estimators.given import as_columns, as_targets
from gtx.tasks import Classification, Multiclass, make


class MoleculeClassifier(ClassifierMixin, MoleculeEstimator):
    """One of several classes from SMILES, or several yes-or-no labels at once, as a scikit-learn classifier.

    MoleculeClassifier().fit(smiles, labels).predict_proba(smiles)

    `classes_` holds the classes in order; for several labels, their numbers, as in scikit-learn's own multi-label
    classifiers.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train.

        Args:
            X: n SMILES: a list, an array, a pandas column, or a table of one column.
            y: `[n]`, two classes or more of any kind, or `[n, T]` of zeros and ones; NaN is a blank, which is masked.
            sample_weight: `[n]`, 0 or more, how much say each row has in the loss; by default the same.

        Raises:
            InputError: (a ValueError) a SMILES cannot be read, there are not two classes, or a parameter is at fault.
        """
        y, names = as_targets(y)
        self.multi_label_ = y.ndim == 2
        known = ~pd.isna(y)
        for column, observed in zip(as_columns(y).T, as_columns(known).T, strict=True):
            classes = np.unique(column[observed])
            if len(classes) < 2 or (self.multi_label_ and classes.tolist() != [0, 1]):
                expected = "labels 0 and 1 in every column" if self.multi_label_ else "two classes or more"
                raise InputError(f"expected {expected} of y, got {', '.join(map(str, classes[:5])) or 'none'}")
        self.classes_ = np.arange(y.shape[1]) if self.multi_label_ else classes
        words = tuple(map(str, classes))
        if self.multi_label_ or len(classes) == 2:
            task = replace(
                make(Classification, names, self._options()),
                classes=((("0", "1") if self.multi_label_ else words),) * len(names),
            )
            return self._fit(X, as_columns(np.where(known, y == classes[1], np.nan)), task, sample_weight)
        task = replace(make(Multiclass, names, self._options()), classes=(words,))
        numbers = np.where(known, np.searchsorted(classes, np.where(known, y, classes[0])), np.nan)
        return self._fit(X, numbers[:, None], task, sample_weight)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities, float64 `[n, C]` in the order of `classes_`; for several labels `[n, T]`, each label's own.

        A SMILES that cannot be read gives NaN, and all of them together one warning.
        """
        values, complaint = self._predict(X)
        if complaint:
            warnings.warn(f"{complaint}; NaN is returned", stacklevel=2)
        return np.concatenate([1 - values, values], axis=1) if self._binary(values) else values

    def predict(self, X: Any) -> np.ndarray:
        """The likeliest class `[n]`, or zeros and ones `[n, T]` for several labels.

        Raises:
            InputError: a SMILES cannot be read; there is no class that says so.
        """
        values, complaint = self._predict(X)
        if complaint:
            raise InputError(complaint)
        if self.multi_label_:
            return (values > 0.5).astype(int)
        return self.classes_[(values[:, 0] > 0.5).astype(int) if self._binary(values) else values.argmax(1)]

    def _binary(self, values: np.ndarray) -> bool:
        return not self.multi_label_ and values.shape[1] == 1
