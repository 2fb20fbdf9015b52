"""Benchmark: gtx beside baselines by cross-validation, the whole of `gtx benchmark` as one function."""

from __future__ import annotations

import json
import platform
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import as_completed
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from joblib.externals.loky import ProcessPoolExecutor
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from gtx.baselines import beside, predict_baselines
from gtx.data import Split, TableWriter, default_workers, fresh_name, leakage, nearest, process_pool, stop_workers
from gtx.data.table_writer import output_header, output_row
from gtx.dataset import Dataset, DataSettings, LabelledMolecules, candidates, fingerprint, load, spread
from gtx.dataset.loading import describe_duplicates
from gtx.errors import InputError
from gtx.files import claim, discard, read_plain, write_text
from gtx.prediction import library_versions
from gtx.prediction.streaming import NOT_FINITE
from gtx.report.comparison import IN_UNITS, MEAN, compare
from gtx.report.kinds import TITLES, count, score
from gtx.tasks import NumberTask
from gtx.training import RunFolder, TrainSettings, exclusive
from gtx.workflow.plan import Plan
from gtx.workflow.specs import check_model

OWN = "gtx"
PATIENCE = 0.5  # seconds between looks at how far the splits have come

Results = list[dict[str, Any] | None]

# --- One fold.


@dataclass(frozen=True)
class Fold:
    """One fold of a benchmark, with all it takes to run it in a process of its own.

    Attributes:
        plan: how gtx trains; the seed of its settings also decides the forest.
        folder: where its run lies.
    """

    plan: Plan
    folder: Path

    def found(self) -> dict[str, Any] | None:
        """Return the scores that an earlier `run` found, if it was completed.

        Raises:
            InputError: the folder holds a run of other settings, data or rows.
        """
        run = RunFolder(self.folder)
        run.open(self.plan.config)
        found = read_plain(self.result_file) if run.finished else None
        return found if isinstance(found, dict) and {"test", "scores", "predictions"} <= found.keys() else None

    def run(self) -> dict[str, Any]:
        """Train and score; called again after an interruption it goes on.

        Returns:
            `rows` (how many of each part), `test` (their molecule indices), `scores` (by method, of the test rows, as
            of `NumberTask.evaluate`), `predictions` (by method `[rows][outputs]`, None where there is no finite
            number), `seconds`, `parameters` and `batch_pairs` (as trained with, of each member) of gtx.

        Raises:
            InputError: the folder holds a run of other settings, data or rows, or training is impossible.
        """
        begun, plan = time.perf_counter(), self.plan
        members, header = plan.fit(self.folder)
        both = plan.blend(members, header)
        molecules, task, test = plan.molecules, plan.task, plan.molecules.split["test"]
        predictions = {OWN: both.answers.mean[test]}
        seconds = time.perf_counter() - begun
        y, more = molecules.y, {"seed": plan.settings.seed, **beside(molecules.store, task), "kernel": both.kernel}
        for name, prediction, _ in predict_baselines(molecules.smiles, y, molecules.split, task, **more):
            predictions[name] = prediction[test]
        result = {
            "rows": molecules.counts,
            "test": test.tolist(),
            "scores": {name: task.evaluate(y[test], prediction) for name, prediction in predictions.items()},
            "predictions": {name: _plain(prediction) for name, prediction in predictions.items()},
            "seconds": round(seconds, 1),
            "parameters": sum(p.numel() for p in members[0].model.parameters()),
            "batch_pairs": [member.batch_pairs for member in members],
        }
        write_text(self.result_file, json.dumps(result, allow_nan=False))
        RunFolder(self.folder).finish()
        return result

    @property
    def result_file(self) -> Path:
        """Where its result lies."""
        return self.folder / "result.json"

    def epochs_done(self) -> int:
        """Epochs that gtx has come through, of `epochs` times `ensemble` of the settings; all where it is done."""
        if self.result_file.exists():
            return self.plan.settings.epochs * self.plan.settings.ensemble
        logs = self.folder.glob("members/*/log.csv")
        return sum(max(0, len(log.read_bytes().splitlines()) - 1) for log in logs)


def seeded(settings: TrainSettings, number: int) -> TrainSettings:
    """The settings of split `number`: another seed for each, and nothing on the terminal."""
    return replace(settings, seed=settings.seed + number, progress=False)


def _plain(prediction: np.ndarray) -> list[list[float | None]]:
    return [[value if np.isfinite(value) else None for value in row] for row in prediction.tolist()]


# --- All folds, and one bar for them.


