"""All runs as two tables: `runs.csv`, a line for each run, and `predictions.parquet`, their predictions of test rows.

    python -m experiments.archive elsewhere/results      # copies the runs of another folder of results

A run is known by its recipe (benchmark, tuning, learning, batch_rate, ablation, sequence or speed), its set and its
name. Several processes may add runs at once: each waits for a lock, and the lock of a process that is killed is free. A
run exists once it has its line; its predictions are written before. A process that is killed between the two leaves all
other runs as they were.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock

from experiments.sheet import Record, Sheet

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "experiments" / "results"
RUNS, PREDICTIONS = "runs.csv", "predictions.parquet"
PARTS = ("train", "val", "test")
METRICS = ("rmse", "mae", "r2", "roc_auc", "pr_auc", "accuracy", "loss", "per_target")
_TEXT = """recipe folder name set split model title task metric commit date command machine.processor machine.system
sha256.data sha256.split"""
_COUNTS = "seed rows.train rows.val rows.test"
_FIGURES = "parameters seconds cpu_seconds resumed best_epoch machine.cores machine.threads versions settings"
SHEET = Sheet(
    tuple(_TEXT.split()),
    (*_COUNTS.split(), *(f"{part}.{metric}" for part in PARTS for metric in METRICS), *_FIGURES.split()),
)
"""A line of `runs.csv`."""
KEY = ("recipe", "folder", "name")
"""What a run is known by."""
_WORDS = ("folder", "name", "target")
SCHEMA = pa.schema(
    {
        **dict.fromkeys(_WORDS, pa.dictionary(pa.int32(), pa.string())),
        "row": pa.int32(),
        "prediction": pa.float32(),
        "measured": pa.float64(),
    }
)
"""A line of `predictions.parquet`."""
COMPRESSION = {"compression": "zstd", "compression_level": 19}
COMPRESSION |= {"use_dictionary": [*_WORDS, "row"], "use_byte_stream_split": ["prediction"]}
DIGITS = 6
"""Of a prediction: as many as a float32 holds, so that the decimal number comes back as it was."""


class KeptPredictions(NamedTuple):
    """What a run predicted of its test rows.

    Attributes:
        rows: of the table, from 0, `[n]`.
        names: of the targets.
        values: `[n, T]`; to six digits once they are kept.
        measured: `[n, T]`, of a set that is no table; else None.
    """

    rows: np.ndarray
    names: tuple[str, ...]
    values: np.ndarray
    measured: np.ndarray | None = None


def runs(results: Path, recipe: str = "benchmark", folder: str | None = None) -> list[Record]:
    """The runs of a recipe, or of one of its sets, by set and name.

    Args:
        results: the folder of all results.
        recipe: one of those above.
        folder: of the set, such as `scaffold-esol`.
    """
    found = (run for run in SHEET.read(results / RUNS) if run["recipe"] == recipe)
    return [run for run in found if folder in (None, run["folder"])]


def run_named(results: Path, folder: str, name: str, recipe: str = "benchmark") -> Record | None:
    """One run, or None where it is not there."""
    return next((run for run in runs(results, recipe, folder) if run["name"] == name), None)


def predicted_runs(results: Path) -> list[Record]:
    """The runs of all benchmarks; what each predicted stands under `predictions`, where it was kept."""
    found = runs(results)
    for run in found:
        if (own := predictions(results, run)) is not None:
            run["predictions"] = own
    return found


def predictions(results: Path, run: Record) -> KeptPredictions | None:
    """What a run predicted; None where that was not kept."""
    file = results / PREDICTIONS
    frames = _frames(file, file.stat().st_mtime_ns) if file.exists() else {}
    if (own := frames.get((run["folder"], run["name"]))) is None:
        return None
    names = tuple(own["target"].unique())
    digits = [float(f"{value:.{DIGITS}g}") for value in own["prediction"]]
    values, measured = (np.reshape(column, (len(names), -1)).T for column in (digits, own["measured"].to_numpy()))
    rows = own["row"].to_numpy()[: len(values)].astype(int)
    return KeptPredictions(rows, names, values, None if np.isnan(measured).all() else measured)


def lock(results: Path) -> FileLock:
    """To be held while a table is read and written."""
    results.mkdir(parents=True, exist_ok=True)
    return FileLock(results / f"{RUNS}.lock")


def put(results: Path, run: Record, predicted: KeptPredictions | None = None) -> None:
    """Add a run, or put it in the place of one of the same recipe, set and name."""
    put_all(results, [(run, predicted)])


def put_all(results: Path, added: Sequence[tuple[Record, KeptPredictions | None]]) -> None:
    """`put` for several runs."""
    with lock(results):
        keys, held = {_key(run) for run, _ in added}, SHEET.read(results / RUNS)
        others = [run for run in held if _key(run) not in keys]
        if len(others) < len(held):  # lines go first: never an old line beside new predictions
            SHEET.write(results / RUNS, others)
        if frames := [_frame(run, predicted) for run, predicted in added if predicted is not None]:
            _add_predictions(results / PREDICTIONS, pd.concat(frames))
        SHEET.write(results / RUNS, sorted([*others, *(run for run, _ in added)], key=_key))


def take_over(results: Path, other: Path) -> int:
    """Put all runs of another folder of results, but those of speed, into this one; how many."""
    found = [run for run in SHEET.read(other / RUNS) if run["recipe"] != "speed"]
    put_all(results, [(run, predictions(other, run) if run["recipe"] == "benchmark" else None) for run in found])
    return len(found)


def _key(run: Record) -> tuple[str, ...]:
    return tuple(run[name] for name in KEY)


@lru_cache(maxsize=1)
def _frames(file: Path, changed: int) -> dict[tuple[str, str], pd.DataFrame]:
    """The lines of each set and run, in a file as it was at a moment."""
    frame = pq.read_table(file).to_pandas()
    return dict(iter(frame.groupby(["folder", "name"], observed=True, sort=False)))


def _frame(run: Record, predicted: KeptPredictions) -> pd.DataFrame:
    """Target by target, row by row."""
    n, count = predicted.values.shape
    columns = {
        "folder": run["folder"],
        "name": run["name"],
        "target": np.repeat(predicted.names, n),
        "row": np.tile(predicted.rows, count),
        "prediction": [float(f"{value:.{DIGITS}g}") for value in predicted.values.T.ravel()],
        "measured": np.nan if predicted.measured is None else predicted.measured.T.ravel(),
    }
    return pd.DataFrame(columns)


def _add_predictions(file: Path, added: pd.DataFrame) -> None:
    """Those of other runs stay."""
    if file.exists():
        held, runs = pq.read_table(file).to_pandas(), ["folder", "name"]
        stays = ~pd.MultiIndex.from_frame(held[runs]).isin(pd.MultiIndex.from_frame(added[runs]))
        added = pd.concat([held[stays], added])
    partial = file.with_suffix(".partial")
    pq.write_table(pa.Table.from_pandas(added, SCHEMA, preserve_index=False), partial, **COMPRESSION)
    partial.replace(file)


if __name__ == "__main__":
    for other in sys.argv[1:]:
        print(f"{other}: {take_over(RESULTS, Path(other))} runs")
