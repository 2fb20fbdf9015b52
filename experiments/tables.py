"""The two tables of results: `runs.csv`, a line for each run, and `predictions.parquet`, its predictions of test rows.

A run is identified by its recipe (benchmark, tuning, learning or ablation), its set and its name. Several processes
may add runs at once, each behind a lock.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock

from gtx.base.files import atomic_file

Record = dict[str, Any]
ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "experiments" / "results"
RUNS, PREDICTIONS = "runs.csv", "predictions.parquet"
METRICS = ("rmse", "mae", "r2", "roc_auc", "pr_auc", "accuracy", "loss", "per_target")
TEXT = """recipe folder name set split model title task metric commit date command machine.processor machine.system
sha256.data sha256.split""".split()  # noqa: SIM905
"""Columns of plain text; an empty cell is no value, and `a.b` is `run["a"]["b"]`."""
JSON = [
    *("seed", "rows.train", "rows.val", "rows.test"),
    *(f"{part}.{metric}" for part in ("train", "val", "test") for metric in METRICS),
    *("parameters", "seconds", "cpu_seconds", "resumed", "best_epoch", "machine.cores", "machine.threads"),
    *("versions", "settings"),
]
"""Columns of all else; the last column, `details`, has what has no column of its own."""
WORDS = ("folder", "name", "target")
SCHEMA = pa.schema(
    dict.fromkeys(WORDS, pa.dictionary(pa.int32(), pa.string()))
    | {"row": pa.int32(), "prediction": pa.float32(), "measured": pa.float64()}
)


class Predictions(NamedTuple):
    """Predictions of the test rows of a run.

    Attributes:
        rows: row numbers of the table, from 0, `[n]`.
        names: names of the targets.
        values: `[n, T]`; six digits are written.
        measured: `[n, T]`, for a set that is no table; else None.
    """

    rows: np.ndarray
    names: tuple[str, ...]
    values: np.ndarray
    measured: np.ndarray | None = None


def read(file: Path) -> list[Record]:
    """Read the runs of a file, in its order; none if there is no file."""
    if not file.exists():
        return []
    with file.open(newline="") as opened:
        return [_record(line) for line in csv.DictReader(opened)]


def write(file: Path, runs: Iterable[Mapping[str, Any]]) -> None:
    """Replace a file as a whole."""
    with atomic_file(file, "w") as opened:
        writer = csv.DictWriter(opened, [*TEXT, *JSON, "details"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(map(_line, runs))


def runs(results: Path, recipe: str = "benchmark", folder: str | None = None) -> list[Record]:
    """Read the runs of a recipe, or of one of its sets (such as `scaffold-esol`)."""
    return [run for run in read(results / RUNS) if run["recipe"] == recipe and folder in (None, run["folder"])]


def predicted_runs(results: Path) -> list[Record]:
    """Read the runs of all benchmarks, with their `predictions` if these were written."""
    found = runs(results)
    for run in found:
        own = predictions(results, run)
        if own is not None:
            run["predictions"] = own
    return found


def predictions(results: Path, run: Record) -> Predictions | None:
    """Read the predictions of a run; None if they were not written."""
    file = results / PREDICTIONS
    frames = _frames(file, file.stat().st_mtime_ns) if file.exists() else {}
    own = frames.get((run["folder"], run["name"]))
    if own is None:
        return None
    names = tuple(own["target"].unique())
    values = np.reshape(_six_digits(own["prediction"]), (len(names), -1)).T
    measured = np.reshape(own["measured"], (len(names), -1)).T
    rows = own["row"].to_numpy()[: len(values)].astype(int)
    return Predictions(rows, names, values, None if np.isnan(measured).all() else measured)


def put(results: Path, run: Record, predicted: Predictions | None = None) -> None:
    """Add a run, or replace the one of the same recipe, set and name and count the evaluations of its test rows."""
    results.mkdir(parents=True, exist_ok=True)
    with FileLock(results / f"{RUNS}.lock"):
        before = read(results / RUNS)
        others = [one for one in before if _key(one) != _key(run)]
        if len(others) < len(before):  # the line goes first: never an old line beside new predictions
            write(results / RUNS, others)
            if "test" in run:
                (old,) = (one for one in before if _key(one) == _key(run))
                run = run | {"evaluations": old.get("evaluations", 1) + 1}
        if predicted is not None:
            _add_predictions(results / PREDICTIONS, run, predicted)
        write(results / RUNS, sorted([*others, run], key=_key))


def _key(run: Record) -> tuple[str, str, str]:
    return run["recipe"], run["folder"], run["name"]


def _line(run: Mapping[str, Any]) -> dict[str, str]:
    """Turn a run into cells; what its columns leave of a nested value goes to `details`."""
    rest = {name: dict(value) if isinstance(value, Mapping) else value for name, value in run.items()}
    line = {}
    for column in (*TEXT, *JSON):
        above, _, name = column.rpartition(".")
        inner = rest.get(above) if above else rest
        if isinstance(inner, dict) and name in inner:
            value = inner.pop(name)
            line[column] = _json(value) if column in JSON else value
            if above and not inner:
                del rest[above]
    return line | ({"details": _json(rest)} if rest else {})


def _record(line: Mapping[str, str]) -> Record:
    run = json.loads(line["details"] or "{}")
    for column in (*TEXT, *JSON):
        cell = line[column]
        if cell:
            above, _, name = column.rpartition(".")
            inner = run.setdefault(above, {}) if above else run
            inner[name] = json.loads(cell) if column in JSON else cell
    return run


def _json(value: Any) -> str:
    return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def _six_digits(values: Iterable[float]) -> list[float]:
    """Round to the digits that a float32 holds, so that the decimal number comes back as it was."""
    return [float(f"{value:.6g}") for value in values]


@lru_cache(maxsize=1)
def _frames(file: Path, changed: int) -> dict[tuple[str, str], pd.DataFrame]:
    """Read the lines of each set and run, of a file as it was at a time."""
    frame = pq.read_table(file).to_pandas()
    return dict(iter(frame.groupby(["folder", "name"], observed=True, sort=False)))


def _add_predictions(file: Path, run: Record, predicted: Predictions) -> None:
    """Write target by target, row by row; those of other runs stay."""
    n, count = predicted.values.shape
    columns = {
        "folder": run["folder"],
        "name": run["name"],
        "target": np.repeat(predicted.names, n),
        "row": np.tile(predicted.rows, count),
        "prediction": _six_digits(predicted.values.T.ravel()),
        "measured": np.nan if predicted.measured is None else predicted.measured.T.ravel(),
    }
    added = pd.DataFrame(columns)
    if file.exists():
        before = pq.read_table(file).to_pandas()
        others = before[(before["folder"] != run["folder"]) | (before["name"] != run["name"])]
        added = pd.concat([others, added])
    with atomic_file(file) as opened:
        pq.write_table(
            pa.Table.from_pandas(added, SCHEMA, preserve_index=False),
            opened,
            compression="zstd",
            compression_level=19,
            use_dictionary=[*WORDS, "row"],
            use_byte_stream_split=["prediction"],
        )
