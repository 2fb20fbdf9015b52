"""A training on two CPU processes: `python -m tests.training.distributed FOLDER`; Lightning starts the second."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from gtx.training import is_main_process
from gtx.training.datamodule import StoreDataModule

from .task import train

SETTINGS: dict[str, Any] = {
    "epochs": 3,
    "ensemble": 2,
    "batch_molecules": 10,
    "strategy": "ddp",
    "devices": 2,
    "progress": True,
}

if __name__ == "__main__":
    out, rank = Path(sys.argv[1]), os.environ.get("LOCAL_RANK", "0")
    counted, draw = [], StoreDataModule.train_dataloader

    def train_dataloader(self: StoreDataModule) -> Any:
        batches = draw(self)
        counted.append((self.trainer.current_epoch, len(batches)))
        return batches

    StoreDataModule.train_dataloader = train_dataloader
    train(out, **SETTINGS)
    (out / f"batches-{rank}").write_text(repr(counted))
    if is_main_process():
        (out / "done").touch()
