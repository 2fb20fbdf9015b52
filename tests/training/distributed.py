"""A training on two CPU processes: `python -m tests.training.distributed FOLDER [STEP]`; Lightning starts the second.

With STEP, the first process gets SIGTERM when it has come that far.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from gtx.training import PropertyModule, is_main_process
from gtx.training.data import MoleculeData

from .task import train

SETTINGS: dict[str, Any] = {
    "epochs": 3,
    "ensemble": 2,
    "batch_molecules": 10,
    "strategy": "ddp",
    "devices": 2,
    "progress": True,
}


def arm(last: int) -> None:
    """Have this process get SIGTERM in its training step number `last`."""
    steps, step = [], PropertyModule.training_step

    def training_step(self: PropertyModule, batch: Any, index: int) -> Any:
        steps.append(index)
        if len(steps) == last:
            os.kill(os.getpid(), signal.SIGTERM)
        return step(self, batch, index)

    PropertyModule.training_step = training_step


if __name__ == "__main__":
    out, rank = Path(sys.argv[1]), os.environ.get("LOCAL_RANK", "0")
    if len(sys.argv) > 2 and rank == "0":
        arm(int(sys.argv[2]))
    counted, draw = [], MoleculeData.train_dataloader

    def train_dataloader(self: MoleculeData) -> Any:
        batches = draw(self)
        counted.append((self.trainer.current_epoch, len(batches)))
        return batches

    MoleculeData.train_dataloader = train_dataloader
    train(out, **SETTINGS)
    (out / f"batches-{rank}").write_text(repr(counted))
    if is_main_process():
        (out / "done").touch()
