"""SIGTERM ends every command with status 143 and one line, leaving neither half a file nor a process behind."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gtx import training_data
from gtx.cli import main
from gtx.prediction import streaming
from gtx.training import TrainingModule
from tests.forks import until
from tests.tables import GOLDEN, TINY_TRAIN, TINY_WORDS, write_molecules

pytestmark = pytest.mark.slow

GOES_ON = "gtx: terminated; run the same command again to resume"


def terminated(function: Callable, at: int = 1) -> Callable:
    """The function, whose call number `at` sends this process SIGTERM first."""
    calls: list[None] = []

    def called(*arguments: Any, **named: Any) -> Any:
        calls.append(None)
        if len(calls) == at:
            os.kill(os.getpid(), signal.SIGTERM)
        return function(*arguments, **named)

    return called


@pytest.fixture
def table(tmp_path) -> Path:
    return write_molecules(tmp_path / "data.csv", 60, "gap")


@pytest.mark.parametrize("command", ["train", "benchmark"])
@pytest.mark.parametrize("when", ["before it trains", "while it trains"])
def test_a_training_says_that_it_goes_on_and_does(command, when, table, tmp_path, monkeypatch, capsys) -> None:
    more = ["--test-folds=2", "--repeats=1"] if command == "benchmark" else []
    tiny = TINY_TRAIN if command == "train" else TINY_WORDS
    words = [command, str(table), "--target-columns=gap", "--workers=0", f"--out={tmp_path / 'run'}", *more, *tiny]
    with monkeypatch.context() as patch:
        if when == "before it trains":
            patch.setattr(training_data, "open_table", terminated(training_data.open_table))
        else:
            patch.setattr(TrainingModule, "training_step", terminated(TrainingModule.training_step, at=5))
        assert main(words) == 143
    assert capsys.readouterr().err.strip().splitlines()[-1] == GOES_ON
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    if when == "while it trains":
        (checkpoint,) = tmp_path.glob("run/**/last.ckpt")
        written = checkpoint.stat().st_mtime_ns
        assert main(words) == 0
        assert not checkpoint.exists() and checkpoint.with_name("trained.pt").stat().st_mtime_ns > written


@pytest.mark.usefixtures("forks")
def test_predicting_leaves_no_file_and_no_worker(table: Path, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(streaming, "default_chunk_size", lambda featuriser: 5)
    monkeypatch.setattr(streaming, "answer_rows", terminated(streaming.answer_rows, at=2))
    before, out = children(), tmp_path / "out" / "predictions.csv"
    assert main(["predict", str(GOLDEN / "regression.gtx"), str(table), "--workers=2", f"--out={out}"]) == 143
    assert capsys.readouterr().err.strip() == "gtx: terminated"
    assert not list(out.parent.iterdir())
    until(lambda: not children() - before)


def children() -> set[str]:
    """The processes that this one started and that run, but for the tracker of shared resources, which serves all."""
    found = set()
    for listed in Path("/proc/self/task").glob("*/children"):
        for number in listed.read_text().split():
            words = Path(f"/proc/{number}/cmdline").read_bytes()
            if words and b"resource_tracker" not in words:
                found.add(f"{number} {words.decode()}")
    return found
