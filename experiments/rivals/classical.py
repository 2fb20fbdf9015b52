"""Models without a neural network: the mean; ridge, forests and boosted trees on Morgan counts or on descriptors.

There is one model for each target, trained on the training rows that have a value. Penalty, rounds, size and rate of
the boosted trees are chosen on the validation rows, as the epoch of a network is. Those named `-whole` then learn from
the validation rows too, as the kernel of gtx's mix does; their validation scores are of before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import sklearn
from joblib import Memory
from rdkit import Chem, RDLogger, rdBase
from rdkit.Chem import Descriptors
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss, mean_squared_error
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from experiments.models import WHOLE
from experiments.runs import Run
from gtx.molecules import morgan_counts

RADIUS, BITS = 2, 2048
CLIP = 5.0  # z-scores of descriptors beyond it are cut there
TREES = 200
FLOAT32 = float(np.finfo(np.float32).max)
NAMES = tuple(name for name, _ in Descriptors.descList)
"""Names of RDKit's descriptors, in the order of the columns."""


Candidate = tuple[BaseEstimator, dict[str, float]]
"""An estimator and, in words, what sets it apart from the other candidates."""


def fit_predict(run: Run) -> tuple[np.ndarray, dict[str, Any]]:
    """Fit `mean`, or `ridge`, `forest` or `boosting`, a dash and `counts` or `descriptors`, and perhaps `-whole`."""
    kind, _, inputs = run.model.removesuffix(WHOLE).partition("-")
    facts: dict[str, Any] = {"versions": {"scikit-learn": sklearn.__version__}}
    y, split, classes = run.dataset.y, run.dataset.split, run.dataset.task.discrete
    means = np.nanmean(y[split["train"]], axis=0)
    prediction = np.tile(means, (len(y), 1))
    if kind == "mean":
        return prediction, facts | {"parameters": len(means)}
    x, settings = features(run, inputs, dense=kind == "boosting")
    chosen: dict[str, Any] = {}
    for t, target in enumerate(run.targets):
        train, val = (rows[~np.isnan(y[rows, t])] for rows in (split["train"], split["val"]))
        if len(np.unique(y[train, t])) < 2:
            continue  # nothing but the mean can be learnt
        least = np.inf
        for estimator, choice in candidates(kind, inputs, classes, run.seed):
            fitted = _fit(estimator, x, y[:, t], train, val)
            loss = _loss(y[val, t], _predict(fitted, x[val]), classes)
            if loss < least:
                least, best, chosen[target] = loss, fitted, choice
        prediction[:, t] = _predict(best, x)
        if run.model.endswith(WHOLE):
            known = np.sort(np.concatenate([train, val]))
            others = np.setdiff1d(np.arange(len(y)), split["val"])
            prediction[others, t] = _predict(clone(best).fit(x[known], y[known, t]), x[others])
    return prediction, facts | {"settings": {**settings, "chosen_on_validation": chosen}}


def features(run: Run, inputs: str, dense: bool = False) -> tuple[np.ndarray | sparse.csr_array, dict[str, Any]]:
    """Compute the inputs of the molecules `[m, D]`, and describe them."""
    smiles = run.dataset.smiles
    if inputs == "counts":
        counts = morgan_counts(smiles, radius=RADIUS, bits=BITS).astype(np.float32)
        if dense:  # a column that hardly ever is not 0 costs as much as any other
            counts = counts[:, (counts[run.dataset.split["train"]] > 0).sum(0) > 2]
        words = f"Morgan counts, radius {RADIUS}, {BITS} bits"
        return counts if dense else sparse.csr_array(counts), {"inputs": words, "columns": counts.shape[1]}
    cached = Memory(run.runs / "cache", verbose=0).cache(rdkit_descriptors)
    values = cached(tuple(smiles), rdBase.rdkitVersion).clip(-FLOAT32, FLOAT32)
    missing = {"values_missing": int(np.isnan(values).sum())}
    return values, {"inputs": "RDKit descriptors", "columns": values.shape[1], **missing}


def rdkit_descriptors(smiles: Sequence[str], version: str) -> np.ndarray:
    """Compute the descriptors of RDKit `[n, D]`, NaN for one that cannot be computed; the cache knows the version."""
    RDLogger.DisableLog("rdApp.*")
    values = np.empty((len(smiles), len(NAMES)))
    for row, text in zip(values, smiles, strict=True):
        found = Descriptors.CalcMolDescriptors(Chem.MolFromSmiles(text), missingVal=np.nan, silent=True)
        row[:] = [found[name] for name in NAMES]
    RDLogger.EnableLog("rdApp.*")
    values[~np.isfinite(values)] = np.nan
    return values


def candidates(kind: str, inputs: str, classes: bool, seed: int) -> Iterator[Candidate]:
    """Yield what the validation rows choose from."""
    if kind == "forest":
        make = RandomForestClassifier if classes else RandomForestRegressor
        share = "sqrt" if classes else 1 / 3
        yield make(TREES, max_features=share, random_state=seed), {"trees": TREES}
    elif kind == "boosting":
        make = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
        fixed = {"max_iter": 2000, "min_samples_leaf": 10, "early_stopping": True, "n_iter_no_change": 30}
        if inputs == "counts":
            fixed["max_bins"] = 32
        for leaves in (8, 31):
            for rate in (0.03, 0.1):
                estimator = make(learning_rate=rate, max_leaf_nodes=leaves, random_state=seed, **fixed)
                yield estimator, {"leaves": leaves, "learning_rate": rate}
    elif classes:
        for strength in np.logspace(-4, 2, 13):
            model = LogisticRegression(C=strength, max_iter=2000)
            yield make_pipeline(*_scaled(inputs), model), {"C": strength}
    else:
        solver = {"solver": "sparse_cg", "tol": 1e-5} if inputs == "counts" else {}
        for penalty in np.logspace(-2, 4, 19):
            model = Ridge(penalty, **solver)
            yield make_pipeline(*_scaled(inputs, counts=None), model), {"alpha": penalty}


def _scaled(inputs: str, counts: Callable | None = np.log1p) -> Sequence[BaseEstimator]:
    """Scale before a linear model: clipped z-scores of the training rows, gaps marked in columns of their own."""
    if inputs == "counts":
        return [] if counts is None else [FunctionTransformer(counts, accept_sparse=True)]
    gaps = SimpleImputer(strategy="constant", fill_value=0.0, add_indicator=True)
    return [StandardScaler(), FunctionTransformer(np.clip, kw_args={"a_min": -CLIP, "a_max": CLIP}), gaps]


def _fit(estimator: BaseEstimator, x: Any, y: np.ndarray, train: np.ndarray, val: np.ndarray) -> BaseEstimator:
    if "early_stopping" in estimator.get_params():
        return estimator.fit(x[train], y[train], X_val=x[val], y_val=y[val])
    return estimator.fit(x[train], y[train])


def _predict(fitted: BaseEstimator, x: Any) -> np.ndarray:
    return fitted.predict_proba(x)[:, 1] if hasattr(fitted, "classes_") else fitted.predict(x)


def _loss(y: np.ndarray, prediction: np.ndarray, classes: bool) -> float:
    return log_loss(y, prediction, labels=[0, 1]) if classes else mean_squared_error(y, prediction)
