"""Baselines without a neural network: the mean, a linear model, a random forest and kernel ridge regression.

They have the training rows, the targets and the descriptors of the model that they are compared with.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from rich.console import Console
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.preprocessing import StandardScaler

from gtx.data import MoleculeStore
from gtx.models.catalogue import CLOSED_FORM_MODELS
from gtx.tasks import TaskList
from gtx.tasks.closed_form import fit_closed_form, outputs_of, why_no_closed_form
from gtx.tasks.combined import join_baselines
from gtx.tasks.numeric import NumericTask, is_numeric

if TYPE_CHECKING:
    from gtx.kernel import KernelRidge
    from gtx.tasks import Task
    from gtx.tasks.numeric import NumericObjective
    from gtx.training_data import Dataset

RADIUS, BITS = 2, 2048
MAX_ROWS = 50_000  # training rows; of more, a random sample
MAX_ROWS_OF_A_TREE = 20_000  # rows that each tree draws
CLIP = 5.0  # standard deviations of a descriptor
MIN_VALIDATION_ROWS = 10  # measured validation rows on which a penalty is chosen
SHARED_WORK = {False: 15e6, True: 500e6}  # rows × log2(rows) × trees × targets of numbers and classes: about a minute
CHUNK = 10_000  # molecules whose counts are dense at a time


class Method(NamedTuple):
    """Estimator of one target, its inputs `[n, BITS + D]`, and the grid of its penalty, if it has one."""

    name: str
    inputs: sparse.csr_array
    estimator: BaseEstimator
    grid: dict[str, list[float]]
    scoring: str | None = None


class Baselines(NamedTuple):
    """Scores and predictions of the baselines, by name."""

    scores: dict[str, dict[str, Any]]  # for train, val and test, see `NumericObjective.evaluate`, and settings, as JSON
    predictions: dict[str, np.ndarray]  # for all molecules, float64 [n, P], for tasks of numbers or classes


def score_baselines(
    dataset: Dataset, task: Task, seed: int = 0, progress: bool = False, kernel: KernelRidge | None = None
) -> Baselines:
    """Score the baselines of a fitted task on the rows of a data set, see `predict_baselines`.

    A task that is not of numbers or classes of molecules has its own baselines, if any.
    """
    if isinstance(task, TaskList):
        results = [score_baselines(task.dataset_of(each, dataset), each, seed, progress, kernel) for each in task.tasks]
        predictions = {name: values for result in results for name, values in result.predictions.items()}
        return Baselines(join_baselines([result.scores for result in results], task.tasks), predictions)
    result = Baselines({}, {})
    if not isinstance(task, NumericTask):
        return result
    if not is_numeric(task):
        return Baselines(score_alike(task.objective, dataset.store, dataset.split), {})
    with Console(stderr=True, quiet=not progress).status("Baselines"):
        for name, prediction, settings in predict_baselines(dataset, task, seed, kernel):
            parts = dataset.split.items()
            scores = {part: task.objective.evaluate(dataset.y[rows], prediction[rows]) for part, rows in parts}
            result.scores[name] = scores | {"settings": settings}
            result.predictions[name] = prediction
    return result


def predict_baselines(
    dataset: Dataset, task: NumericTask, seed: int = 0, kernel: KernelRidge | None = None
) -> Iterator[tuple[str, np.ndarray, dict[str, Any]]]:
    """Yield the name of each baseline, its predictions `[n, P]` of all rows (for classes, probabilities) and settings.

    `mean` predicts the mean of each target over the training rows (for classes, their shares). The others have Morgan
    counts (https://doi.org/10.1021/ci100050t) and, where there are any, descriptors as clipped z-scores of the training
    rows, with the mean for an unknown one. Each target is fitted to the training rows with a value, without its part
    that the task knows (`Task.known_part`):

    - `ridge`, for classes `logistic`: a linear model. Its penalty is chosen on the validation
      rows, like the epoch of the model, or by 5-fold cross-validation on the training rows if fewer than ten validation
      rows have a value.
    - `random_forest` (Breiman 2001, https://doi.org/10.1023/A:1010933404324): fully grown trees, with a third of the
      columns for each split, for classes the square root of their number; one forest per target, which scores better
      than one forest for all.
    - `kernel`: kernel ridge regression on substructures, descriptors and embeddings (`gtx.kernel.KernelRidge`).

    On two cores 10,000 molecules with five targets take about two minutes. More of either takes little longer, as there
    are fewer trees then, and a random sample of at most 50,000 training rows.

    `seed` is of the forest and of the sample of rows. `kernel` is fitted to the training rows; by default one is made.
    """
    y, store, train = dataset.y, dataset.store, dataset.split["train"]
    yield "mean", np.tile(_level(y[train], task), (len(y), 1)), {}

    counts, descriptors, known = _counts(dataset.smiles), store.descriptors.cpu().numpy(), task.known_part(store)
    if len(train) > MAX_ROWS:
        train = np.sort(np.random.default_rng(seed).choice(train, MAX_ROWS, replace=False))
    inputs, scaled = f"Morgan counts, radius {RADIUS}, {BITS} bits", None
    if descriptors.shape[1]:
        inputs, scaled = f"{inputs}, and {descriptors.shape[1]} descriptors", _scaled(descriptors, train)
    if known is None:
        known = np.zeros_like(y)
    else:
        inputs += "; extensive targets minus the model's reference per element"
    rest = y - known
    level = _level(rest[dataset.split["train"]], task)
    for method in _methods(counts, scaled, task, len(train), seed):
        prediction = np.tile(level, (len(y), 1))
        settings: dict[str, Any] = {"inputs": inputs, "training_rows": len(train)}
        if isinstance(method.estimator, (RandomForestClassifier, RandomForestRegressor)):
            names = {"trees": "n_estimators", "max_features": "max_features", "rows_per_tree": "max_samples"}
            own = {word: method.estimator.get_params()[name] for word, name in names.items()}
            settings |= {word: value for word, value in own.items() if value is not None}
        for t, (target, columns) in enumerate(task.objective.places):
            learn, choose = (rows[~np.isnan(y[rows, t])] for rows in (train, dataset.split["val"]))
            if _learnable(rest[learn, t], task):  # else the mean is all there is to learn
                penalty = _choose(method, rest[:, t], learn, choose, task)
                fitted = clone(method.estimator).set_params(**penalty).fit(method.inputs[learn], rest[learn, t])
                prediction[:, columns] = _predict(fitted, method.inputs, columns.stop - columns.start)
                for key, value in penalty.items():
                    settings.setdefault(key, {})[target] = value
            if not task.discrete:
                prediction[:, columns] += known[:, [t]]
        yield method.name, task.project(prediction), settings
    train = dataset.split["train"]
    if why_no_closed_form(task, store.subset(train)) is None:
        yield "kernel", *_predict_by_kernel(store, train, task, kernel)


def _predict_by_kernel(
    store: MoleculeStore, train: np.ndarray, task: NumericTask, kernel: KernelRidge | None
) -> tuple[np.ndarray, dict[str, Any]]:
    """Predict with a kernel; also return its settings."""
    if kernel is None:
        kernel = CLOSED_FORM_MODELS["kernel"](
            task.objective.num_predictions, num_descriptors=store.descriptors.shape[1]
        )
        fit_closed_form(kernel, task, store.subset(train))
    outputs = outputs_of(deepcopy(kernel).cpu(), store)
    share = 0.0 if kernel.descriptors is None else float(kernel.descriptors.share)
    rows = len(kernel.rows_used(len(train)))
    settings = {"descriptors": round(share, 6), "training_rows": rows, "ridge": kernel.ridge.tolist()}
    return task.objective.point.unscale(outputs, store).numpy(), settings


def _methods(
    counts: sparse.csr_array, descriptors: sparse.csr_array | None, task: NumericTask, rows: int, seed: int
) -> Iterator[Method]:
    def joined(counts: sparse.csr_array) -> sparse.csr_array:
        return counts if descriptors is None else sparse.hstack([counts, descriptors], format="csr")

    if not task.discrete:
        # counts as they are: a sum of group contributions, which scaled or squashed counts fit worse
        linear = Ridge(solver="lsqr", tol=1e-5)
        grid = {"alpha": np.logspace(-2, 4, 13).tolist()}
        yield Method("ridge", joined(counts), linear, grid, "neg_mean_squared_error")
    else:
        grid = {"C": np.logspace(-4, 2, 13).tolist()}
        # validation rows may lack one of many classes, for which the log loss is not defined
        scoring = "neg_log_loss" if task.objective.num_predictions == len(task.targets) else "balanced_accuracy"
        yield Method("logistic", joined(counts.log1p()), LogisticRegression(max_iter=2000), grid, scoring)

    drawn = min(rows, MAX_ROWS_OF_A_TREE)
    forest, features = (RandomForestClassifier, "sqrt") if task.discrete else (RandomForestRegressor, 1 / 3)
    trees = int(np.clip(SHARED_WORK[task.discrete] / (len(task.targets) * drawn * np.log2(drawn + 1)), 25, 200))
    estimator = forest(
        trees,
        max_features=features,
        max_samples=drawn if drawn < rows else None,
        n_jobs=min(2, os.cpu_count() or 1),
        random_state=seed,
    )
    yield Method("random_forest", joined(counts), estimator, {})


def _choose(method: Method, y: np.ndarray, train: np.ndarray, val: np.ndarray, task: NumericTask) -> dict[str, float]:
    if not method.grid:
        return {}
    if len(val) >= MIN_VALIDATION_ROWS and _learnable(y[val], task):
        folds = [(train, val)]
    else:
        if task.discrete:
            rarest = int(np.unique(y[train], return_counts=True)[1].min())
            folder = StratifiedKFold(max(2, min(5, rarest)), shuffle=True, random_state=0)
        else:
            folder = KFold(min(5, len(train)), shuffle=True, random_state=0)
        folds = [(train[fit], train[score]) for fit, score in folder.split(train, y[train])]
    search = GridSearchCV(method.estimator, method.grid, scoring=method.scoring, cv=folds, refit=False)
    return search.fit(method.inputs, y).best_params_


def _learnable(y: np.ndarray, task: NumericTask) -> bool:
    counts = np.sort(np.unique(y, return_counts=True)[1])
    return len(counts) > 1 and (not task.discrete or counts[-2] > 1)  # rows of the second most frequent class


def _predict(estimator: BaseEstimator, inputs: sparse.csr_array, width: int) -> np.ndarray:
    """Predict `[n, width]`: numbers, the probability of class 1, or those of several classes."""
    if hasattr(estimator, "n_jobs"):
        estimator.n_jobs = 1  # threads sum the trees in any order, which changes the last digit
    if not hasattr(estimator, "classes_"):
        return estimator.predict(inputs)[:, None]
    fitted = estimator.predict_proba(inputs)
    if width == 1:
        return fitted[:, 1:]
    probabilities = np.zeros((len(fitted), width))
    probabilities[:, estimator.classes_.astype(int)] = fitted
    return probabilities


def _level(y: np.ndarray, task: NumericTask) -> np.ndarray:
    """Compute the mean of each target, or the share of each of several classes, `[P]`; NaN without a value."""
    parts = []
    for column, place in zip(y.T, task.objective.places, strict=True):
        width, measured = place.columns.stop - place.columns.start, column[~np.isnan(column)]
        if not len(measured):
            parts.append(np.full(width, np.nan))
        elif width == 1:
            parts.append(np.array([measured.mean()]))
        else:
            parts.append(np.bincount(measured.astype(int), minlength=width) / len(measured))
    return np.concatenate(parts)


def _scaled(descriptors: np.ndarray, train: np.ndarray) -> sparse.csr_array:
    """Scale descriptors to clipped z-scores of the training rows `[n, D]`; 0 for an unknown one."""
    values = np.where(np.isfinite(descriptors), descriptors, np.nan).astype(np.float64)
    z = StandardScaler().fit(values[train]).transform(values)
    return sparse.csr_array(np.nan_to_num(z.clip(-CLIP, CLIP), nan=0.0))


def _counts(smiles: Sequence[str]) -> sparse.csr_array:
    """Compute Morgan counts `[n, BITS]`; sparse, which makes the forest 2 to 20 times as fast."""
    from gtx.molecules import morgan_counts

    parts = [
        sparse.csr_array(morgan_counts(smiles[start : start + CHUNK], radius=RADIUS, bits=BITS).astype(float))
        for start in range(0, len(smiles), CHUNK)
    ]
    return sparse.vstack(parts, format="csr")


# --- A baseline without a model: the mean of atoms or bonds that look alike.


def score_alike(
    objective: NumericObjective, store: MoleculeStore, split: Mapping[str, np.ndarray]
) -> dict[str, dict[str, Any]]:
    """Score the mean of the training atoms or bonds with the same codes, by part of the split."""
    level = objective.level
    y, owner = level.truth(store), level.owner(store).numpy()[:: level.rows_each]
    of = {part: np.isin(owner, rows) for part, rows in split.items()}
    means = means_of_alike(level.codes(store), objective.ideal(torch.from_numpy(y)).numpy(), of["train"])
    return {"alike": {part: objective.evaluate(y[rows], means[rows]) for part, rows in of.items()}}


def means_of_alike(codes: np.ndarray, y: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Average, float64 `[R, T]`, the training rows with the same codes; if none has a value, those with the same first
    code; else all. `codes` are `[R, K]`, `y` `[R, T]` with NaN for blanks and a value of each target in training.
    """
    means = np.broadcast_to(np.nanmean(y[train], axis=0), y.shape)
    known = pd.DataFrame(np.where(train[:, None], y, np.nan))
    for columns in (codes[:, :1], codes):
        _, group = np.unique(columns, axis=0, return_inverse=True)
        alike = known.groupby(group.reshape(-1)).transform("mean").to_numpy()
        means = np.where(np.isnan(alike), means, alike)
    return means
