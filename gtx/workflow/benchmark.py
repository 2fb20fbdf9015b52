"""Benchmark: gtx beside baselines by cross-validation, and its files."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gtx.data import Split, TableWriter, default_workers, fresh_name, leakage, nearest
from gtx.data.table_writer import output_header, output_row
from gtx.dataset import Dataset, DataSettings, LabelledMolecules, candidates, fingerprint, load, spread
from gtx.dataset.loading import describe_duplicates
from gtx.errors import InputError
from gtx.files import write_text
from gtx.folders import claim, discard
from gtx.prediction import library_versions
from gtx.prediction.streaming import NOT_FINITE
from gtx.report.comparison import compare
from gtx.report.kinds import TITLES, count
from gtx.tasks import NumberTask
from gtx.training import TrainSettings, exclusive
from gtx.workflow.fold import OWN, Fold, run_all, seeded
from gtx.workflow.plan import Plan
from gtx.workflow.specs import check_model

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
    settings = settings.settled(dataset.task.epochs)
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
