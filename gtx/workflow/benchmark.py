"""Benchmark: gtx beside baselines by cross-validation, the whole of `gtx benchmark` as one function."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import as_completed
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from gtx.base.errors import InputError
from gtx.base.files import atomic_file, claim, discard, lock_folder, read_plain, write_text
from gtx.data import Split, TableWriter
from gtx.data.featurising import default_worker_count, open_process_pool
from gtx.data.table_writer import find_unused_column_name, output_header, output_row, refuse_input_as_output
from gtx.prediction.model_file import package_versions
from gtx.prediction.streaming import NOT_FINITE
from gtx.report.comparison import IN_UNITS, MEAN, compare, comparison_figure, write_figure
from gtx.report.kinds import TITLES, score
from gtx.tasks import NumericTask
from gtx.tasks.numeric import require_numeric
from gtx.training import TrainSettings
from gtx.training_data import Dataset, DataSettings, collect_data_config, load_training_table
from gtx.workflow.outputs import data_lines
from gtx.workflow.run import Run
from gtx.workflow.specs import check_model_settings

GTX = "gtx"

Result = dict[str, Any]
"""Result of a fold: `rows` (their number in each part), `test` (the indices of its molecules), `scores` (of the test
rows by method, as in `metrics.json`), `predictions` (by method `[rows][outputs]`, None for one that is not finite), and
of gtx `seconds`, `parameters` and `batch_pairs` (of each member)."""

# --- One fold.


@dataclass(frozen=True)
class Fold:
    """One fold of a benchmark, which can run in a process of its own."""

    molecules: Dataset  # with the split of the fold
    data: DataSettings
    settings: TrainSettings  # whose seed is also that of the random forest
    folder: Path
    marks: dict[str, Any]  # plain values that identify data and split

    def load(self, folder: Path | None) -> Run:
        """Load its run, in its folder or a temporary one."""
        return Run.load(self.data, self.settings, folder, lambda _: self.molecules, marks=self.marks)

    def completed(self) -> Result | None:
        """Return the result of an earlier, complete `run`; None if there is none."""
        with self.load(self.folder) as run:
            result = read_plain(self.result_file) if run.folder.finished else None
        return result if isinstance(result, dict) and {"test", "scores", "predictions"} <= result.keys() else None

    def run(self) -> Result:
        """Train and score; called again after an interruption it resumes."""
        with self.load(self.folder) as run:
            start = time.perf_counter()
            members, header = run.fit()
            blended = run.blend(members, header)
            seconds = time.perf_counter() - start
            scored, test = run.score(blended), run.molecules.split["test"]
            scores = {GTX: scored.metrics, **scored.metrics["baseline"]}
            predictions = {GTX: blended.predictions.mean, **scored.predictions}
            result = {
                "rows": run.molecules.sizes,
                "test": test.tolist(),
                "scores": {name: scores[name]["test"] for name in scores},
                "predictions": {name: _finite(predictions[name][test]) for name in scores},
                "seconds": round(seconds, 1),
                "parameters": sum(p.numel() for p in members[0].model.parameters()),
                "batch_pairs": [member.batch_pairs for member in members],
            }
            write_text(self.result_file, json.dumps(result, allow_nan=False))
            run.folder.finish()
        return result

    @property
    def result_file(self) -> Path:
        """File of its result."""
        return self.folder / "result.json"


def _finite(prediction: np.ndarray) -> list[list[float | None]]:
    return [[value if np.isfinite(value) else None for value in row] for row in prediction.tolist()]


# --- All folds.


def run_all(folds: Sequence[Fold], jobs: int, progress: bool, task: NumericTask) -> list[Result]:
    """Run every fold that has no result yet, so many at a time, and return the results of all, in their order.

    Folders are checked before any training. With several jobs, each fold runs in a process of its own. A fold that
    fails stops the rest, and so does Ctrl-C; if this process is killed, its workers end too. A bar shows the complete
    folds and their scores.
    """
    results = [fold.completed() for fold in folds]
    left = {i: fold for i, fold in enumerate(folds) if results[i] is None}
    scores = TextColumn("{task.fields[scores]}")
    columns = TextColumn("Benchmark"), BarColumn(20), TimeRemainingColumn(compact=True), scores
    bar = Progress(*columns, console=Console(stderr=True), disable=not progress, speed_estimate_period=86_400)
    with bar, ExitStack() as stack:
        place = bar.add_task("", total=len(folds), completed=len(folds) - len(left), scores=_summary(results, task))
        if min(jobs, len(left)) < 2:
            runs: Iterator[tuple[int, Result]] = ((i, fold.run()) for i, fold in left.items())
        else:
            pool = stack.enter_context(open_process_pool(min(jobs, len(left))))
            numbers = {pool.submit(fold.run): i for i, fold in left.items()}
            runs = ((numbers[future], future.result()) for future in as_completed(numbers))
        for i, result in runs:
            results[i] = result
            bar.update(place, advance=1, scores=_summary(results, task))
    return [result for result in results if result is not None]


def _summary(results: Sequence[Result | None], task: NumericTask) -> str:
    """Summarise the complete folds: their number, and the leading metric of gtx and of the best other method."""
    scores = [result["scores"] for result in results if result]
    summary = f"{len(scores)}/{len(results)} splits"
    if not scores:
        return summary
    metric, lead = next(iter(task.metrics.items()))
    rows = compare(scores, 1.0, [metric])[-len(scores[0]) :]  # for several targets the last rows are of their mean
    means = {row["method"]: row["mean"] for row in rows}
    label = f"{lead.title} ÷ the mean's" if rows[0]["target"] == MEAN and metric in IN_UNITS else lead.title
    others = [mean for method, mean in means.items() if method != GTX and mean is not None]
    best = (min if lead.lower else max)(others, default=None)
    return f"{summary}; {label} {score(means[GTX], metric)}, best baseline {score(best, metric)}"


# --- The files of a benchmark.


def write_out_of_fold(path: Path, dataset: Dataset, names: Sequence[str], results: Sequence[Result]) -> None:
    """Write every row, then `<target>_<method>` from models that were not trained on it, then error and warning."""
    (file,) = dataset.files
    methods = list(results[0]["predictions"])
    total, times = np.zeros((len(dataset.smiles), len(names), len(methods))), np.zeros(len(dataset.smiles), int)
    for result in results:
        each = [np.array(result["predictions"][method], dtype=float) for method in methods]  # None becomes NaN
        total[result["test"]] += np.stack(each, axis=-1)
        times[result["test"]] += 1
    mean = (total / np.where(times > 0, times, np.nan)[:, None, None]).reshape(len(times), -1)
    numbers = np.full((len(file.rows), mean.shape[1]), np.nan)
    numbers[dataset.rows] = mean
    for m, i in enumerate(dataset.rows.tolist()):
        row = file.rows[i]
        if np.isnan(dataset.y[m]).all():
            file.row_log.warn(row.number, None, None, "there is no target value; the row is in no fold")
        elif times[m] and np.isnan(mean[m]).any():
            column, text = row.locate(file.smiles_column)
            file.row_log.warn(row.number, column, text, f"of a method: {NOT_FINITE}")
    columns = list(file.columns)
    for name in names:
        for method in methods:
            columns.append(find_unused_column_name(columns, f"{name}_{method}"))
    with TableWriter(path, output_header(file.columns, columns[len(file.columns) :])) as writer:
        for row, values in zip(file.rows, numbers, strict=True):
            notes = file.row_log.errors.get(row.number), file.row_log.warnings.get(row.number, [])
            writer.write(output_row(row, values.tolist(), *notes))


# --- gtx and the baselines on many splits of one table: `gtx benchmark` as one function.

FEW = 5
"""Number of splits below which the t-distribution is so wide that hardly any difference is significant."""
MAX_COUNT = 10_000
"""Largest number of folds, repeats and jobs."""
MOST_AT_A_TIME = 4
"""Largest number of folds at the same time by default: each process holds torch and the molecules."""
OUTPUTS = ("benchmark.json", "benchmark.csv", "benchmark.png", "predictions.csv")


@dataclass(frozen=True)
class Benchmark:
    """Outcome of a benchmark: the rows of `gtx.report.comparison.compare`, and notes about the data and the folds."""

    out: Path
    task: NumericTask
    table: list[dict[str, Any]]
    notes: Sequence[str]


def benchmark(
    data: DataSettings,
    settings: TrainSettings,
    out: str | Path,
    *,
    test_folds: int = 5,
    repeats: int = 2,
    jobs: int | None = None,
    overwrite: bool = False,
) -> Benchmark:
    """Cross-validate gtx and the baselines; a second call resumes an interrupted benchmark.

    The rows are divided into folds, `repeats` times. Each fold has the test rows once; a tenth of the other rows are
    validation rows, and the rest are training rows. With `data.split` "random" a molecule that was measured twice stays
    in one fold, and both classes of a single classification target are spread evenly; with "scaffold", "cluster" and
    "group" each group stays in one fold. All methods are trained and tested on the same rows.

    The function writes `benchmark.json` (everything), `benchmark.csv` (the table), `benchmark.png`, and
    `predictions.csv`. In `predictions.csv`, every row of the table has the mean prediction of each method, from models
    that were not trained on the row, or an error.

    Args:
        data: settings of the table; columns and files that define a split are not used.
        settings: settings of gtx.
        out: folder of the benchmark.
        test_folds: number of folds of each repeat.
        repeats: number of divisions into folds; a later call can add more.
        jobs: number of folds at the same time, each in a process; by default one per core, at most four, one on a GPU.
        overwrite: whether earlier results in `out` are replaced.
    """
    out = Path(out)
    on_gpu = settings.accelerator != "cpu" and torch.accelerator.is_available()
    jobs = (1 if on_gpu else min(MOST_AT_A_TIME, torch.get_num_threads())) if jobs is None else jobs
    for name, value, least in (("repeats", repeats, 1), ("jobs", jobs, 1), ("test_folds", test_folds, 2)):
        if not least <= value <= MAX_COUNT:
            raise InputError(f"{name}: expected {least} to {MAX_COUNT:,}, got {value}")
    data.check_cross_validation()
    check_model_settings(settings, data.featuriser, data.features)
    with lock_folder(out):
        claim(out, (*OUTPUTS, "cache", "splits"))
        if overwrite:
            discard(out, ("cache",))
        dataset = load_training_table(
            replace(data, split="random", split_by=None, test_folds=None, test_fold=1),
            cache=out / "cache",
            progress=settings.progress,
        )
        for name in OUTPUTS:
            refuse_input_as_output(out / name, data.data)
        task = require_numeric(dataset.task, "gtx benchmark, which compares models")
        folds = _folds(dataset, data, settings, out, test_folds, repeats, jobs)
        if overwrite:
            with folds[0].load(None):  # which checks what else may be wrong
                discard(out, keep=("cache",))
        results = run_all(folds, jobs, settings.progress, task)
        scores = [result["scores"] for result in results]
        table = compare(scores, 1 / (test_folds - 1), list(task.metrics))
        notes = list(_notes(dataset, data, folds, test_folds, repeats))
        write_out_of_fold(out / "predictions.csv", dataset, task.answers.prediction_names, results)
        with atomic_file(out / "benchmark.csv") as file:
            pd.DataFrame(table).to_csv(file, index=False, float_format="%.6g")
        metric, lead = next(iter(task.metrics.items()))
        titles = {GTX: GTX} | TITLES
        write_figure(comparison_figure(scores, table, metric, titles, lead.title, data.units), out / "benchmark.png")
        record = {
            **task.config(),
            **_marks(data),
            "rows": {file.source: file.row_log.summary() for file in dataset.files},
            "test_folds": test_folds,
            "repeats": repeats,
            "settings": settings.resolve(task.epochs).decisive(),
            "test": "corrected resampled t-test (Nadeau & Bengio 2003), 95% intervals",
            "table": table,
            "splits": [{k: v for k, v in result.items() if k not in ("predictions", "test")} for result in results],
            "machine": f"{platform.machine()}, {default_worker_count()} cores, {jobs} splits at a time",
            "versions": package_versions(),
        }
        write_text(out / "benchmark.json", json.dumps(record, indent=2, allow_nan=False) + "\n")
        return Benchmark(out, task, table, notes)


def _folds(
    dataset: Dataset, data: DataSettings, settings: TrainSettings, out: Path, count: int, repeats: int, jobs: int
) -> list[Fold]:
    """Make all folds, each with a seed of its own."""
    settings = replace(settings, threads=settings.threads or max(1, default_worker_count() // jobs), progress=False)
    marks, folds = _marks(data) | {"test_folds": count}, []
    for repeat, splits in enumerate(folds_of(dataset, data, count, repeats)):
        for k, split in enumerate(splits):
            molecules = dataset.with_split(split, f"fold {k + 1} of {count}, repeat {repeat + 1}")
            seeded = replace(settings, seed=(settings.seed + repeat * count + k) % 2**32)
            folder, own = out / "splits" / f"{repeat}-{k}", marks | {"repeat": repeat, "fold": k}
            folds.append(Fold(molecules, data, seeded, folder, own))
    return folds


def _marks(data: DataSettings) -> dict[str, Any]:
    """Collect the settings that identify the data; those of a single split do not apply here."""
    single = ("split_sizes", "test_folds", "test_fold", "group_duplicates", "val", "test")
    return {k: v for k, v in collect_data_config(data).items() if k not in single}


def folds_of(dataset: Dataset, data: DataSettings, folds: int, repeats: int) -> list[list[Split]]:
    """Divide the molecules with a label into folds: the indices of each part, by repeat and fold."""
    index, rows = dataset.rows_to_split(data)
    splits = data.repeated(rows, folds, repeats)
    return [[{part: index[own] for part, own in split.items()} for split in repeat] for repeat in splits]


def _notes(dataset: Dataset, data: DataSettings, folds: Sequence[Fold], count: int, repeats: int) -> Iterator[str]:
    """Yield notes on the data, with the similarity and the warnings of the first fold, and on all folds."""
    molecules = [fold.molecules.in_folds(fold.settings.folds, data) for fold in folds]
    leaked, sizes = [each.leaked for each in molecules], [each.counts["test"] for each in molecules]
    yield from (*data_lines(molecules[0], data.features), *molecules[0].fit_task().answers.notes())
    method = data.split if data.split_by is None else f"{data.split} (column {data.split_by!r})"
    division = f"{repeats} × {count} {method} folds of {min(sizes)} to {max(sizes)} molecules"
    yield f"{dataset.task.name}; {division}, seed {data.seed}"
    if any(leaked):
        most = max(sum(pairs.values()) for pairs in leaked)
        yield f"warning: up to {most} molecules are in two sets of one fold, so the scores are too good"
    if len(sizes) < FEW:
        yield f"{len(sizes)} splits are few: with more --repeats the intervals become narrower"
