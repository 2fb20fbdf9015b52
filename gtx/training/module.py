"""Any model of molecules as a LightningModule, the result of its training, and the transfer of trained weights."""

from __future__ import annotations

import math
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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
from gtx.training.data import MoleculeDataModule, data_module
from gtx.training.optimise import adamw, adapt_to_device, check_selection, freeze, validation_scorer, warmup_cosine
from gtx.training.run import readable


class TrainingModule(LightningModule):
    """Lightning module that trains a model on a task; its data module is a `gtx.training.MoleculeDataModule`.

    Every molecule has the same weight: the mean loss of a batch is weighted by the number of molecules in the batch (or
    another number, see `Task.share`), because batches have different numbers of molecules. The module does not log or
    synchronise in each step, so that training is fast for small molecules.

    Args:
        model: module that maps a batch of B molecules to outputs `[B, C]`.
        task: task that defines the loss, and the scores of validation and test rows.
        settings: settings of the optimiser and its schedule.
        seed: seed of the network, by default that of the settings. The seed, the number of the epoch and the rank of
            the process determine all random numbers of an epoch.

    Attributes:
        spec: specification of a model that `from_data` made, for `gtx.prediction.Predictor.of`.
    """

    in_whole_steps = False

    def __init__(
        self, model: nn.Module, task: Task, settings: TrainSettings | None = None, seed: int | None = None
    ) -> None:
        super().__init__()
        if "lightning.pytorch" in sys.modules:  # its Trainer refuses this module, without a reason
            warnings.warn(
                "gtx trains with pytorch_lightning: import Trainer from there, not from lightning", stacklevel=2
            )
        self.model = model
        self.task = task
        self.settings: TrainSettings = settings or TrainSettings()
        self.seed: int = self.settings.seed if seed is None else seed
        self.spec: dict[str, Any] | None = None
        self._outputs: dict[str, list[Tensor]] = {}  # of the rows of each level, by part
        self._scorers: dict[str, Callable[..., dict[str, float]]] = {}
        freeze(model, self.settings.rates or {}, self.settings.head_first)
        check_selection(task, self.settings.keep_by, validated=True)

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
        sizes = data.features.network_inputs(read) | {"num_descriptors": data.train.descriptors.shape[1]}
        spec = {"name": model, "arguments": data.task.network_outputs | sizes | arguments}
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

    def setup(self, stage: str) -> None:
        self._scorers.clear()  # those of the molecules of an earlier call
        self._outputs.clear()

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
        self._forget("val")

    def validation_step(self, batch: Any, _: int) -> None:
        self._collect(batch, "val")

    def on_validation_epoch_end(self) -> None:
        if not self.trainer.sanity_checking:
            self.log_dict(self._scores("val"), sync_dist=True)  # the same on every rank

    def on_test_epoch_start(self) -> None:
        self._forget("test")

    def test_step(self, batch: Any, _: int) -> None:
        self._collect(batch, "test")

    def on_test_epoch_end(self) -> None:
        scores = self._scores("test")
        self.log_dict({name.replace("val_", "test_", 1): value for name, value in scores.items()}, sync_dist=True)

    def predict_step(self, batch: Any, _: int) -> Any:
        """Predict in the targets' own units: float64 `[B, P]` of numbers or probabilities; for atoms or bonds a list of
        `[a, P]`, one for each molecule; of several tasks or of texts the columns of their answers.
        """
        rows = self.data.test.subset(batch.row.cpu())
        answers = self.task.answers.decode(self.task.objective.predict([self.model], batch), rows)
        if not isinstance(answers, Predictions):
            return answers.columns()
        lists = answers.mean.dtype == object
        return [torch.from_numpy(each) for each in answers.mean] if lists else torch.from_numpy(answers.mean)

    def configure_optimizers(self) -> OptimizerLRSchedulerConfig:
        s = self.settings
        scaled = "mixed" in str(self.trainer.precision)
        return self._scheduled(adamw(self.model, s.lr, s.weight_decay, fused=not scaled, rates=s.rates))

    def _scheduled(self, optimiser: Optimizer) -> OptimizerLRSchedulerConfig:
        s, steps = self.settings, self.trainer.estimated_stepping_batches
        if math.isinf(steps):
            raise InputError("the learning rate falls to 0 at the last step: give the Trainer max_epochs or max_steps")
        schedule = warmup_cosine(optimiser, int(steps), s.warmup, s.head_first or 0.0)
        return {"optimizer": optimiser, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def _forget(self, part: str) -> None:
        for own in self._outputs.get(part, ()):  # in place: a captured step refers to their memory
            own.fill_(-torch.inf)

    def _collect(self, batch: Any, part: str) -> None:
        objective, examples = self.task.objective, self.data.examples[part]
        outputs = objective.validation_outputs(self(batch), batch)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        if part not in self._outputs:  # the last row is for empty places
            pairs = zip(objective.levels, outputs, strict=True)
            shapes = [(level.count(examples) + 1, own.shape[1]) for level, own in pairs]
            self._outputs[part] = [outputs[0].new_full(shape, -torch.inf) for shape in shapes]
        for level, own, collected in zip(objective.levels, outputs, self._outputs[part], strict=True):
            collected[level.rows(examples, batch)] = own

    def _scores(self, part: str) -> dict[str, float]:
        # each rank filled in its rows, a few of them twice; the maximum over ranks has them all
        outputs = [self.trainer.strategy.reduce(own, reduce_op="max")[:-1] for own in self._outputs[part]]
        molecules, filled = getattr(self.data, part), [(own != -torch.inf).any(1) for own in outputs]
        if not all(rows.all() for rows in filled):  # some are not asked for, as with `limit_test_batches` of a Trainer
            pairs = zip(self.task.objective.levels, filled, strict=True)
            some = torch.cat([level.owner(molecules)[rows.nonzero()[:, 0].cpu()] for level, rows in pairs]).unique()
            scorer = validation_scorer(self.task, molecules.subset(some), self.settings.keep_by)
            return scorer(*(own[rows] for own, rows in zip(outputs, filled, strict=True)))
        if part not in self._scorers:
            self._scorers[part] = validation_scorer(self.task, molecules, self.settings.keep_by)
        return self._scorers[part](*outputs)


def spread_seed(*numbers: int) -> int:
    """Hash several numbers to one seed, such that near numbers give unrelated seeds."""
    return int(np.random.SeedSequence(numbers).generate_state(1)[0])


# --- A trained model.


@dataclass
class TrainedMember:
    """Trained network with its task, best epoch and validation score.

    Attributes:
        model: network with the averaged weights of the best epoch, in evaluation mode, on the CPU.
        task: the fitted task.
        history: one row per epoch, as in `log.csv`.
        best_epoch: best epoch, counted from 1; 0 for a model without epochs.
        best_score: `val_score` of the best epoch; infinite without validation molecules.
    """

    model: nn.Module
    task: Task
    history: list[dict[str, float]]
    best_epoch: int
    best_score: float

    @property
    def batch_pairs(self) -> int | None:
        """Largest number of pairs in a training batch, reduced if memory was short; None without epochs."""
        pairs = self.history[-1].get("batch_pairs") if self.history else None
        return None if pairs is None else int(pairs)


# --- Transfer of weights from a trained model.

MAX_NAMES = 4  # tensors that a note names
HEAD = "head"


@dataclass(frozen=True)
class PretrainedWeightLoader:
    """Loader of weights from a trained model into a new one, for modules whose tensors have equal names and shapes.

    Attributes:
        new_head: whether the head keeps its initial weights, even if the weights of the trained model fit.
        outputs: index in the trained model of each output of the new model, -1 for a new output. Rows of the last layer
            of the head are copied accordingly. None to copy the last layer if its shape fits.
    """

    new_head: bool = False
    outputs: Sequence[int] | None = None

    def transferable(self, state: Mapping[str, Tensor], trained: Mapping[str, Tensor]) -> list[str]:
        """List the tensors that are transferred whole, given both state dicts."""
        unlike = {name for name, tensor in state.items() if name not in trained or trained[name].shape != tensor.shape}
        new = {_module(name) for name in unlike}
        if self.new_head:
            new |= {_module(name) for name in state if name.startswith(f"{HEAD}.")}
        elif self.outputs is not None:
            new.add(last_layer(state))
        return [name for name in state if _module(name) not in new]

    def partly_transferable(self, state: Mapping[str, Tensor], trained: Mapping[str, Tensor]) -> list[str]:
        """List the tensors of the last layer, if some of their rows are transferred and all of the head before it."""
        if self.outputs is None or self.new_head:
            return []
        last, whole = last_layer(state), set(self.transferable(state, trained))
        before = [name for name in state if name.startswith(f"{HEAD}.") and _module(name) != last]
        return [name for name in state if _module(name) == last and name in trained] if whole.issuperset(before) else []

    @torch.no_grad()
    def apply(self, model: nn.Module, trained: nn.Module) -> None:
        """Copy the weights that fit from a trained model."""
        state, source = model.state_dict(), trained.state_dict()
        copied = {name: source[name] for name in self.transferable(state, source)}
        for name in self.partly_transferable(state, source):
            index = torch.tensor(self.outputs)
            shared, copied[name] = index >= 0, state[name].clone()
            copied[name][shared] = source[name][index[shared]]
        model.load_state_dict({**state, **copied})

    def describe(self, state: Mapping[str, Tensor], trained: Mapping[str, Tensor]) -> str:
        """Describe which tensors are transferred and which are new.

        Such as `61 of 63 tensors are kept, 2 are new: head.3.weight [1, 16], head.3.bias [1]`.
        """
        whole, partial = set(self.transferable(state, trained)), self.partly_transferable(state, trained)
        new = [f"{name} {[*tensor.shape]}" for name, tensor in state.items() if name not in {*whole, *partial}]
        number = f"all {len(state)}" if len(whole) == len(state) else f"{len(whole)} of {len(state)}"
        lines = [f"{number} tensors are kept"]
        if partial and self.outputs is not None:
            shared = sum(index >= 0 for index in self.outputs)
            lines.append(f"{shared} of {len(self.outputs)} outputs in {' and '.join(partial)}")
        if new:
            more = f" and {len(new) - MAX_NAMES} more" if len(new) > MAX_NAMES else ""
            verb = "is" if len(new) == 1 else "are"
            lines.append(f"{len(new)} {verb} new: {', '.join(new[:MAX_NAMES])}{more}")
        return ", ".join(lines)


TRANSFER_MATCHING = PretrainedWeightLoader()


def last_layer(state: Mapping[str, Tensor]) -> str:
    """Return the name of the last layer of the head; an empty text if there is no head."""
    return _module(next((name for name in reversed(list(state)) if name.startswith(f"{HEAD}.")), ""))


def _module(tensor: str) -> str:
    return tensor.rpartition(".")[0]
