"""Recipes: which runs they make, what they write, what they keep."""

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from experiments import models, moleculeace, recipe, tables
from experiments.runs import PublicSet, Run
from gtx.data import public_datasets
from gtx.training import TrainSettings
from tests.tables import TINY, molecules

TARGET = "solvation_water"
SETS = {"toy": PublicSet("toy", "rmse", ("split",), "toy")}


def write_toy(path: Path, count: int = 60) -> Path:
    """Every third molecule is for validation or for the test."""
    table = molecules(count)[["smiles", TARGET]]
    table["split"] = [("train", "train", "train", "train", "val", "test")[i % 6] for i in range(count)]
    table.to_csv(path, index=False)
    return path


def known(path: str | Path) -> public_datasets.PublicDataset:
    """The set, for those who look it up by name."""
    return public_datasets.PublicDataset("toy", "", Path(path), (TARGET,), split_columns=("split",))


@pytest.fixture
def run(tmp_path, monkeypatch) -> Run:
    csv_file = write_toy(tmp_path / "toy.csv")
    monkeypatch.setitem(public_datasets.PUBLIC_DATASETS, "toy", known(csv_file))
    return Run(SETS["toy"], "mean", runs=tmp_path / "runs")


def test_a_tenth_of_the_training_rows_validates_where_a_split_names_none(shared_data: Path, tmp_path) -> None:
    file = shared_data / "moleculeace" / "CHEMBL2034_Ki.csv"
    before, after = (pd.read_csv(table, dtype=str) for table in (file, moleculeace.with_validation(file, tmp_path)))
    assert before.drop(columns="split").equals(after.drop(columns="split"))
    changed = before["split"] != after["split"]
    assert set(before["split"][changed]) == {"train"}
    assert set(after["split"][changed]) == {"val"}
    assert changed.sum() == round(0.1 * (before["split"] == "train").sum())


def test_finished_runs_are_kept_and_what_fails_does_not_stop_the_others(run, tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setitem(models.MODELS, "broken", models.Model("broken", 1, settings={"lr": 0.0}))
    words = ["--out", str(tmp_path / "results"), "--runs", str(tmp_path / "runs"), "--here"]

    def call(*more: str) -> int:
        return recipe.main("", "toy", SETS, [*words, *more])

    assert call("--models", "broken", "mean") == 1
    told = capsys.readouterr().err.splitlines()
    assert told[0].startswith("toy broken-0: lr: expected a number above 0")
    assert told[1:] == ["failed: python -m toy --sets toy --models broken --seeds 0"]
    (result,) = tables.runs(tmp_path / "results")
    assert result["command"] == "python -m toy --sets toy --models mean --seeds 0"
    assert (result["rows"], result["seed"], result["parameters"]) == ({"train": 40, "val": 10, "test": 10}, 0, 1)
    assert {"test", "seconds", "cpu_seconds", "machine", "versions", "sha256", "commit"} <= result.keys()
    file = tmp_path / "results" / tables.RUNS
    before = file.stat().st_mtime_ns
    assert call("--models", "mean") == call("--models", "mean", "gtx", "--table") == 0
    assert file.stat().st_mtime_ns == before
    left = run.folder / "of before"
    left.touch()
    assert call("--models", "mean", "--overwrite") == 0
    assert file.stat().st_mtime_ns > before and left.parent.exists() and not left.exists()


@pytest.mark.slow
def test_scores_of_validation_rows_are_of_before_the_kernel_learned_from_them(run: Run, monkeypatch) -> None:
    monkeypatch.setattr(models, "TrainSettings", lambda **given: TrainSettings(**{**TINY, "epochs": 1, **given}))
    run = replace(run, model="gtx-mix")
    (found, _), val = models.fit_predict(run), run.dataset.split["val"]
    rmse = run.dataset.task.objective.evaluate(run.dataset.y[val], found[val])["rmse"]
    metrics = json.loads((run.folder / "metrics.json").read_text())
    assert metrics["alone"] and rmse == pytest.approx(metrics["val"]["rmse"], rel=1e-5)
