"""Any model of molecules as a LightningModule."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from pytorch_lightning import LightningModule
from pytorch_lightning.utilities.types import OptimizerLRSchedulerConfig
from torch import Tensor, nn
from torch.optim import Optimizer

from gtx.base.errors import InputError
from gtx.models import build_model
from gtx.nn import MoleculeModel
from gtx.settings.training import TrainSettings
from gtx.tasks import Predictions, Task
from gtx.tasks.numeric import ListPredictions
from gtx.training.checkpoints import readable
from gtx.training.data import MoleculeDataModule, data_module
from gtx.training.optimise import adamw, adapt_to_device, check_head_first, freeze, validation_scorer, warmup_cosine


class TrainingModule(LightningModule):
    """Lightning module that trains a model on a task; its data module is a `gtx.training.MoleculeDataModule`.

    Every molecule has the same weight: the mean loss of a batch is weighted by the number of molecules in the batch (or
    another number, see `Task.share`), because batches have different numbers of molecules. The module does not log or
    synchronise in each step, so that training is fast for small molecules.

    Args:
        model: module that maps a batch of B molecules to outputs `[B, C]`.
        task: task that defines the loss, and the scores of validation and test rows.
        settings: settings of the optimiser and its schedule.
        seed: seed of the network. The seed, the number of the epoch and the rank of the process determine all
            random numbers of an epoch.

    Attributes:
        spec: specification of a model that `from_data` made, for `gtx.prediction.Predictor.of`.
    """

    in_whole_steps = False

    def __init__(self, model: nn.Module, task: Task, settings: TrainSettings | None = None, seed: int = 0) -> None:
        super().__init__()
        if "lightning.pytorch" in sys.modules:  # its Trainer refuses this module, without a reason
            warnings.warn(
                "gtx trains with pytorch_lightning: import Trainer from there, not from lightning", stacklevel=2
            )
        self.model = model
        self.task = task
        self.settings: TrainSettings = settings or TrainSettings()
        self.seed = seed
        self.spec: dict[str, Any] | None = None
        self.outputs: Tensor | None = None
        self._scorers: dict[str, Callable[[Tensor], dict[str, float]]] = {}
        freeze(model, self.settings.rates or {})
        check_head_first(model, self.settings.rates or {}, self.settings.head_first)

    @classmethod
    def from_data(cls, data: MoleculeDataModule, model: str = "standard", **arguments: Any) -> Self:
        """Make the module of a named model for the molecules and the task of a data module.

        Args:
            data: result of `MoleculeDataModule.from_table`.
            model: name of a model, see `gtx models`.
            arguments: arguments of the model, such as `channels=64`.

        Raises:
            InputError: the model or an argument is unknown, or the data module was not read from a table.
        """
        read = data.featuriser
        if read is None:
            raise InputError("expected a data module of MoleculeDataModule.from_table, got one of other molecules")
        sizes: dict[str, Any] = {"atom_sizes": list(read.atom_sizes), "bond_sizes": list(read.bond_sizes)}
        sizes |= {"out_channels": data.task.objective.out_channels, "num_descriptors": read.num_descriptors}
        spec = {"name": model, "arguments": sizes | arguments}
        network = build_model(spec)
        if isinstance(network, MoleculeModel):
            network.observe(data.train)
        module = cls(network, data.task, data.settings, data.seed)
        module.spec = spec
        return module

    @classmethod
    def load_from_checkpoint(cls, checkpoint_path: Any, *arguments: Any, **named: Any) -> Self:
        """Read the weights from a Lightning checkpoint.

        Raises:
            InputError: `model` or `task` is missing, because a checkpoint contains only weights; or it is damaged.
        """
        if missing := [name for name in ("model", "task") if name not in named]:
            raise InputError(
                f"a checkpoint holds weights alone: give {' and '.join(f'{name}=' for name in missing)} too, as in "
                "training; a file that gtx.load reads by itself is made by Predictor.of(...).save(path)"
            )
        if isinstance(checkpoint_path, str | os.PathLike) and os.path.isfile(checkpoint_path):
            path = Path(checkpoint_path)
            with readable(path, "Give a checkpoint that the Trainer of Lightning wrote"):
                torch.load(path, map_location="cpu", weights_only=True)["state_dict"]
        return super().load_from_checkpoint(checkpoint_path, *arguments, **{"weights_only": True, **named})

    @property
    def data(self) -> MoleculeDataModule:
        """Data module of the trainer."""
        return data_module(self.trainer)

    def forward(self, batch: Any) -> Any:
        if self.dtype != torch.float32:  # precisions such as bf16-true convert the model, not its input
            batch = batch.apply(lambda t: t.to(self.dtype) if t.is_floating_point() else t)
        return self.task.objective.forward(self.model, batch)

    def loss(self, batch: Any) -> Tensor:
        """Compute the mean loss of a batch."""
        return self.task.objective.mean_loss(self(batch), batch)

    def on_train_start(self) -> None:
        schedules = {id(s.scheduler.optimizer): s.scheduler for s in self.trainer.lr_scheduler_configs}
        for optimiser in self.trainer.optimizers:
            adapt_to_device(optimiser, schedules.get(id(optimiser)), self.device, self.in_whole_steps)

    def on_train_epoch_start(self) -> None:
        # a resumed run draws the same numbers as an uninterrupted one
        torch.manual_seed(spread_seed(self.seed, self.current_epoch, self.global_rank))
        batches = self.trainer.num_training_batches * self.trainer.world_size
        self.usual_share: float | Tensor = self.task.objective.share(self.data.examples["train"]) / batches

    def training_step(self, batch: Any, _: int) -> Tensor:
        return self.loss(batch) * (self.task.objective.share(batch) / self.usual_share)

    def on_validation_epoch_start(self) -> None:
        self.outputs = None

    def validation_step(self, batch: Any, _: int) -> None:
        self._collect(batch, len(self.data.examples["val"]))

    def on_validation_epoch_end(self) -> None:
        self.log_dict(self._scores("val"), sync_dist=True)  # the same on every rank

    def on_test_epoch_start(self) -> None:
        self.outputs = None

    def test_step(self, batch: Any, _: int) -> None:
        self._collect(batch, len(self.data.examples["test"]))

    def on_test_epoch_end(self) -> None:
        scores = self._scores("test")
        self.log_dict({name.replace("val_", "test_", 1): value for name, value in scores.items()}, sync_dist=True)

    def predict_step(self, batch: Any, _: int) -> Any:
        """Predict in the targets' own units: float64 `[B, P]` of numbers or probabilities; for atoms or bonds a list of
        `[a, P]`, one for each molecule; of several tasks or of texts the columns of their answers.
        """
        rows = self.data.test.subset(batch.row.cpu())
        answers = self.task.answers.decode(self.task.objective.predict([self.model], batch), rows)
        if isinstance(answers, Predictions):
            return torch.from_numpy(answers.mean)
        if isinstance(answers, ListPredictions):
            return [torch.from_numpy(values) for values in answers.mean]
        return answers.columns()

    def configure_optimizers(self) -> OptimizerLRSchedulerConfig:
        s = self.settings
        scaled = "mixed" in str(self.trainer.precision)
        return self._scheduled(adamw(self.model, s.lr, s.weight_decay, fused=not scaled, rates=s.rates))

    def _scheduled(self, optimiser: Optimizer) -> OptimizerLRSchedulerConfig:
        s, steps = self.settings, int(self.trainer.estimated_stepping_batches)
        schedule = warmup_cosine(optimiser, steps, s.warmup, s.head_first or 0.0)
        return {"optimizer": optimiser, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def _collect(self, batch: Any, rows: int) -> None:
        outputs = self.task.objective.validation_outputs(self(batch), batch)
        if self.outputs is None:
            self.outputs = outputs.new_full((rows + 1, outputs.shape[1]), -torch.inf)  # the last is for empty places
        self.outputs[batch.row] = outputs

    def _scores(self, part: str) -> dict[str, float]:
        if part not in self._scorers:
            self._scorers[part] = validation_scorer(self.task, getattr(self.data, part), self.settings.keep_by)
        # each rank filled in its rows, a few of them twice; the maximum over ranks has them all
        outputs = self.trainer.strategy.reduce(self.outputs, reduce_op="max")
        return self._scorers[part](outputs[:-1])


def spread_seed(*numbers: int) -> int:
    """Hash several numbers to one seed, such that near numbers give unrelated seeds."""
    return int(np.random.SeedSequence(numbers).generate_state(1)[0])
