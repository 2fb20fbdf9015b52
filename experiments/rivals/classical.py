"""Models without a neural network: the mean; ridge, forests and boosted trees on Morgan counts or on descriptors.

There is one model for each target, trained on the training rows that have a value. Penalty, rounds, size and rate of
the boosted trees are chosen on the validation rows, as the epoch of a network is. Those named `-whole` then learn from
the validation rows too, as the kernel of gtx's mix does; what they said of these rows before stands as their validation
score.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import sklearn
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
from experiments.public_sets import FitResult, LoadedRun
from gtx.molecules import morgan_counts

RADIUS, BITS = 2, 2048
CLIP = 5.0  # z-scores of descriptors beyond it are cut there
TREES = 200
FLOAT32 = float(np.finfo(np.float32).max)
NAMES = tuple(name for name, _ in Descriptors.descList)
"""Of RDKit's descriptors, in the order of the columns."""


class Candidate(NamedTuple):
    """An estimator and, in words, what sets it apart from the other candidates."""

    estimator: BaseEstimator
    choice: dict[str, float]


def fit_predict(loaded: LoadedRun) -> FitResult:
    """`mean`, or `ridge`, `forest` or `boosting`, a dash and `counts` or `descriptors`, and perhaps `-whole`."""
    kind, _, inputs = loaded.run.model.removesuffix(WHOLE).partition("-")
    versions = {"scikit-learn": sklearn.__version__}
    y, split = loaded.dataset.y, loaded.dataset.split
    means = np.nanmean(y[split["train"]], axis=0)
    prediction = np.tile(means, (len(y), 1))
    if kind == "mean":
        return FitResult(prediction, len(means), {}, versions)
    x, settings = features(loaded, inputs, dense=kind == "boosting")
    chosen: dict[str, Any] = {}
    for t, target in enumerate(loaded.names):
        train, val = (rows[~np.isnan(y[rows, t])] for rows in (split["train"], split["val"]))
        if len(np.unique(y[train, t])) < 2:
            continue  # nothing but the mean can be learnt
        scored = [
            (
                _loss(y[val, t], _predict(fitted, x[val]), loaded.dataset.task.discrete),
                number,
                fitted,
                candidate,
            )
            for number, candidate in enumerate(candidates(kind, inputs, loaded.dataset.task.discrete, loaded.run.seed))
            for fitted in [_fit(candidate.estimator, x, y[:, t], train, val)]
        ]
        _, _, best, candidate = min(scored, key=lambda one: one[:2])
        chosen[target], prediction[:, t] = candidate.choice, _predict(best, x)
        if loaded.run.model.endswith(WHOLE):
            known = np.sort(np.concatenate([train, val]))
            others = np.setdiff1d(np.arange(len(y)), split["val"])
            whole = clone(candidate.estimator).fit(x[known], y[known, t])
            prediction[others, t] = _predict(whole, x[others])
    return FitResult(prediction, None, {**settings, "chosen_on_validation": chosen}, versions)


def features(loaded: LoadedRun, inputs: str, dense: bool = False) -> tuple[np.ndarray | sparse.csr_array, dict]:
    """What is read of the molecules `[m, D]`, and in words."""
    smiles = loaded.dataset.smiles
    if inputs == "counts":
        counts = morgan_counts(smiles, radius=RADIUS, bits=BITS).astype(np.float32)
        if dense:  # a column that hardly ever is not 0 costs as much as any other
            counts = counts[:, (counts[loaded.dataset.split["train"]] > 0).sum(0) > 2]
        words = f"Morgan counts, radius {RADIUS}, {BITS} bits"
        return counts if dense else sparse.csr_array(counts), {"inputs": words, "columns": counts.shape[1]}
    values = rdkit_descriptors(smiles, loaded.runs / "cache").clip(-FLOAT32, FLOAT32)
    missing = {"values_missing": int(np.isnan(values).sum())}
    return values, {"inputs": "RDKit descriptors", "columns": values.shape[1], **missing}


def candidates(kind: str, inputs: str, classes: bool, seed: int) -> Iterator[Candidate]:
    """What the validation rows choose from."""
    if kind == "forest":
        make = RandomForestClassifier if classes else RandomForestRegressor
        share = "sqrt" if classes else 1 / 3
        yield Candidate(make(TREES, max_features=share, random_state=seed), {"trees": TREES})
    elif kind == "boosting":
        make = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
        bins = {"max_bins": 32} if inputs == "counts" else {}
        for leaves in (8, 31):
            for rate in (0.03, 0.1):
                estimator = make(
                    learning_rate=rate,
                    max_iter=2000,
                    max_leaf_nodes=leaves,
                    min_samples_leaf=10,
                    early_stopping=True,
                    n_iter_no_change=30,
                    random_state=seed,
                    **bins,
                )
                yield Candidate(estimator, {"leaves": leaves, "learning_rate": rate})
    elif classes:
        for strength in np.logspace(-4, 2, 13):
            yield Candidate(
                make_pipeline(*_scaled(inputs), LogisticRegression(C=strength, max_iter=2000)), {"C": strength}
            )
    else:
        solver = {"solver": "sparse_cg", "tol": 1e-5} if inputs == "counts" else {}
        for penalty in np.logspace(-2, 4, 19):
            yield Candidate(make_pipeline(*_scaled(inputs, counts=None), Ridge(penalty, **solver)), {"alpha": penalty})


def _scaled(inputs: str, counts: Callable | None = np.log1p) -> Sequence[BaseEstimator]:
    """Before a linear model: clipped z-scores of the training rows, gaps told by columns of their own; counts as is."""
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


def rdkit_descriptors(smiles: Sequence[str], cache: Path) -> np.ndarray:
    """The descriptors of `rdkit.Chem.Descriptors` (about 20 ms a molecule), or what the cache holds of them.

    Args:
        smiles: n molecules that can be read.
        cache: a folder.

    Returns:
        float64 `[n, D]`; NaN where a descriptor cannot be computed or is no finite number.
    """
    key = hashlib.sha256("\n".join([rdBase.rdkitVersion, *NAMES, *smiles]).encode()).hexdigest()
    file = cache / f"descriptors-{key[:32]}.npy"
    if file.is_file():
        return np.load(file)
    RDLogger.DisableLog("rdApp.*")
    values = np.array([_describe(text) for text in smiles]).reshape(len(smiles), len(NAMES))
    RDLogger.EnableLog("rdApp.*")
    values[~np.isfinite(values)] = np.nan
    cache.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(f".{os.getpid()}.npy")
    np.save(partial, values)
    partial.replace(file)
    return values


def _describe(smiles: str) -> list[float]:
    mol = Chem.MolFromSmiles(smiles)
    found = Descriptors.CalcMolDescriptors(mol, missingVal=np.nan, silent=True)
    return [float(found[name]) for name in NAMES]
