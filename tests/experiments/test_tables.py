"""Runs as tables: what went in comes out, from several processes at once, and from those that were killed."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from experiments import tables
from experiments.tables import RESULTS, Predictions

ROOT = Path(__file__).parents[2]


def run(name: str, **more: object) -> dict:
    return {"recipe": "benchmark", "folder": "toy", "name": name, "model": "gtx", "seed": 0, **more}


def test_a_run_comes_back_as_it_was(tmp_path: Path) -> None:
    key = {"recipe": "benchmark", "folder": "toy"}
    runs = [
        key | {"name": "a", "machine": {"system": "Linux, x86"}, "seed": 0, "resumed": False},
        key | {"name": "b", "test": {"rmse": 0.1 + 0.2, "other": [1, None]}, "settings": {}, "more": 'a "word"\nand'},
        key | {"name": "c", "test": {"rmse": None}, "machine": {"cores": 2}},
    ]
    tables.write(tmp_path / "runs.csv", runs)
    assert tables.read(tmp_path / "runs.csv") == runs
    assert tables.read(tmp_path / "none.csv") == []
    assert (tmp_path / "runs.csv").read_text().startswith("recipe,folder,name,set,split,model,")


def test_predictions_come_back_to_six_digits_in_the_order_they_were_given(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    rows = random.permutation(50)
    values = random.normal(size=(50, 2)) * 10.0 ** random.integers(-8, 8, (50, 2))
    values[3, 1] = np.nan
    tables.put(tmp_path, run("gtx-0"), Predictions(rows, ("z", "a"), values))
    tables.put(tmp_path, run("gtx-1"), Predictions(rows[:2], ("z",), values[:2, :1], measured=values[:2, :1] / 3))
    one, other = (found["predictions"] for found in tables.predicted_runs(tmp_path))
    assert one.names == ("z", "a") and one.measured is None
    np.testing.assert_array_equal(one.rows, rows)
    np.testing.assert_array_equal(one.values, [[float(f"{value:.6g}") for value in row] for row in values])
    np.testing.assert_array_equal(other.measured, values[:2, :1] / 3)
    frame = pd.read_parquet(tmp_path / tables.PREDICTIONS)
    assert list(frame.columns) == ["folder", "name", "target", "row", "prediction", "measured"] and len(frame) == 102


def test_a_run_made_again_stands_in_the_place_of_the_first(tmp_path: Path) -> None:
    for value in (1.0, 2.0):
        for name in ("gtx-0", "gtx-1"):
            tables.put(tmp_path, run(name, seconds=value), Predictions(np.arange(3), ("y",), np.full((3, 1), value)))
    tables.put(tmp_path, run("gtx-0") | {"recipe": "tuning"})
    found = tables.predicted_runs(tmp_path)
    assert [(one["name"], one["seconds"], one["predictions"].values.sum()) for one in found] == [
        ("gtx-0", 2.0, 6.0),
        ("gtx-1", 2.0, 6.0),
    ]
    assert len(pd.read_parquet(tmp_path / tables.PREDICTIONS)) == 6
    assert [one["name"] for one in tables.runs(tmp_path, "tuning", "toy")] == ["gtx-0"]


def test_runs_that_end_at_once_are_all_kept(tmp_path: Path) -> None:
    def add(number: int) -> None:
        tables.put(tmp_path, run(f"gtx-{number}"), Predictions(np.arange(4), ("y",), np.full((4, 1), number)))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(24)))
    found = tables.predicted_runs(tmp_path)
    assert sorted(one["name"] for one in found) == sorted(f"gtx-{number}" for number in range(24))
    assert all(one["predictions"].values[0, 0] == int(one["name"][4:]) for one in found)


def test_a_killed_process_loses_no_other_run(tmp_path: Path) -> None:
    tables.put(tmp_path, run("gtx-0"), Predictions(np.arange(2), ("y",), np.ones((2, 1))))
    code = """
import os, signal, sys
from pathlib import Path
import numpy as np
from experiments import tables
tables.write = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # predictions are written, the line is not
run = {"recipe": "benchmark", "folder": "toy", "name": "gtx-1"}
tables.put(Path(sys.argv[1]), run, tables.Predictions(np.arange(2), ("y",), np.zeros((2, 1))))
"""
    killed = subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, check=False)
    assert killed.returncode == -9
    (only,) = tables.predicted_runs(tmp_path)
    assert only["name"] == "gtx-0" and only["predictions"].values.sum() == 2
    tables.put(tmp_path, run("gtx-1"), Predictions(np.arange(2), ("y",), np.full((2, 1), 3.0)))  # nobody is locked out
    assert [one["predictions"].values.sum() for one in tables.predicted_runs(tmp_path)] == [2, 6]


@pytest.mark.parametrize("file", [*RESULTS.glob(tables.RUNS)], ids=lambda file: file.name)
def test_the_projects_own_results_are_whole(file: Path, tmp_path: Path) -> None:
    records = tables.read(file)
    tables.write(tmp_path / "again.csv", records)
    assert (tmp_path / "again.csv").read_bytes() == file.read_bytes()
    frame = pd.read_parquet(RESULTS / tables.PREDICTIONS)
    counts = frame.groupby(["folder", "name", "target"], observed=True).size().unstack()
    for one in (record for record in records if record["recipe"] == "benchmark"):
        assert set(counts.loc[one["folder"], one["name"]].dropna()) == {one["rows"]["test"]}, one["name"]
        assert one["test"][one["metric"]] is not None and one["command"].startswith("python -m experiments.")
    assert len({tables._key(one) for one in records}) == len(records)
