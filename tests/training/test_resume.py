"""A run killed anywhere ends, once resumed, with the weights of a run that was never killed."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from gtx.training import Member
from gtx.training.checkpoints import save_whole

from .task import train
from .victim import PLACES, SETTINGS


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[Member]:
    return train(tmp_path_factory.mktemp("whole"), **SETTINGS)


@pytest.mark.parametrize("place", PLACES)
def test_sigkill_leaves_no_trace(place: str, whole: list[Member], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.training.victim", tmp_path, place]
    killed = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    done, cut = (tmp_path / "members" / number for number in "01")
    assert not (cut / "trained.pt").exists()
    state = torch.load(cut / "last.ckpt", weights_only=True)
    assert state["epoch"] == (4 if place == PLACES[2] else 2)
    untouched = (done / "trained.pt").stat().st_mtime_ns

    resumed = train(tmp_path, **SETTINGS)

    assert (done / "trained.pt").stat().st_mtime_ns == untouched
    for one, other in zip(whole, resumed, strict=True):
        assert one.best_epoch == other.best_epoch and one.best_score == other.best_score
        for name, weight in one.model.state_dict().items():
            assert torch.equal(weight, other.model.state_dict()[name]), name
        for row, again in zip(one.history, other.history, strict=True):
            assert {**row, "seconds": 0} == {**again, "seconds": 0}


def test_a_half_written_file_never_has_the_final_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a" / "last.ckpt"
    save_whole({"epoch": 1}, file)

    def fail(contents: dict, path: Path) -> None:
        Path(path).write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(torch, "save", fail)
    with pytest.raises(OSError, match="disk full"):
        save_whole({"epoch": 2}, file)
    assert torch.load(file, weights_only=True) == {"epoch": 1}
