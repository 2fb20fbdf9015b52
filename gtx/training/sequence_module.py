"""Any model that writes sequences as a LightningModule, and its training as one call."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import torch
from pytorch_lightning import LightningModule
from pytorch_lightning.utilities.seed import isolate_rng
from torch import Tensor, nn

from gtx.errors import InputError
from gtx.sequence import Examples
from gtx.training.datamodule import StoreDataModule
from gtx.training.losses import smoothed_cross_entropy
from gtx.training.module import spread_seed
from gtx.training.optimise import adamw, warmup_cosine, warmup_inverse_sqrt
from gtx.training.sequence_metrics import count, metrics
from gtx.training.settings import TrainSettings
from gtx.training.surroundings import interruptible, quiet, threads
from gtx.training.trainer import train_module

Schedule = Literal["cosine", "inverse_sqrt"]


class SequenceModule(LightningModule):
    """Trains `model(source, tokens) -> [N, V]` by teacher forcing.

    Every token has the same say: a batch's mean loss is weighted by its share of the labels.

    Args:
        model: gives logits of what comes after each token.
        settings: of the optimiser and its schedule.
        smoothing: see `smoothed_cross_entropy`.
        schedule: of the rate after the warm-up: "cosine" to 0, or "inverse_sqrt".
        seed: with the epoch's number and the process's rank it decides all that is random in an epoch.
    """

    def __init__(
        self,
        model: nn.Module,
        settings: TrainSettings,
        smoothing: float = 0.1,
        schedule: Schedule = "cosine",
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.model, self.settings, self.smoothing, self.schedule, self.seed = model, settings, smoothing, schedule, seed

    def forward(self, batch: Examples) -> tuple[Tensor, Tensor, Tensor]:
        """Logits, labels, and the offsets of the sequences among them."""
        read, labels = batch.targets.taught()
        return self.model(batch.source, read), labels, read.ptr

    def on_train_epoch_start(self) -> None:
        torch.manual_seed(spread_seed(self.seed, self.current_epoch, self.global_rank))
        train = self.trainer.datamodule.train
        labels = len(train.targets.items) + len(train)
        self.usual_count = labels / (self.trainer.num_training_batches * self.trainer.world_size)

    def training_step(self, batch: Examples, _: int) -> Tensor:
        logits, labels, _ = self(batch)
        return smoothed_cross_entropy(logits, labels, self.smoothing) * (len(labels) / self.usual_count)

    def on_validation_epoch_start(self) -> None:
        rows = len(self.trainer.datamodule.val)
        self.counts = torch.full((rows, 3), -torch.inf, dtype=torch.float64, device=self.device)

    def validation_step(self, batch: Examples, _: int) -> None:
        logits, labels, ptr = self(batch)
        self.counts[batch.row] = count(logits.float(), labels, ptr)

    def on_validation_epoch_end(self) -> None:
        # each rank filled in its rows, a few of them twice; the maximum over ranks has them all
        scores = metrics(self.trainer.strategy.reduce(self.counts, reduce_op="max"))
        logged = {f"val_{name}": value for name, value in scores.items()}
        self.log_dict({**logged, "val_score": scores["loss"]}, sync_dist=True)  # the same on every rank

    def configure_optimizers(self) -> dict[str, Any]:
        s, steps = self.settings, int(self.trainer.estimated_stepping_batches)
        mixed = "mixed" in s.precision or s.precision in ("16", "bf16")
        optimiser = adamw(self.model, s.lr, s.weight_decay, fused=not mixed)
        if self.schedule == "cosine":
            schedule = warmup_cosine(optimiser, steps, s.warmup)
        else:
            schedule = warmup_inverse_sqrt(optimiser, max(1, round(s.warmup * steps)))
        return {"optimizer": optimiser, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def fit_sequences(
    model: nn.Module,
    train: Examples,
    val: Examples,
    settings: TrainSettings,
    out: str | Path,
    smoothing: float = 0.1,
    schedule: Schedule = "cosine",
) -> dict[str, Any]:
    """Train a model that writes; it then holds the weights of its best epoch, and is in evaluation mode.

    Called again with the same arguments it goes on where it was stopped.

    Args:
        model: untrained, such as a `gtx.models.MoleculeToSequence`.
        train, val: examples; `val` may be empty.
        settings: how to train; `batch_pairs` is the budget of pairs of tokens (or atoms) of a batch.
        out: the run's folder, for `log.csv` and the last epoch's checkpoint.
        smoothing, schedule: as in `SequenceModule`.

    Returns:
        `history`, a row per epoch with `val_loss`, `val_perplexity`, `val_token_accuracy` and `val_sequence_accuracy`;
        `best_epoch` and `best_score`, the validation loss in nats per token.

    Raises:
        InputError: there are no training examples, or training diverged.
    """
    if len(train) == 0:
        raise InputError("expected training examples, got none")
    if hasattr(model.encoder, "observe") and train.source is not None:
        model.encoder.observe(train.source)
    settings, seed = settings.settled("sequence"), spread_seed(settings.seed, 0)
    with isolate_rng(), quiet(), interruptible(), threads(settings.threads):
        module = SequenceModule(model, settings, smoothing, schedule, seed)
        data = StoreDataModule(train, val, settings, seed)
        done = train_module(module, data, settings, Path(out), "training")
    model.load_state_dict(done.pop("weights"))
    model.cpu().eval()
    return done
