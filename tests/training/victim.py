"""A training that kills itself with SIGKILL at a given place."""

import os
import signal
from pathlib import Path
from typing import Any

import torch

import gtx.training.run
from gtx.tasks import Regression
from gtx.training import TrainedMember
from gtx.training.capture import CapturedModule
from gtx.training.module import TrainingModule

from .task import model, train

SETTINGS: dict[str, Any] = {
    **{"epochs": 5, "folds": 2, "patience": 2, "ema": 0.9},
    **{"rates": {"all": 0.1, "embedding.pairs": 0, "head": 1}, "head_first": 0.7},
}
PLACES = ("in mid-epoch", "while writing a checkpoint", "in mid-epoch, in whole steps")


def settings(place: str) -> dict[str, Any]:
    """The settings of the run, which goes on from a model without descriptors; the parts it has learn late."""
    torch.manual_seed(7)
    task = Regression(["y0"])
    return SETTINGS | {
        "capture": place.endswith("whole steps"),
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
    """In a process of its own."""
    arm(place)
    train(folder, **settings(place))