def run_all(folds: Sequence[Fold], jobs: int, progress: bool) -> list[dict[str, Any]]:
    """Run every fold that has no result yet; the results of all, in their order.

    A split that fails stops the rest, and so does Ctrl-C; when this process is killed, those it started end too, or two
    would write to one folder later.

    Args:
        folds: the splits.
        jobs: how many at a time; 1 works in this process, more start one each.
        progress: show a progress bar.

    Raises:
        InputError: a folder holds a run of other settings or data (said before anything is trained), or training is
            impossible.
    """
    results: Results = [fold.found() for fold in folds]
    left = {i: fold for i, fold in enumerate(folds) if results[i] is None}
    with _bar(folds, results, progress):
        if min(jobs, len(left)) < 2:
            for i, fold in left.items():
                results[i] = fold.run()
        else:
            with _workers(min(jobs, len(left))) as pool:
                numbers = {pool.submit(fold.run): i for i, fold in left.items()}
                for done in as_completed(numbers):
                    results[numbers[done]] = done.result()
    return results


@contextmanager
def _workers(count: int) -> Iterator[ProcessPoolExecutor]:
    pool = process_pool(count)
    try:
        yield pool
    except BaseException:
        stop_workers(pool)
        raise
    pool.shutdown()


@contextmanager
def _bar(folds: Sequence[Fold], results: Results, shown: bool) -> Iterator[None]:
    """Epochs done of all splits, as their logs say, until the block ends."""
    columns = (
        TextColumn("Benchmark"),
        BarColumn(20),
        TaskProgressColumn(),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[scores]}"),
    )
    ended = threading.Event()
    with Progress(*columns, console=Console(stderr=True), disable=not shown, speed_estimate_period=600) as bar:
        task = bar.add_task("", total=sum(f.plan.settings.epochs * f.plan.settings.ensemble for f in folds), scores="")

        def refresh() -> None:
            completed = sum(fold.epochs_done() for fold in folds)
            bar.update(task, completed=completed, scores=_words(results, folds[0].plan.task))

        def follow() -> None:
            while not ended.wait(PATIENCE):
                refresh()

        follower = threading.Thread(target=follow, daemon=True)
        follower.start()
        try:
            yield
        finally:
            ended.set()
            follower.join()
            refresh()


def _words(results: Results, task: NumberTask) -> str:
    """Splits done, and the leading metric of gtx and of the best other method as far as they have come."""
    found = [result["scores"] for result in results if result]
    words = f"{len(found)}/{len(results)} splits"
    if not found:
        return words
    metric, lead = next(iter(task.metrics.items()))
    rows = compare(found, 1.0, [metric])[-len(found[0]) :]  # of several targets the last are of their mean
    means = {row["method"]: row["mean"] for row in rows}
    label = lead.title + " ÷ the mean's" * (rows[0]["target"] == MEAN and metric in IN_UNITS)
    others = [mean for method, mean in means.items() if method != OWN and mean is not None]
    best = (min if lead.lower else max)(others, default=None)
    return f"{words}; {label} {score(means[OWN], metric)}, best baseline {score(best, metric)}"


# --- The files of a benchmark.


def write_out_of_fold(path: Path, dataset: Dataset, names: Sequence[str], results: Sequence[dict[str, Any]]) -> None:
    """Every row as it was, then `<target>_<method>` from models that had not seen it, then error and warning."""
    (file,) = dataset.files
    methods = list(results[0]["predictions"])
    mean, times = _out_of_fold(len(dataset.smiles), methods, results)
    numbers = np.full((len(file.rows), mean.shape[1]), np.nan)
    numbers[dataset.rows] = mean
    for m, i in enumerate(dataset.rows.tolist()):
        row = file.rows[i]
        if np.isnan(dataset.y[m]).all():
            file.ledger.warn(row.number, None, None, "there is no target value; the row is in no fold")
        elif times[m] and np.isnan(mean[m]).any():
            file.ledger.warn(row.number, *row.place(file.smiles_column), f"of a method: {NOT_FINITE}")
    columns = list(file.columns)
    for name in names:
        for method in methods:
            columns.append(fresh_name(columns, f"{name}_{method}"))
    with TableWriter(path, output_header(file.columns, columns[len(file.columns) :])) as writer:
        for row, values in zip(file.rows, numbers, strict=True):
            notes = file.ledger.errors.get(row.number), file.ledger.warnings.get(row.number, [])
            writer.write(output_row(row, values.tolist(), *notes))


