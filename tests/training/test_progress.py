"""What the bar says of an epoch."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from gtx.training.checkpoints import History
from gtx.training.logging import TrainingBar
from gtx.training.optimise import BestEpoch, WeightAverage


@pytest.fixture
def bar() -> TrainingBar:
    bar = TrainingBar("member 1/1", History(None), BestEpoch(WeightAverage(0.9)))
    bar.on_train_start(SimpleNamespace(current_epoch=0, max_epochs=3))
    return bar


def said(bar: TrainingBar, best: int, **logged: float) -> str:
    """The scores that the bar shows after an epoch, when the epoch `best` is to be kept."""
    bar.history.rows.append({"epoch": len(bar.history.rows) + 1, "train_loss": 0.5, **logged})
    bar.best.epoch = best
    bar.on_train_epoch_end(SimpleNamespace(max_epochs=3, should_stop=False), None)
    return bar.bar.tasks[0].fields["scores"]


def test_a_score_has_its_name_and_its_own_direction(bar: TrainingBar) -> None:
    auc = "loss 0.5000, val roc_auc"
    first, second = (f"{value} in epoch {n}, kept so far" for n, value in ((1, 0.75), (2, 0.875)))
    assert said(bar, 0, val_roc_auc=0.75, val_loss=0.6, val_score=0.25) == f"{auc} 0.75 ({first})"
    assert said(bar, 1, val_roc_auc=0.875, val_loss=0.7, val_score=0.125) == f"{auc} 0.875 ({second})"
    assert said(bar, 1, val_roc_auc=0.5, val_loss=0.5, val_score=0.5) == f"{auc} 0.5 ({second})"


def test_the_score_beside_it_is_that_of_the_epoch_kept(bar: TrainingBar) -> None:
    assert said(bar, 0, val_rmse=20.5, val_score=0.5).endswith("val rmse 20.5 (20.5 in epoch 1, kept so far)")
    worse = said(bar, 0, val_rmse=20.25, val_score=0.75)  # several targets, whose mean decides
    assert worse.endswith("val rmse 20.25 (20.5 in epoch 1, kept so far)")
    anew = said(bar, 2, val_rmse=20.75, val_score=1.0)  # the second half
    assert anew.endswith("val rmse 20.75 (20.75 in epoch 3, kept so far)")


def test_without_validation_the_loss_is_all(bar: TrainingBar) -> None:
    assert said(bar, 0) == "loss 0.5000"


def test_a_file_gets_the_first_and_the_last_epoch_and_one_a_minute(
    bar: TrainingBar, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([100.0, 100.0, 130.0, 161.0, 161.0, 162.0])
    monkeypatch.setattr("gtx.training.logging.time", SimpleNamespace(monotonic=lambda: next(clock)))
    for _ in range(4):
        bar.history.rows.append({"epoch": len(bar.history.rows) + 1, "train_loss": 0.5})
        bar.on_train_epoch_end(SimpleNamespace(max_epochs=4, should_stop=False), None)
    told = [f"member 1/1 epoch {epoch}/4: loss 0.5000" for epoch in (1, 3, 4)]
    assert capsys.readouterr().err.splitlines() == told
