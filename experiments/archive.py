"""The tables of results: `runs.csv`, a line for each run, and `predictions.parquet`, its predictions of test rows.

A run is known by its recipe (benchmark, tuning, learning or ablation), its set and its name. Several processes
may add runs at once: each waits for a lock, and the lock of a process that is killed is free. Predictions are written
before the line, so a process that is killed between the two leaves all other runs as they were.
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

Record = dict[str, Any]
ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "experiments" / "results"
RUNS, PREDICTIONS = "runs.csv", "predictions.parquet"
KEY = ("recipe", "folder", "name")
METRICS = ("rmse", "mae", "r2", "roc_auc", "pr_auc", "accuracy", "loss", "per_target")
TEXT = """recipe folder name set split model title task metric commit date command machine.processor machine.system
sha256.data sha256.split""".split()  # noqa: SIM905
"""Columns of plain text; an empty cell is no value, and `a.b` is `run["a"]["b"]`."""
VALUES = [
    *("seed", "rows.train", "rows.val", "rows.test"),
    *(f"{part}.{metric}" for part in ("train", "val", "test") for metric in METRICS),
    *("parameters", "seconds", "cpu_seconds", "resumed", "best_epoch", "machine.cores", "machine.threads"),
    *("versions", "settings"),
]
"""Columns of all else, as JSON; the last column, `details`, has what has no column of its own."""
WORDS = ("folder", "name", "target")
SCHEMA = pa.schema(
    dict.fromkeys(WORDS, pa.dictionary(pa.int32(), pa.string()))
    | {"row": pa.int32(), "prediction": pa.float32(), "measured": pa.float64()}
)
COMPRESSION = {"compression": "zstd", "compression_level": 19}
COMPRESSION |= {"use_dictionary": [*WORDS, "row"], "use_byte_stream_split": ["prediction"]}


class KeptPredictions(NamedTuple):
    """Predictions of the test rows of a run.

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


def read(file: Path) -> list[Record]:
    """The runs of a file, in its order; none if there is no file."""
    if not file.exists():
        return []
    with file.open(newline="") as opened:
        return [_record(line) for line in csv.DictReader(opened)]


def write(file: Path, runs: Iterable[Mapping[str, Any]]) -> None:
    """Replace a file as a whole: whoever reads it meanwhile sees the old one, whoever is killed leaves it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(".partial")
    with partial.open("w", newline="") as opened:
        writer = csv.DictWriter(opened, [*TEXT, *VALUES, "details"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(map(_line, runs))
    partial.replace(file)


def runs(results: Path, recipe: str = "benchmark", folder: str | None = None) -> list[Record]:
    """The runs of a recipe, or of one of its sets (such as `scaffold-esol`), by set and name."""
    return [run for run in read(results / RUNS) if run["recipe"] == recipe and folder in (None, run["folder"])]


def run_named(results: Path, folder: str, name: str, recipe: str = "benchmark") -> Record | None:
    """One run, or None where it is not there."""
    return next((run for run in runs(results, recipe, folder) if run["name"] == name), None)


def predicted_runs(results: Path) -> list[Record]:
    """The runs of all benchmarks, with their `predictions` where these were kept."""
    found = runs(results)
    for run in found:
        if (own := predictions(results, run)) is not None:
            run["predictions"] = own
    return found


def predictions(results: Path, run: Record) -> KeptPredictions | None:
    """Predictions of a run; None where they were not kept."""
    file = results / PREDICTIONS
    frames = _frames(file, file.stat().st_mtime_ns) if file.exists() else {}
    if (own := frames.get((run["folder"], run["name"]))) is None:
        return None
    names = tuple(own["target"].unique())
    values, measured = (
        np.reshape(column, (len(names), -1)).T for column in (_six_digits(own["prediction"]), own["measured"])
    )
    rows = own["row"].to_numpy()[: len(values)].astype(int)
    return KeptPredictions(rows, names, values, None if np.isnan(measured).all() else measured)


def put(results: Path, run: Record, predicted: KeptPredictions | None = None) -> None:
    """Add a run, or put it in the place of one of the same recipe, set and name, and count how often it was made."""
    results.mkdir(parents=True, exist_ok=True)
    with FileLock(results / f"{RUNS}.lock"):
        held = read(results / RUNS)
        others = [one for one in held if _key(one) != _key(run)]
        if len(others) < len(held):  # lines go first: never an old line beside new predictions
            (old,) = (one for one in held if _key(one) == _key(run))
            write(results / RUNS, others)
            if "test" in run:
                run = run | {"evaluations": old.get("evaluations", 1) + 1}
        if predicted is not None:
            _add_predictions(results / PREDICTIONS, run, predicted)
        write(results / RUNS, sorted([*others, run], key=_key))


def _key(run: Record) -> tuple[str, ...]:
    return tuple(run[name] for name in KEY)


def _line(run: Mapping[str, Any]) -> dict[str, str]:
    """A run as cells; what its columns leave empty of a nested value goes with them."""
    rest = {name: dict(value) if isinstance(value, Mapping) else value for name, value in run.items()}
    line = {}
    for column in (*TEXT, *VALUES):
        above, _, name = column.rpartition(".")
        within = rest.get(above) if above else rest
        if isinstance(within, dict) and name in within:
            value = within.pop(name)
            line[column] = _json(value) if column in VALUES else value
            if above and not within:
                del rest[above]
    return line | ({"details": _json(rest)} if rest else {})


def _record(line: Mapping[str, str]) -> Record:
    run = json.loads(line["details"] or "{}")
    for column in (*TEXT, *VALUES):
        if cell := line[column]:
            above, _, name = column.rpartition(".")
            within = run.setdefault(above, {}) if above else run
            within[name] = json.loads(cell) if column in VALUES else cell
    return run


def _json(value: Any) -> str:
    return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def _six_digits(values: Iterable[float]) -> list[float]:
    """As many digits as a float32 holds, so that the decimal number comes back as it was."""
    return [float(f"{value:.6g}") for value in values]


@lru_cache(maxsize=1)
def _frames(file: Path, changed: int) -> dict[tuple[str, str], pd.DataFrame]:
    """The lines of each set and run, in a file as it was at a moment."""
    frame = pq.read_table(file).to_pandas()
    return dict(iter(frame.groupby(["folder", "name"], observed=True, sort=False)))


def _add_predictions(file: Path, run: Record, predicted: KeptPredictions) -> None:
    """Target by target, row by row; those of other runs stay."""
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
        held = pq.read_table(file).to_pandas()
        added = pd.concat([held[(held["folder"] != run["folder"]) | (held["name"] != run["name"])], added])
    partial = file.with_suffix(".partial")
    pq.write_table(pa.Table.from_pandas(added, SCHEMA, preserve_index=False), partial, **COMPRESSION)
    partial.replace(file)
