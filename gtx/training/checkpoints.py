"""Checkpoints that are whole or not there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from pytorch_lightning.plugins.io import TorchCheckpointIO


def save_whole(contents: dict[str, Any], path: Path) -> None:
    """Write with `torch.save` under another name in the same folder, then rename: a kill leaves no half file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    torch.save(contents, partial)
    partial.replace(path)


class WholeCheckpointIO(TorchCheckpointIO):
    """Lightning's own writes by way of the system's temporary folder, which may be on another disk: not atomic."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str, storage_options: Any = None) -> None:
        save_whole(checkpoint, Path(path))
