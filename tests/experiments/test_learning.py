"""Learning curves: samples within samples, validation scores alone, what is done is kept."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from experiments import learning, results, tables
from experiments.models import fit_predict
from experiments.runs import Run, execute
from gtx.data import public_datasets
from gtx.training import TrainSettings
from tests.experiments import toy_recipe

pytestmark = pytest.mark.slow

TOY = toy_recipe.SETS["toy"]


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    table = toy_recipe.write(tmp_path / "toy.csv")
    monkeypatch.setitem(public_datasets.PUBLIC_DATASETS, "toy", toy_recipe.known(table))
    monkeypatch.setitem(learning.SETS, "toy", TOY)
    return table


def test_a_smaller_sample_lies_within_a_larger_one_and_the_repeat_draws_it() -> None:
    rows = np.arange(100, 141)
    small, large = (learning.row_sample(rows, share, 0) for share in (8, 2))
    assert (len(small), len(large)) == (5, 20)
    assert set(small) < set(large) < set(rows)
    assert (np.diff(large) > 0).all()
    assert set(learning.row_sample(rows, 2, 1)) != set(large)


def words(tmp_path: Path, *models: str) -> list[str]:
    folders = ["--out", str(tmp_path / "out"), "--runs", str(tmp_path / "runs")]
    return ["--here", "--sets", "toy", "--models", *models, *folders]


def test_a_curve_has_what_was_trained_and_the_whole_from_the_benchmarks_own_runs(
    toy: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    assert learning.main(words(tmp_path, "ridge-counts")) == 0
    first = tables.runs(tmp_path / "out", "learning")
    assert [(*run["settings"].values(), run["rows"]["train"]) for run in first] == [
        (k, s, 40 // s) for k in range(3) for s in (2, 4, 8)
    ]
    assert [point.rows for point in learning.curve("toy", tmp_path / "out")] == [5, 10, 20]
    for seed in range(3):
        execute(Run(TOY, "ridge-counts", 0, seed, tmp_path / "runs"), fit_predict, tmp_path / "out")
    table = tmp_path / "out" / tables.RUNS
    held = tables.read(table)
    lost = next(run for run in held if run["recipe"] == "learning")
    kept = [run | {"commit": "kept"} for run in held if run is not lost]
    tables.write(table, kept)  # one was lost: it is made anew, the others are kept
    assert learning.main(words(tmp_path, "ridge-counts")) == 0
    again = tables.read(table)
    assert [run for run in again if run["commit"] == "kept"] == kept
    (made,) = (run for run in again if run["commit"] != "kept")
    assert all(made[key] == lost[key] for key in ("name", "rows", "train", "val", "settings"))
    points = learning.curve("toy", tmp_path / "out")
    assert [(point.rows, len(point.scores)) for point in points] == [(5, 3), (10, 3), (20, 3), (40, 3)]
    whole = tables.runs(tmp_path / "out", folder="toy")
    assert points[-1].scores == [run["val"]["rmse"] for run in whole]
    assert not list((tmp_path / "out").glob("*.partial"))
    assert "toy               ridge-counts" in capsys.readouterr().out

    lines = results.learnt("toy", tmp_path / "out")
    assert any(line.startswith("| 5 | ") for line in lines)
    assert [row.model for row in results.gather(tmp_path / "out")["toy"]] == ["ridge-counts"]  # curves are no runs
    assert results.learnt("scaffold-esol", tmp_path / "out") == []


def test_test_rows_are_not_looked_at(toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("experiments.models.TrainSettings", partial(TrainSettings, epochs=2))

    def scores(out: str) -> list[float]:
        for model in ("gtx", "ridge-counts"):
            run = Run(TOY, model, runs=tmp_path / f"runs-{out}", name=f"{model}-0-2")
            learning.train_on_share(run, tmp_path / out)
        return [run["val"]["rmse"] for run in tables.runs(tmp_path / out, "learning")]

    before = scores("before")
    lines = toy.read_text().splitlines()
    changed = [line if not line.endswith("test") else f"{line.split(',')[0]},1000.0,test" for line in lines]
    assert changed != lines
    toy.write_text("\n".join(changed) + "\n")
    assert len(Run(TOY, "gtx", runs=tmp_path).dataset.split["test"]) == 10
    assert scores("after") == before
