"""Two processes on the CPU (DDP over gloo) train one model and judge it on all validation rows."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from gtx.tasks import Regression

from .distributed import SETTINGS
from .task import LOGP, SPLIT, store, train


def launch(out: Path, *more: str) -> tuple[int, list[str]]:
    """The exit status, and the beginnings of the lines said; it waits for every process that could still say one."""
    command = [sys.executable, "-m", "tests.training.distributed", out, *more]
    ended = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=300)
    return ended.returncode, [line[:9] for line in (ended.stdout + ended.stderr).splitlines()]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was terminated while its second member trained, and went on."""
    out = tmp_path_factory.mktemp("ddp")
    steps = SETTINGS["epochs"] * 3  # of a member, in each process
    # one rank speaks, and nobody warns or fails
    assert launch(out, str(steps + 2)) == (143, ["5 batches", "member 1/", "member 2/"])
    assert launch(out) == (0, ["member 2/"])
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
            predicted = member.task.unscaled(member.model(store().batch(rows)), store().subset(rows))
        rmse = Regression(["y"]).evaluate(LOGP[rows], predicted)["rmse"]
        assert rmse == pytest.approx(member.history[member.best_epoch]["val_rmse"], rel=1e-4)
