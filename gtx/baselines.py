"""Baselines without a neural network: the mean, a linear model, a random forest and kernel ridge regression.

They learn from the rows and for the targets of the model they stand beside, and see the descriptors that it sees, so
that its scores mean something.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.preprocessing import StandardScaler

from gtx.closed_form import closed_form_targets, fit_closed_form, outputs_of
from gtx.data import MoleculeStore
from gtx.errors import printable
from gtx.models import CLOSED_FORM
from gtx.report.kinds import TITLES
from gtx.tasks import MultiLevel
from gtx.tasks.multi_level import join_baselines
from gtx.tasks.numbers import NumberTask

if TYPE_CHECKING:
    from gtx.dataset import Dataset
    from gtx.kernel import KernelRidge
    from gtx.tasks import Task

RADIUS, BITS = 2, 2048
MOST_ROWS = 50_000  # of more training rows, as many are drawn at random
MOST_ROWS_OF_A_TREE = 20_000  # each tree draws its own
CLIP = 5.0  # standard deviations of a descriptor
FEWEST_TO_CHOOSE = 10  # measured validation rows for a penalty to be chosen on them
SHARED_WORK = {False: 15e6, True: 500e6}  # rows × log2(rows) × trees × targets of numbers and classes: about a minute
CHUNK = 10_000  # molecules whose counts are dense at a time


class Method(NamedTuple):
    """An estimator of one target, its inputs `[n, BITS + D]`, and the penalties to choose from, if it has one."""

    name: str
    inputs: sparse.csr_array
    estimator: BaseEstimator
    grid: dict[str, list[float]]
    scoring: str | None = None


class Baselines(NamedTuple):
    """Scores and predictions of the baselines.

    Attributes:
        scores: by baseline, `train`, `val` and `test` as of `NumberTask.evaluate`, and `settings`; all of it JSON.
        predictions: by baseline, float64 `[n, P]` of all molecules, where the task has numbers or classes of them.
    """

    scores: dict[str, dict[str, Any]]
    predictions: dict[str, np.ndarray]


def score_baselines(
    dataset: Dataset, task: Task, seed: int = 0, progress: bool = False, kernel: KernelRidge | None = None
) -> Baselines:
    """Score the usual baselines on the rows of a data set, beside a model that learned the fitted task from them.

    Args:
        dataset: molecules, targets and split.
        task: fitted; one that is not of numbers or classes of molecules has its own baselines, if any.
        seed: as of `baselines`.
        progress: say on standard error what is under way.
        kernel: as of `predict_baselines`.
    """
    from rich.console import Console
    from rich.markup import escape

    if isinstance(task, MultiLevel):
        of_parts = [score_baselines(task.seen_by(part, dataset), part, seed, progress, kernel) for part in task.parts]
        predictions = {name: each for part in of_parts for name, each in part.predictions.items()}
        return Baselines(join_baselines([part.scores for part in of_parts], task.parts), predictions)
    if not isinstance(task, NumberTask):
        return Baselines(task.baselines(dataset.store, dataset.split), {})
    console = Console(stderr=True, quiet=not progress)
    with console.status("Baselines") as status:

        def show(line: str) -> None:
            status.update(escape(printable(line, None)))  # a target may be called "IC50 [nM]"

        more = {"seed": seed, **beside(dataset.store, task), "kernel": kernel}
        return baselines(dataset.smiles, dataset.y, dataset.split, task, progress=show, **more)


def baselines(
    smiles: Sequence[str], y: np.ndarray, split: Mapping[str, np.ndarray], task: NumberTask, **more: Any
) -> Baselines:
    """Score the usual baselines on the split of a model; arguments as of `predict_baselines`."""
    y, found = np.asarray(y, dtype=np.float64), Baselines({}, {})
    for name, prediction, settings in predict_baselines(smiles, y, split, task, **more):
        scores = {part: task.evaluate(y[rows], prediction[rows]) for part, rows in split.items()}
        found.scores[name] = scores | {"settings": settings}
        found.predictions[name] = prediction
    return found


def beside(store: MoleculeStore, task: NumberTask) -> dict[str, Any]:
    """Collect the inputs that a model reads and its baselines shall read too, as arguments of `baselines`: `store`,
    `descriptors`, `known`."""
    return {"store": store, "descriptors": store.descriptors.cpu().numpy(), "known": task.known_part(store)}


def predict_baselines(
    smiles: Sequence[str],
    y: np.ndarray,
    split: Mapping[str, np.ndarray],
    task: NumberTask,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
    descriptors: np.ndarray | None = None,
    known: np.ndarray | None = None,
    store: MoleculeStore | None = None,
    kernel: KernelRidge | None = None,
) -> Iterator[tuple[str, np.ndarray, dict[str, Any]]]:
    """Each baseline's name, its predictions `[n, P]` of all rows (of classes, probabilities) and its settings.

    `mean` predicts each target's mean over the training rows (for classes, their shares). The others read Morgan
    counts (https://doi.org/10.1021/ci100050t) and, where there are any, descriptors as clipped z-scores of the training
    rows, an unknown one at the mean; they learn each target from the training rows where it is measured:

    - `ridge`, for classes `logistic`, for counts `poisson`: a linear model. Its penalty is chosen on the validation
      rows, as the epoch of the model is, or by 5-fold cross-validation on the training rows where fewer than ten of
      those are measured.
    - `random_forest` (Breiman 2001, https://doi.org/10.1023/A:1010933404324): fully grown trees, each split choosing
      among a third of the columns, for classes among the root of their number; one forest per target, which scores
      better than one forest for all.
    - `kernel`: kernel ridge regression on circular substructures and descriptors (`gtx.kernel.KernelRidge`), where
      there is a store.

    On two cores 10,000 molecules with five targets take about two minutes. More of either takes little longer: there
    are fewer trees then, and of more than 50,000 training rows as many are drawn at random.

    Args:
        smiles: n molecules that can be read.
        y: `[n, T]` in the targets' own units, or numbers of classes; NaN for blanks.
        split: row indices of "train", "val" and "test".
        task: what is predicted.
        seed: decides the forest, and which rows are drawn.
        progress: called with a line of text whenever something new begins.
        descriptors: `[n, D]`, NaN where one is unknown; None reads the counts alone.
        known: `[n, T]`, what the model's reference per element says; all but `mean` learn the rest.
        store: the molecules as the model reads them, with its targets.
        kernel: that was solved for the task on the training rows; by default one is.
    """
    progress = progress or (lambda line: None)
    y, names = np.asarray(y, dtype=np.float64), task.targets
    yield "mean", np.tile(_level(y[split["train"]], task), (len(y), 1)), {}

    progress(f"Morgan counts of {len(smiles)} molecules")
    counts = _counts(smiles)
    train = split["train"]
    if len(train) > MOST_ROWS:
        train = np.sort(np.random.default_rng(seed).choice(train, MOST_ROWS, replace=False))
    read, scaled = f"Morgan counts, radius {RADIUS}, {BITS} bits", None
    if descriptors is not None and descriptors.shape[1]:
        read, scaled = f"{read}, and {descriptors.shape[1]} descriptors", _scaled(descriptors, train)
    if known is None:
        known = np.zeros_like(y)
    else:
        read += "; extensive targets minus the model's reference per element"
    rest = y - known
    level = _level(rest[split["train"]], task)
    for method in _methods(counts, scaled, task, len(train), seed):
        prediction = np.tile(level, (len(y), 1))
        settings = {"inputs": read, "training_rows": len(train)}
        settings |= _forest_settings(method.estimator)
        for t, (target, columns) in enumerate(task.places):
            progress(f"{TITLES[method.name]}: {target} ({t + 1} of {len(names)})")
            learn, choose = (rows[~np.isnan(y[rows, t])] for rows in (train, split["val"]))
            if _learnable(rest[learn, t], task):  # else the mean is all there is to learn
                penalty = _choose(method, rest[:, t], learn, choose, task)
                fitted = clone(method.estimator).set_params(**penalty).fit(method.inputs[learn], rest[learn, t])
                prediction[:, columns] = _predict(fitted, method.inputs, columns.stop - columns.start)
                for key, value in penalty.items():
                    settings.setdefault(key, {})[target] = value
            if not task.discrete:
                prediction[:, columns] += known[:, [t]]
        yield method.name, task.admissible(prediction), settings
    store = None if store is None else store.with_targets(y)
    if (
        store is not None
        and closed_form_targets(task, store) is not None
        and not np.isnan(y[split["train"]]).all(0).any()
    ):
        progress(TITLES["kernel"])
        yield "kernel", *_by_similarity(store, split["train"], task, kernel)


def _by_similarity(
    store: MoleculeStore, train: np.ndarray, task: NumberTask, kernel: KernelRidge | None
) -> tuple[np.ndarray, dict[str, Any]]:
    """Predictions of a kernel, and its settings."""
    if kernel is None:
        kernel = CLOSED_FORM["kernel"](task.num_predictions, num_descriptors=store.descriptors.shape[1])
        fit_closed_form(kernel, task, store.subset(train))
    outputs = outputs_of(deepcopy(kernel).cpu(), store)
    share = 0.0 if kernel.descriptors is None else float(kernel.descriptors.share)
    settings = {"descriptors": round(share, 6), "training_rows": len(train), "ridge": kernel.ridge.tolist()}
    return task.plain.unscaled(outputs, store).numpy(), settings


def _methods(
    counts: sparse.csr_array, descriptors: sparse.csr_array | None, task: NumberTask, rows: int, seed: int
) -> Iterator[Method]:
    def joined(counts: sparse.csr_array) -> sparse.csr_array:
        return counts if descriptors is None else sparse.hstack([counts, descriptors], format="csr")

    if task.log_linear:
        grid = {"alpha": np.logspace(-4, 2, 7).tolist()}
        linear = PoissonRegressor(max_iter=300)
        yield Method("poisson", joined(counts.log1p()), linear, grid, "neg_mean_poisson_deviance")
    elif not task.discrete:
        # counts as they are: a sum of group contributions, which scaled or squashed counts fit worse
        linear = Ridge(solver="lsqr", tol=1e-5)
        grid = {"alpha": np.logspace(-2, 4, 13).tolist()}
        yield Method("ridge", joined(counts), linear, grid, "neg_mean_squared_error")
    else:
        grid = {"C": np.logspace(-4, 2, 13).tolist()}
        # validation rows may lack one of many classes, for which the log loss is not defined
        scoring = "neg_log_loss" if task.num_predictions == len(task.targets) else "balanced_accuracy"
        yield Method("logistic", joined(counts.log1p()), LogisticRegression(max_iter=2000), grid, scoring)

    drawn = min(rows, MOST_ROWS_OF_A_TREE)
    forest, features = (RandomForestClassifier, "sqrt") if task.discrete else (RandomForestRegressor, 1 / 3)
    criterion = {"criterion": "poisson"} if task.log_linear else {}
    trees = int(np.clip(SHARED_WORK[task.discrete] / (len(task.targets) * drawn * np.log2(drawn + 1)), 25, 200))
    estimator = forest(
        trees,
        max_features=features,
        max_samples=drawn if drawn < rows else None,
        n_jobs=min(2, os.cpu_count() or 1),
        random_state=seed,
        **criterion,
    )
    yield Method("random_forest", joined(counts), estimator, {})


def _choose(method: Method, y: np.ndarray, train: np.ndarray, val: np.ndarray, task: NumberTask) -> dict[str, float]:
    if not method.grid:
        return {}
    if len(val) >= FEWEST_TO_CHOOSE and _learnable(y[val], task):
        folds = [(train, val)]
    else:
        folds = [(train[fit], train[score]) for fit, score in _folder(y[train], task).split(train, y[train])]
    search = GridSearchCV(method.estimator, method.grid, scoring=method.scoring, cv=folds, refit=False)
    return search.fit(method.inputs, y).best_params_


def _folder(y: np.ndarray, task: NumberTask) -> KFold | StratifiedKFold:
    if not task.discrete:
        return KFold(min(5, len(y)), shuffle=True, random_state=0)
    return StratifiedKFold(max(2, min(5, _smallest_class(y))), shuffle=True, random_state=0)


def _learnable(y: np.ndarray, task: NumberTask) -> bool:
    return len(np.unique(y)) > 1 and (not task.discrete or _second_class(y) > 1)


def _second_class(y: np.ndarray) -> int:
    """Count the rows of the second most frequent class."""
    return int(np.sort(np.unique(y, return_counts=True)[1])[-2])


def _smallest_class(y: np.ndarray) -> int:
    return int(np.unique(y, return_counts=True)[1].min())


def _predict(estimator: BaseEstimator, inputs: sparse.csr_array, width: int) -> np.ndarray:
    """`[n, width]`: numbers, the probability of class 1, or that of each of several classes."""
    if hasattr(estimator, "n_jobs"):
        estimator.n_jobs = 1  # threads add up the trees in an order of their own, and the last digit with it
    if not hasattr(estimator, "classes_"):
        return estimator.predict(inputs)[:, None]
    found = estimator.predict_proba(inputs)
    if width == 1:
        return found[:, 1:]
    every = np.zeros((len(found), width))
    every[:, estimator.classes_.astype(int)] = found
    return every


def _forest_settings(estimator: BaseEstimator) -> dict[str, Any]:
    names = {"n_estimators": "trees", "max_features": "max_features", "max_samples": "rows_per_tree"}
    values = estimator.get_params()
    return {word: values[name] for name, word in names.items() if values.get(name) is not None}


def _level(y: np.ndarray, task: NumberTask) -> np.ndarray:
    """`[P]`: the mean of each target, or the share of each of several classes; NaN of nothing."""
    parts = []
    for column, place in zip(y.T, task.places, strict=True):
        width, measured = place.columns.stop - place.columns.start, column[~np.isnan(column)]
        if not len(measured):
            parts.append(np.full(width, np.nan))
        elif width == 1:
            parts.append(np.array([measured.mean()]))
        else:
            parts.append(np.bincount(measured.astype(int), minlength=width) / len(measured))
    return np.concatenate(parts)


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
