"""What the bar says of an epoch."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from gtx.training.progress import TrainingBar


def said(bar: TrainingBar, **logged: float) -> str:
    """The scores that the bar shows after an epoch."""
    metrics = {name: torch.tensor(value) for name, value in {"train_loss": 0.5, **logged}.items()}
    bar.on_train_epoch_end(SimpleNamespace(callback_metrics=metrics), None)
    return bar.bar.tasks[0].fields["scores"]


@pytest.fixture
def bar() -> TrainingBar:
    bar = TrainingBar("member 1/1")
    bar.disable()
    bar.on_train_start(SimpleNamespace(current_epoch=0, max_epochs=3))
    return bar


def test_a_score_has_its_name_and_its_own_direction(bar: TrainingBar) -> None:
    auc = "loss 0.5000, val roc_auc"
    assert said(bar, val_roc_auc=0.75, val_loss=0.6, val_score=0.25) == f"{auc} 0.75, best 0.75"
    assert said(bar, val_roc_auc=0.875, val_loss=0.7, val_score=0.125) == f"{auc} 0.875, best 0.875"
    assert said(bar, val_roc_auc=0.5, val_loss=0.5, val_score=0.5) == f"{auc} 0.5, best 0.875"


def test_the_best_is_that_of_the_epoch_kept(bar: TrainingBar) -> None:
    assert said(bar, val_rmse=20.5, val_score=0.5).endswith("val rmse 20.5, best 20.5")
    assert said(bar, val_rmse=20.25, val_score=0.75).endswith(
        "val rmse 20.25, best 20.5"
    )  # several targets weigh alike


def test_a_resumed_bar_knows_the_best(bar: TrainingBar) -> None:
    said(bar, val_rmse=2.0, val_score=0.5)
    again = TrainingBar("member 1/1")
    again.load_state_dict(bar.state_dict())
    again.disable()
    again.on_train_start(SimpleNamespace(current_epoch=1, max_epochs=3))
    assert said(again, val_rmse=3.0, val_score=0.75).endswith("val rmse 3, best 2")


def test_without_validation_the_loss_is_all(bar: TrainingBar) -> None:
    assert said(bar) == "loss 0.5000"