def write_comparison(path: Path, table: Sequence[dict[str, Any]]) -> None:
    """The rows of `gtx.report.comparison.compare`; an empty cell is what is not defined."""

    def cell(value: Any) -> str:
        return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)

    with TableWriter(path, list(table[0])) as writer:
        for row in table:
            writer.write([cell(value) for value in row.values()])


def write_picture(
    path: Path,
    results: Sequence[dict[str, Any]],
    table: Sequence[dict[str, Any]],
    task: NumberTask,
    units: dict[str, str],
) -> None:
    """The leading metric, split by split, and the differences."""
    from gtx.report.comparison import comparison_figure, write_figure

    metric, lead = next(iter(task.metrics.items()))
    scores = [result["scores"] for result in results]
    write_figure(comparison_figure(scores, table, metric, {OWN: OWN} | TITLES, lead.title, units), path)


def _out_of_fold(
    molecules: int, methods: Sequence[str], results: Sequence[dict[str, Any]]
) -> tuple[np.ndarray, np.ndarray]:
    """Mean predictions `[m, T * methods]` over repeats, target by target, and how often a molecule was test, `[m]`."""
    targets = len(results[0]["predictions"][methods[0]][0])
    total, times = np.zeros((molecules, targets, len(methods))), np.zeros(molecules, int)
    for result in results:
        each = [np.array(result["predictions"][method], dtype=float) for method in methods]  # None becomes NaN
        total[result["test"]] += np.stack(each, axis=-1)
        times[result["test"]] += 1
    mean = total / np.where(times > 0, times, np.nan)[:, None, None]
    return mean.reshape(molecules, -1), times


# --- gtx and the baselines on many splits of one table: the whole of `gtx benchmark`, as one function.

FEW = 5
"""Fewer splits leave the t-distribution so wide that hardly any difference is one."""
MOST = 10_000
"""No count that is asked for is larger."""
OUTPUTS = ("benchmark.json", "benchmark.csv", "benchmark.png", "predictions.csv")


@dataclass(frozen=True)
class Benchmark:
    """Outcome of a benchmark.

    Attributes:
        out: its folder.
        task: what was learned.
        table: rows as of `gtx.report.comparison.compare`.
        notes: what was said of the data and the folds, a line each.
    """

    out: Path
    task: NumberTask
    table: list[dict[str, Any]]
    notes: Sequence[str]


@exclusive("out")
def benchmark(
    data: DataSettings,
    settings: TrainSettings,
    out: str | Path,
    *,
    folds: int = 5,
    repeats: int = 2,
    jobs: int = 1,
    overwrite: bool = False,
) -> Benchmark:
    """Cross-validate gtx beside the baselines; called again it goes on where it was stopped.

    The rows are dealt to folds, `repeats` times anew; each fold is test once, a tenth of the other rows chooses the
    epoch (and the ridge's penalty), the rest trains. With `data.split` "random" a molecule measured twice stays in one
    fold, and of a single classification target both classes are spread evenly; with "scaffold", "cluster", "kmeans"
    and "group" what the split keeps together stays in one fold. All methods learn from the same rows and predict the
    same others.

    Writes `benchmark.json` (everything), `benchmark.csv` (the table), `benchmark.png`, and `predictions.csv`: every row
    of the table as it was, with each method's mean prediction from models that had not seen it, or an error.

    Args:
        data: the table; columns and files that spell out a split have no meaning here.
        settings: how gtx trains.
        out: the benchmark's folder.
        folds: of each repeat.
        repeats: how often the rows are dealt anew; more can be added later.
        jobs: splits at a time, each in a process of its own.
        overwrite: start anew whatever `out` holds.

    Raises:
        InputError: the input, the settings or `out` cannot be used, or another process trains there.
    """
    out = Path(out)
    for name, value, least in (("repeats", repeats, 1), ("jobs", jobs, 1), ("folds", folds, 2)):
        if not least <= value <= MOST:
            raise InputError(f"{name}: expected {least} to {MOST:,}, got {value}")
    data.split_settings.grouping()
    check_model(settings, data.featuriser, data.features)
    claim(out, (*OUTPUTS, "cache", "splits"))
    if overwrite:
        discard(out, ("cache",))
    dataset = load(
        replace(data, split="random", split_by=None, folds=None, fold=1),
        cache=out / "cache",
        progress=settings.progress,
    )
    if not isinstance(dataset.task, NumberTask):
        raise InputError(
            f"a benchmark is of numbers or classes; there are no baselines for the task {dataset.task.name}"
        )
    settings = settings.resolved(dataset.task.epochs)
    runs = _folds(dataset, data, settings, out, folds, repeats, jobs)
    if overwrite:
        discard(out, keep=("cache",))
    results = run_all(runs, jobs, settings.progress)
    table = compare([result["scores"] for result in results], 1 / (folds - 1), list(dataset.task.metrics))
    notes = list(_notes(dataset, data, runs, folds, repeats))
    write_out_of_fold(out / "predictions.csv", dataset, dataset.task.prediction_names, results)
    write_comparison(out / "benchmark.csv", table)
    write_picture(out / "benchmark.png", results, table, dataset.task, data.units)
    record = {
        **dataset.task.config(),
        **_marks(data),
        "rows": {file.source: file.ledger.summary() for file in dataset.files},
        "folds": folds,
        "repeats": repeats,
        "settings": settings.decisive(),
        "test": "corrected resampled t-test (Nadeau & Bengio 2003), 95% intervals",
        "table": table,
        "splits": [{k: v for k, v in result.items() if k not in ("predictions", "test")} for result in results],
        "machine": f"{platform.machine()}, {default_workers()} cores, {jobs} splits at a time",
        "versions": library_versions(),
    }
    write_text(out / "benchmark.json", json.dumps(record, indent=2, allow_nan=False) + "\n")
    return Benchmark(out, dataset.task, table, notes)


