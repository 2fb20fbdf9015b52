"""Two processes on the CPU (DDP over gloo) train one model and judge it on all validation rows."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from gtx.training import evaluate

from .distributed import SETTINGS
from .task import LOGP, SPLIT, store, train


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("ddp")
    command = [sys.executable, "-m", "tests.training.distributed", out]
    ended = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    said = (ended.stdout + ended.stderr).splitlines()
    assert [line[:9] for line in said] == ["5 batches", "member 1/", "member 2/"]  # one rank speaks, and nobody warns
    return out


def test_every_rank_gets_as_many_batches(run: Path) -> None:
    first, second = ((run / f"batches-{rank}").read_text() for rank in "01")
    assert first == second != "[]"


def test_one_process_writes_the_run(run: Path) -> None:
    assert (run / "done").exists()
    for number in "01":
        folder = run / "members" / number
        assert sorted(p.name for p in folder.iterdir()) == ["log.csv", "trained.pt"]
        assert len(list(csv.DictReader((folder / "log.csv").open()))) == SETTINGS["epochs"]


def test_validation_saw_every_row(run: Path) -> None:
    members = train(run, **SETTINGS)  # finished: read, not trained
    rows = SPLIT["val"]
    for member in members:
        with torch.no_grad():
            predicted = member.scaler.unscale(member.model(store().batch(rows)))
        rmse = evaluate(LOGP[rows], predicted, "regression", ["y"])["rmse"]
        assert rmse == pytest.approx(member.history[member.best_epoch]["val_rmse"], rel=1e-4)
