"""A run killed anywhere ends, once resumed, with the weights of a run that was never killed."""

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import gtx.training.run
from gtx.base.errors import InputError
from gtx.tasks import Regression
from gtx.training import TrainedMember
from gtx.training.capture import CapturedModule
from gtx.training.module import TrainingModule

from .distributed import FORKS
from .task import LOGP, model, train

pytestmark = pytest.mark.slow

UNTIMED = {"seconds": 0, "cpu_seconds": 0}
PLACES = ("in mid-epoch", "while writing a checkpoint", "in mid-epoch, in whole steps")


def settings(place: str) -> dict[str, Any]:
    """The settings of the run, which goes on from a model without descriptors; the parts it has learn late."""
    torch.manual_seed(7)
    task = Regression(["y0"])
    return {
        **{"epochs": 5, "folds": 2, "patience": 2, "ema": 0.9, "capture": place.endswith("whole steps")},
        **{"rates": {"all": 0.1, "embedding.pairs": 0, "head": 1}, "head_first": 0.7},
        "start": [TrainedMember(model(task, num_descriptors=0), task, [], 0, 0.0)],
    }


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def arm(place: str) -> None:
    """Have the second member die."""
    kind = CapturedModule if place == PLACES[2] else TrainingModule
    step, write = kind.training_step, gtx.training.run.save_atomically
    steps, writes = [], []

    def training_step(self: TrainingModule, batch: Any, index: int) -> Any:
        steps.append(index)
        if steps.count(0) == 5 + 4 and index == 1:  # its fourth epoch, second batch
            die()
        return step(self, batch, index)

    def half_write(contents: Any, path: Path) -> None:
        writes.append(path)
        if path.parent.name == "1" and writes.count(path) == 4:
            path.with_name(f".{path.name}.1.part").write_bytes(b"half a checkpoint")
            die()
        write(contents, path)

    if place == PLACES[1]:
        gtx.training.run.save_atomically = half_write
    else:
        kind.training_step = training_step


def run(folder: Path, place: str) -> None:
    """A training that kills itself at a place, in a process of its own."""
    arm(place)
    train(folder, **settings(place))


@pytest.fixture(scope="module")
def killed(tmp_path_factory) -> dict[str, Path]:
    """The folders of runs that died."""
    folders = {place: tmp_path_factory.mktemp("killed") for place in PLACES}
    victims = [FORKS.Process(target=run, args=(folder, place)) for place, folder in folders.items()]
    for victim in victims:
        victim.start()
    for victim in victims:
        victim.join(300)
    assert [victim.exitcode for victim in victims] == [-signal.SIGKILL] * len(victims)
    return folders


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> dict[str, list[TrainedMember]]:
    """The members of runs that were never killed."""
    plain, steps = (train(tmp_path_factory.mktemp("whole"), **settings(place)) for place in PLACES[1:])
    return dict(zip(PLACES, (plain, plain, steps), strict=True))


@pytest.mark.parametrize("place", PLACES)
def test_sigkill_leaves_no_trace(place, killed, whole, capfd) -> None:
    done, cut = (killed[place] / "members" / number for number in "01")
    assert not (cut / "trained.pt").exists()
    assert torch.load(cut / "last.ckpt", weights_only=True)["epoch"] == 2
    untouched = (done / "trained.pt").stat().st_mtime_ns

    wanted = settings(place)
    resumed = train(killed[place], **wanted, progress=True)
    goes_on = f"member 2/2 goes on after epoch 3 of {wanted['epochs']}"
    assert f"resumed: member 1/2 is trained, {goes_on}\n" in capfd.readouterr().err
    assert not [file.name for file in cut.iterdir() if file.name not in ("log.csv", "trained.pt")]

    assert (done / "trained.pt").stat().st_mtime_ns == untouched
    for one, other in zip(whole[place], resumed, strict=True):
        assert one.best_epoch == other.best_epoch and one.best_score == other.best_score
        for name, weight in one.model.state_dict().items():
            assert torch.equal(weight, other.model.state_dict()[name]), name
        for row, again in zip(one.history, other.history, strict=True):
            assert {**row, **UNTIMED} == {**again, **UNTIMED}


@pytest.mark.parametrize("name", ["trained.pt", "last.ckpt"])
def test_a_damaged_file_is_named_with_what_to_do(name: str, tmp_path, monkeypatch) -> None:
    file = tmp_path / "members" / "0" / name
    with monkeypatch.context() as patch:
        if name == "last.ckpt":
            patch.setattr("gtx.training.fitting.save_atomically", None)  # dies between its last epoch and its end
            with pytest.raises(TypeError):
                train(tmp_path, epochs=1)
        else:
            train(tmp_path, epochs=1)
    for damaged in (file.read_bytes()[:-99], b"x" * 99):
        file.write_bytes(damaged)
        with pytest.raises(InputError) as error:
            train(tmp_path, epochs=1)
        assert str(error.value).startswith(f"{file} is damaged") and "`overwrite`" in str(error.value)
        assert "torch" not in str(error.value) and "weights_only" not in str(error.value)
    file.unlink()
    assert len(train(tmp_path, epochs=1)) == 1


@pytest.mark.parametrize("settings", [{"epochs": 60, "lr": 1e-2, "patience": 1}, {"epochs": 2}], ids=["early", "last"])
def test_what_had_come_to_its_last_epoch_does_not_train_on(settings: dict, tmp_path, monkeypatch) -> None:
    noise = np.random.default_rng(0).normal(size=LOGP.shape)
    (whole,) = train(tmp_path / "whole", noise, **settings)
    with monkeypatch.context() as patch:
        patch.setattr("gtx.training.fitting.save_atomically", None)  # dies between its last epoch and its end
        with pytest.raises(TypeError):
            train(tmp_path / "cut", noise, **settings)
    (cut,) = train(tmp_path / "cut", noise, **settings)
    assert len(cut.history) == len(whole.history) < 60
    assert cut.best_score == whole.best_score
