"""Any model of molecules as a LightningModule."""

from __future__ import annotations

import sys
import warnings
from typing import Any, Self

import numpy as np
import torch
from pytorch_lightning import LightningModule
from torch import Tensor, nn
from torch.optim import Optimizer

from gtx.errors import InputError
from gtx.tasks import Task
from gtx.training.optimise import adamw, check_head_first, freeze, selecting, settle, warmup_cosine, warmup_inverse_sqrt
from gtx.training.settings import TrainSettings


class PropertyModule(LightningModule):
    """Trains a model on a task; the Trainer's data module is a `gtx.training.MoleculeData`.

    Every molecule has the same say (or whatever the task counts, see `Task.share`): a batch's mean loss is weighted by
    its share of molecules, since a budget of pairs makes batches of large molecules short, and one batch of an epoch
    takes what was left. Nothing is logged, moved or synchronised per step, so that small molecules train at the speed
    of the model.

    Args:
        model: gives one row of outputs per molecule, `[B, task.out_channels]`, of a batch.
        task: the loss, and the scores of validation and test rows.
        settings: of the optimiser and its schedule.
        seed: of this member; with the epoch's number and the process's rank it decides all that is random in an epoch.
    """

    in_whole_steps = False

    def __init__(self, model: nn.Module, task: Task, settings: TrainSettings | None = None, seed: int = 0) -> None:
        super().__init__()
        if "lightning.pytorch" in sys.modules:  # its Trainer takes its own LightningModule alone, and says no more
            warnings.warn(
                "gtx trains with pytorch_lightning: import Trainer from there, not from lightning", stacklevel=2
            )
        self.model, self.task, self.settings, self.seed = model, task, settings or TrainSettings(), seed
        freeze(model, self.settings.rates or {})
        check_head_first(model, self.settings.rates or {}, self.settings.head_first)

    @classmethod
    def load_from_checkpoint(cls, checkpoint_path: Any, *arguments: Any, **named: Any) -> Self:
        """Read the weights of a checkpoint of Lightning's.

        Raises:
            InputError: `model` or `task` is not given; a checkpoint holds weights alone.
        """
        if lacking := [name for name in ("model", "task") if name not in named]:
            raise InputError(
                f"a checkpoint holds weights alone: give {' and '.join(f'{name}=' for name in lacking)} too, as in "
                "training; a file that gtx.load reads by itself is made by Predictor.of(...).save(path)"
            )
        return super().load_from_checkpoint(checkpoint_path, *arguments, **named)

    @property
    def data(self) -> Any:
        """The data module.

        Raises:
            InputError: the Trainer was given loaders in its place.
        """
        if getattr(self.trainer, "datamodule", None) is None:
            raise InputError(
                "the batches came from a DataLoader: PropertyModule scores rows of a gtx.training.MoleculeData, "
                "expected trainer.fit(module, data) with one"
            )
        return self.trainer.datamodule

    def forward(self, batch: Any) -> Any:
        if self.dtype != torch.float32:  # precisions such as bf16-true convert the model, not what it reads
            batch = batch.apply(lambda t: t.to(self.dtype) if t.is_floating_point() else t)
        return self.task.forward(self.model, batch)

    def loss(self, batch: Any) -> Tensor:
        """The mean loss of a batch."""
        return self.task.training_loss(self(batch), batch)

    def on_train_start(self) -> None:
        schedules = {id(s.scheduler.optimizer): s.scheduler for s in self.trainer.lr_scheduler_configs}
        for optimiser in self.trainer.optimizers:
            settle(optimiser, schedules.get(id(optimiser)), self.device, self.in_whole_steps)

    def on_train_epoch_start(self) -> None:
        # a resumed run draws what the uninterrupted one drew, whatever was drawn before
        torch.manual_seed(spread_seed(self.seed, self.current_epoch, self.global_rank))
        batches = self.trainer.num_training_batches * self.trainer.world_size
        self.usual_share = self.task.share(self.data.train) / batches

    def training_step(self, batch: Any, _: int) -> Tensor:
        return self.loss(batch) * (self.task.share(batch) / self.usual_share)

    def on_validation_epoch_start(self) -> None:
        self.kept = None

    def validation_step(self, batch: Any, _: int) -> None:
        self._keep(batch, len(self.data.val))

    def on_validation_epoch_end(self) -> None:
        self.log_dict(self._scores("val"), sync_dist=True)  # the same on every rank

    def on_test_epoch_start(self) -> None:
        self.kept = None

    def test_step(self, batch: Any, _: int) -> None:
        self._keep(batch, len(self.data.test))

    def on_test_epoch_end(self) -> None:
        scores = self._scores("test")
        self.log_dict({name.replace("val_", "test_", 1): value for name, value in scores.items()}, sync_dist=True)

    def predict_step(self, batch: Any, _: int) -> Any:
        """Predict in the targets' own units: float64 `[B, P]` of numbers or probabilities, else the task's answers."""
        rows = self.data.truth["test"].subset(batch.row.cpu())
        answers = self.task.decode(self.task.predict([self.model], batch).cpu(), rows)
        return torch.from_numpy(answers.mean) if hasattr(answers, "mean") else answers

    def configure_optimizers(self) -> dict[str, Any]:
        s = self.settings
        scaled = "mixed" in str(self.trainer.precision)
        return self._scheduled(adamw(self.model, s.lr, s.weight_decay, fused=not scaled, rates=s.rates))

    def _scheduled(self, optimiser: Optimizer) -> dict[str, Any]:
        s, steps, first = self.settings, int(self.trainer.estimated_stepping_batches), self.settings.head_first or 0.0
        if s.schedule == "cosine":
            schedule = warmup_cosine(optimiser, steps, s.warmup, first)
        else:
            schedule = warmup_inverse_sqrt(optimiser, max(1, round(s.warmup * steps)), round(first * steps))
        return {"optimizer": optimiser, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def _keep(self, batch: Any, rows: int) -> None:
        kept = self.task.validation_outputs(self(batch), batch)
        if self.kept is None:
            self.kept = kept.new_full((rows + 1, kept.shape[1]), -torch.inf)  # the last is nobody's
        self.kept[batch.row] = kept

    def _scores(self, part: str) -> dict[str, float]:
        # each rank filled in its rows, a few of them twice; the maximum over ranks has them all
        kept = self.trainer.strategy.reduce(self.kept, reduce_op="max")
        return self._judge(part)(kept[:-1])

    def _judge(self, part: str) -> Any:
        """Return the scorer of a part of the split, made once."""
        judges = self.__dict__.setdefault("_judges", {})
        if part not in judges:
            judges[part] = selecting(self.task, self.data.truth[part], self.settings.keep_by)
        return judges[part]


def spread_seed(*numbers: int) -> int:
    """One seed out of several numbers, such that near numbers give unrelated seeds."""
    return int(np.random.SeedSequence(numbers).generate_state(1)[0])