def _folds(
    dataset: Dataset, data: DataSettings, settings: TrainSettings, out: Path, folds: int, repeats: int, jobs: int
) -> list[Fold]:
    threads = settings.threads or max(1, default_workers() // jobs)
    marks = _marks(data) | {"folds": folds}
    runs, dealt = [], folds_of(dataset, data, folds, repeats)
    for repeat in range(repeats):
        for fold, split in enumerate(dealt[repeat]):
            own = replace(seeded(settings, repeat * folds + fold), threads=threads)
            words = f"fold {fold + 1} of {folds}, repeat {repeat + 1}"
            molecules = LabelledMolecules(
                dataset.task, dataset.store, dataset.smiles, split, words, dataset.smiles_column
            )
            plan = Plan.make(molecules, data, own, marks=marks | {"repeat": repeat, "fold": fold})
            runs.append(Fold(plan, out / "splits" / f"{repeat}-{fold}"))
    return runs


def _marks(data: DataSettings) -> dict[str, Any]:
    """Collect the settings that identify the data; those of a single split do not apply here."""
    single = ("split_sizes", "folds", "fold", "group_duplicates", "val", "test")
    return {k: v for k, v in fingerprint(data).items() if k not in single}


def folds_of(dataset: Dataset, data: DataSettings, folds: int, repeats: int) -> list[list[Split]]:
    """Molecule indices, of each repeat and fold; molecules without any label are in none."""
    labelled = np.flatnonzero(~np.isnan(dataset.y).all(axis=1))
    smiles = [dataset.smiles[i] for i in labelled]
    kept, rows = candidates(dataset.files, data.split_settings, dataset.rows[labelled], smiles)
    labelled = labelled[kept]
    dealt = data.split_settings.repeated(rows, folds, repeats, spread(dataset.task, dataset.y[labelled]))
    return [[{part: labelled[index] for part, index in split.items()} for split in repeat] for repeat in dealt]


def _notes(dataset: Dataset, data: DataSettings, runs: Sequence[Fold], folds: int, repeats: int) -> Iterator[str]:
    leaked = [leakage(dataset.smiles, run.plan.molecules.split) for run in runs]
    for file in dataset.files:
        yield f"{file.source}: {file.ledger.summary()}"
    if dataset.duplicates.molecules:
        yield f"repeated: {describe_duplicates(dataset)}" + "; each molecule stays in one fold" * (not any(leaked))
    kind = data.split if data.split_by is None else f"{data.split} (column {data.split_by!r})"
    sizes = [run.plan.molecules.counts["test"] for run in runs]
    dealt = f"{repeats} × {folds} {kind} folds of {min(sizes)} to {max(sizes)} molecules"
    yield f"{dataset.task.name}; {dealt}, seed {data.seed}"
    if any(leaked):
        most = max(sum(pairs.values()) for pairs in leaked)
        yield f"warning: up to {most} molecules stand in two parts of one fold's split, which flatters the scores"
    near = nearest(dataset.smiles, runs[0].plan.molecules.split).summary()
    yield f"Tanimoto similarity of the first fold to the nearest training molecules: {near}"
    if len(sizes) < FEW:
        yield f"{len(sizes)} splits are few: with more --repeats the intervals become narrower"
    if unlabelled := len(dataset.smiles) - int((~np.isnan(dataset.y).all(axis=1)).sum()):
        yield f"in no fold: {count(unlabelled, 'molecule')} without any target value"
