"""Any model of molecules as a LightningModule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from pytorch_lightning import LightningModule
from torch import Tensor, nn
from torch_geometric.data import Batch

from gtx.training.losses import masked_loss
from gtx.training.optimise import adamw, warmup_cosine
from gtx.training.settings import TrainSettings


class PropertyModule(LightningModule):
    """Trains `model(batch) -> [B, T]` on `batch.y` `[B, T]`, in scaled units with NaN for blanks.

    Every molecule has the same say: a batch's mean loss is weighted by its share of molecules, since a budget of pairs
    makes batches of large molecules short, and one batch of an epoch takes what was left. Nothing is logged, moved or
    synchronised per step, so that small molecules train at the speed of the model.

    Args:
        model: gives one row of outputs per molecule.
        loss: name of the loss, see `masked_loss`.
        settings: of the optimiser and its schedule.
        seed: of this member; with the epoch's number and the process's rank it decides all that is random in an epoch.
        validate: scores of the outputs `[n, T]` for all validation rows, to be logged.
    """

    def __init__(
        self,
        model: nn.Module,
        loss: str,
        settings: TrainSettings,
        seed: int = 0,
        validate: Callable[[Tensor], dict[str, float]] | None = None,
    ) -> None:
        super().__init__()
        self.model, self.loss, self.settings, self.seed = model, masked_loss(loss), settings, seed
        self.validate = validate

    def forward(self, batch: Batch) -> Tensor:
        if self.dtype != torch.float32:  # precisions such as bf16-true convert the model, not what it reads
            batch = batch.apply(lambda t: t.to(self.dtype) if t.is_floating_point() else t)
        return self.model(batch)

    def on_train_epoch_start(self) -> None:
        # a resumed run draws what the uninterrupted one drew, whatever was drawn before
        torch.manual_seed(spread_seed(self.seed, self.current_epoch, self.global_rank))
        batches = self.trainer.num_training_batches * self.trainer.world_size
        self.usual_count = len(self.trainer.datamodule.train) / batches

    def training_step(self, batch: Batch, _: int) -> Tensor:
        return self.loss(self(batch), batch.y) * (batch.num_graphs / self.usual_count)

    def on_validation_epoch_start(self) -> None:
        self.outputs = None

    def validation_step(self, batch: Batch, _: int) -> None:
        output = self(batch).float()
        if self.outputs is None:
            rows = len(self.trainer.datamodule.val)
            self.outputs = output.new_full((rows, output.shape[1]), -torch.inf)
        self.outputs[batch.row] = output

    def on_validation_epoch_end(self) -> None:
        # each rank filled in its rows, a few of them twice; the maximum over ranks has them all
        outputs = self.trainer.strategy.reduce(self.outputs, reduce_op="max")
        self.log_dict(self.validate(outputs), sync_dist=True)  # the same on every rank

    def configure_optimizers(self) -> dict[str, Any]:
        s = self.settings
        mixed = "mixed" in s.precision or s.precision in ("16", "bf16")
        optimiser = adamw(self.model, s.lr, s.weight_decay, fused=not mixed)
        schedule = warmup_cosine(optimiser, int(self.trainer.estimated_stepping_batches), s.warmup)
        return {"optimizer": optimiser, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def spread_seed(*numbers: int) -> int:
    """One seed out of several numbers, such that near numbers give unrelated seeds."""
    return int(np.random.SeedSequence(numbers).generate_state(1)[0])
