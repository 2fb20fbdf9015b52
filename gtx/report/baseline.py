"""What one gets without a neural network: the mean, a linear model and a random forest.

They learn from the rows and for the targets of the model they stand beside, and see the descriptors that it sees, so
that its scores mean something.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.preprocessing import StandardScaler

from gtx.report.words import TITLES

if TYPE_CHECKING:
    from gtx.data import MoleculeStore
    from gtx.training import TargetScaler

RADIUS, BITS = 2, 2048
MOST_ROWS = 50_000  # of more training rows, as many are drawn at random
MOST_ROWS_OF_A_TREE = 20_000  # each tree draws its own
CLIP = 5.0  # standard deviations of a descriptor
FEWEST_TO_CHOOSE = 10  # measured validation rows for a penalty to be chosen on them
SHARED_WORK = {"regression": 15e6, "classification": 500e6}  # rows × log2(rows) × trees × targets: about a minute
CHUNK = 10_000  # molecules whose counts are dense at a time


class Method(NamedTuple):
    """An estimator of one target, its inputs `[n, BITS + D]`, and the penalties to choose from, if it has one."""

    name: str
    inputs: sparse.csr_array
    estimator: BaseEstimator
    grid: dict[str, list[float]]
    scoring: str | None = None


def baselines(
    smiles: Sequence[str],
    y: np.ndarray,
    split: Mapping[str, np.ndarray],
    task: str,
    names: Sequence[str],
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
    descriptors: np.ndarray | None = None,
    extensive: np.ndarray | None = None,
) -> dict[str, dict[str, Any]]:
    """Score the usual baselines on the split of a model.

    `mean` predicts each target's mean over the training rows (for classes, their share of 1). The others read Morgan
    counts (https://doi.org/10.1021/ci100050t) and, where there are any, descriptors as clipped z-scores of the training
    rows, an unknown one at the mean; they learn each target from the training rows where it is measured:

    - `ridge`, for classes `logistic`: a linear model. Its penalty is chosen on the validation rows, as the epoch of
      the model is, or by 5-fold cross-validation on the training rows where fewer than ten of those are measured.
    - `random_forest` (Breiman 2001, https://doi.org/10.1023/A:1010933404324): fully grown trees, each split choosing
      among a third of the columns, for classes among the root of their number; one forest per target, which scores
      better than one forest for all.

    On two cores 10,000 molecules with five targets take about two minutes. More of either takes little longer: there
    are fewer trees then, and of more than 50,000 training rows as many are drawn at random.

    Args:
        smiles: n molecules that can be read.
        y: `[n, T]` in the targets' own units, or classes 0 and 1; NaN for blanks.
        split: row indices of "train", "val" and "test".
        task: "regression" or "classification".
        names: the T targets' names.
        seed: decides the forest, and which rows are drawn.
        progress: called with a line of text whenever something new begins.
        descriptors: `[n, D]`, NaN where one is unknown; None reads the counts alone.
        extensive: `[n, T]`, what the model's reference per element says; all but `mean` learn the rest.

    Returns:
        By baseline, `train`, `val` and `test` as of `gtx.training.evaluate`, and `settings`; all of it JSON.
    """
    from gtx.training import evaluate

    y = np.asarray(y, dtype=np.float64)
    return {
        name: {part: evaluate(y[rows], prediction[rows], task, names) for part, rows in split.items()}
        | {"settings": settings}
        for name, prediction, settings in predict_baselines(
            smiles, y, split, task, names, seed, progress, descriptors, extensive
        )
    }


def beside(store: MoleculeStore, scaler: TargetScaler) -> dict[str, np.ndarray | None]:
    """What a model sees and its baselines are to see too, as arguments of `baselines`: `descriptors`, `extensive`."""
    from gtx.training import extensive_part

    known = extensive_part(scaler, store)
    return {"descriptors": store.descriptors.cpu().numpy(), "extensive": None if known is None else known.numpy()}


def predict_baselines(
    smiles: Sequence[str],
    y: np.ndarray,
    split: Mapping[str, np.ndarray],
    task: str,
    names: Sequence[str],
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
    descriptors: np.ndarray | None = None,
    extensive: np.ndarray | None = None,
) -> Iterator[tuple[str, np.ndarray, dict[str, Any]]]:
    """Each baseline's name, its predictions `[n, T]` of all rows (probabilities of class 1) and its settings.

    Arguments as of `baselines`.
    """
    progress = progress or (lambda line: None)
    mean = np.array([_mean(column[split["train"]]) for column in y.T])
    yield "mean", np.tile(mean, (len(y), 1)), {}

    progress(f"Morgan counts of {len(smiles)} molecules")
    counts = _counts(smiles)
    train = split["train"]
    if len(train) > MOST_ROWS:
        train = np.sort(np.random.default_rng(seed).choice(train, MOST_ROWS, replace=False))
    read, scaled = f"Morgan counts, radius {RADIUS}, {BITS} bits", None
    if descriptors is not None and descriptors.shape[1]:
        read, scaled = f"{read}, and {descriptors.shape[1]} descriptors", _scaled(descriptors, train)
    if extensive is None:
        extensive = np.zeros_like(y)
    else:
        read += "; extensive targets minus the model's reference per element"
    rest = y - extensive
    level = np.array([_mean(column[split["train"]]) for column in rest.T])
    for method in _methods(counts, scaled, task, len(train), len(names), seed):
        prediction = level + extensive
        settings = {"inputs": read, "training_rows": len(train)}
        settings |= _told(method.estimator)
        for t, target in enumerate(names):
            progress(f"{TITLES[method.name]}: {target} ({t + 1} of {len(names)})")
            learn, choose = (rows[~np.isnan(y[rows, t])] for rows in (train, split["val"]))
            if not _learnable(rest[learn, t], task):
                continue  # the mean is all there is to learn
            penalty = _choose(method, rest[:, t], learn, choose, task)
            fitted = clone(method.estimator).set_params(**penalty).fit(method.inputs[learn], rest[learn, t])
            prediction[:, t] = _predict(fitted, method.inputs) + extensive[:, t]
            for key, value in penalty.items():
                settings.setdefault(key, {})[target] = value
        yield method.name, prediction, settings


def _methods(
    counts: sparse.csr_array, descriptors: sparse.csr_array | None, task: str, rows: int, targets: int, seed: int
) -> Iterator[Method]:
    def joined(counts: sparse.csr_array) -> sparse.csr_array:
        return counts if descriptors is None else sparse.hstack([counts, descriptors], format="csr")

    if task == "regression":
        # counts as they are: a sum of group contributions, which scaled or squashed counts fit worse
        linear = Ridge(solver="lsqr", tol=1e-5)
        grid = {"alpha": np.logspace(-2, 4, 13).tolist()}
        yield Method("ridge", joined(counts), linear, grid, "neg_mean_squared_error")
    else:
        grid = {"C": np.logspace(-4, 2, 13).tolist()}
        yield Method("logistic", joined(counts.log1p()), LogisticRegression(max_iter=2000), grid, "neg_log_loss")

    drawn = min(rows, MOST_ROWS_OF_A_TREE)
    forest, features = {
        "regression": (RandomForestRegressor, 1 / 3),
        "classification": (RandomForestClassifier, "sqrt"),
    }[task]
    trees = int(np.clip(SHARED_WORK[task] / (targets * drawn * np.log2(drawn + 1)), 25, 200))
    estimator = forest(
        trees,
        max_features=features,
        max_samples=drawn if drawn < rows else None,
        n_jobs=min(2, os.cpu_count() or 1),
        random_state=seed,
    )
    yield Method("random_forest", joined(counts), estimator, {})


def _choose(method: Method, y: np.ndarray, train: np.ndarray, val: np.ndarray, task: str) -> dict[str, float]:
    if not method.grid:
        return {}
    if len(val) >= FEWEST_TO_CHOOSE and _learnable(y[val], task):
        folds = [(train, val)]
    else:
        folds = [(train[fit], train[score]) for fit, score in _folder(y[train], task).split(train, y[train])]
    search = GridSearchCV(method.estimator, method.grid, scoring=method.scoring, cv=folds, refit=False)
    return search.fit(method.inputs, y).best_params_


def _folder(y: np.ndarray, task: str) -> KFold | StratifiedKFold:
    if task == "regression":
        return KFold(min(5, len(y)), shuffle=True, random_state=0)
    return StratifiedKFold(min(5, _smaller_class(y)), shuffle=True, random_state=0)


def _learnable(y: np.ndarray, task: str) -> bool:
    return len(np.unique(y)) > 1 if task == "regression" else _smaller_class(y) > 1


def _smaller_class(y: np.ndarray) -> int:
    return int(min((y == 0).sum(), (y == 1).sum()))


def _predict(estimator: BaseEstimator, inputs: sparse.csr_array) -> np.ndarray:
    if hasattr(estimator, "n_jobs"):
        estimator.n_jobs = 1  # threads add up the trees in an order of their own, and the last digit with it
    return estimator.predict_proba(inputs)[:, 1] if hasattr(estimator, "classes_") else estimator.predict(inputs)


def _told(estimator: BaseEstimator) -> dict[str, Any]:
    told = {"n_estimators": "trees", "max_features": "max_features", "max_samples": "rows_per_tree"}
    values = estimator.get_params()
    return {word: values[name] for name, word in told.items() if values.get(name) is not None}


def _mean(column: np.ndarray) -> float:
    measured = column[~np.isnan(column)]
    return float(measured.mean()) if len(measured) else np.nan


def _scaled(descriptors: np.ndarray, train: np.ndarray) -> sparse.csr_array:
    """Clipped z-scores of the training rows `[n, D]`; 0 for what is unknown."""
    values = np.where(np.isfinite(descriptors), descriptors, np.nan).astype(np.float64)
    z = StandardScaler().fit(values[train]).transform(values)
    return sparse.csr_array(np.nan_to_num(z.clip(-CLIP, CLIP), nan=0.0))


def _counts(smiles: Sequence[str]) -> sparse.csr_array:
    """Morgan counts `[n, BITS]`; sparse, which makes the forest 2 to 20 times as fast."""
    from gtx.molecules import morgan_counts

    parts = [
        sparse.csr_array(morgan_counts(smiles[start : start + CHUNK], radius=RADIUS, bits=BITS).astype(float))
        for start in range(0, len(smiles), CHUNK)
    ]
    return sparse.vstack(parts, format="csr")
