"""What the bar says of an epoch."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from gtx.training.averaging import KeepBest, WeightAverage
from gtx.training.history import History
from gtx.training.progress import TrainingBar


@pytest.fixture
def bar() -> TrainingBar:
    bar = TrainingBar("member 1/1", History(None), KeepBest(WeightAverage(0.9)))
    bar.disable()
    bar.on_train_start(SimpleNamespace(current_epoch=0, max_epochs=3))
    return bar


def said(bar: TrainingBar, best: int, **logged: float) -> str:
    """The scores that the bar shows after an epoch, when the epoch `best` is to be kept."""
    bar.history.rows.append({"epoch": len(bar.history.rows), "train_loss": 0.5, **logged})
    bar.best.epoch = best
    bar.on_train_epoch_end(None, None)
    return bar.bar.tasks[0].fields["scores"]


def test_a_score_has_its_name_and_its_own_direction(bar: TrainingBar) -> None:
    auc = "loss 0.5000, val roc_auc"
    assert said(bar, 0, val_roc_auc=0.75, val_loss=0.6, val_score=0.25) == f"{auc} 0.75, best 0.75"
    assert said(bar, 1, val_roc_auc=0.875, val_loss=0.7, val_score=0.125) == f"{auc} 0.875, best 0.875"
    assert said(bar, 1, val_roc_auc=0.5, val_loss=0.5, val_score=0.5) == f"{auc} 0.5, best 0.875"


def test_the_best_is_that_of_the_epoch_kept(bar: TrainingBar) -> None:
    assert said(bar, 0, val_rmse=20.5, val_score=0.5).endswith("val rmse 20.5, best 20.5")
    assert said(bar, 0, val_rmse=20.25, val_score=0.75).endswith("val rmse 20.25, best 20.5")  # several targets
    assert said(bar, 2, val_rmse=20.75, val_score=1.0).endswith("val rmse 20.75, best 20.75")  # the second half


def test_without_validation_the_loss_is_all(bar: TrainingBar) -> None:
    assert said(bar, 0) == "loss 0.5000"
