"""Somebody who looks on while a model trains, and may end it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pytorch_lightning import Callback, LightningModule, Trainer

from gtx.training.history import History

Watch = Callable[[int, Sequence[dict[str, float]]], None]
"""Called after every epoch with the number of the member and the rows of its `log.csv`, those from before an
interruption too; what it raises ends the training."""


class Watched(Callback):
    """Shows a history to whoever watches.

    Args:
        watch: called with the rows of the history.
        history: comes before this callback.
    """

    def __init__(self, watch: Callable[[Sequence[dict[str, float]]], None], history: History) -> None:
        self.watch, self.history = watch, history

    def on_train_epoch_end(self, trainer: Trainer, module: LightningModule) -> None:
        self.watch(self.history.rows)
