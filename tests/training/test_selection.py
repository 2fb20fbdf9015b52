"""The validation score of the user's choice decides which epoch is kept."""

import math

import numpy as np
import pytest
import torch

from gtx.base.errors import InputError
from gtx.sequence.task import SequenceGenerationTask
from gtx.tasks import BinaryClassification, FractionRegression, Regression
from gtx.tasks.regression import TargetScaler
from gtx.training.optimise import check_selection, validation_scorer

from .task import LOGP, SPLIT, store, train

pytestmark = pytest.mark.slow

NOISE = np.random.default_rng(1).permutation(np.where(np.median(LOGP) < LOGP, 1.0, 0.0))  # which nobody can learn
CLASSES = BinaryClassification("y")


def test_the_epoch_kept_is_the_best_by_the_metric(tmp_path) -> None:
    settings = {"epochs": 16, "lr": 1e-2}
    (usual,) = train(tmp_path / "usual", NOISE, CLASSES, **settings)
    (chosen,) = train(tmp_path / "chosen", NOISE, CLASSES, keep_by="loss", **settings)
    losses = [row["val_loss"] for row in chosen.history]
    assert losses == [row["val_loss"] for row in usual.history]  # the choice changes no training
    assert chosen.best_epoch == losses.index(min(losses[8:])) + 1  # the second half looks for its best anew
    assert chosen.best_score == losses[chosen.best_epoch - 1] and usual.best_epoch != chosen.best_epoch
    assert all(row["val_score"] == row["val_loss"] for row in chosen.history)
    # what decides stands first, for the bar
    assert [next(c for c in m.history[0] if "val" in c) for m in (usual, chosen)] == ["val_roc_auc", "val_loss"]


def test_a_score_that_is_better_when_higher_counts_as_its_negative() -> None:
    y = LOGP[SPLIT["val"]]
    val = store().subset(SPLIT["val"])
    task = Regression("y", scaler=TargetScaler.fit(torch.from_numpy(LOGP)))
    near, far = (task.objective.scale(val) + shift for shift in (0.1, 1.0))
    for name, sign in (("rmse", 1), ("mae", 1), ("r2", -1), ("loss", 1)):
        score = validation_scorer(task, val, name)
        assert score(near)["val_score"] == sign * score(near)[f"val_{name}"] < score(far)["val_score"]
    assert validation_scorer(task, val, "mae")(near)["val_mae"] == pytest.approx(0.1 * float(task.scaler.sd), rel=1e-5)
    assert math.isnan(
        validation_scorer(task, val, "mae")(torch.full((len(y), 1), torch.inf))["val_score"]
    )  # it diverged


def test_what_no_task_has_is_refused_before_training_and_its_metrics_are_named(tmp_path) -> None:
    with pytest.raises(InputError, match="keep_by: expected one of rmse, mae, r2, loss for regression, got 'rsme'"):
        train(tmp_path, keep_by="rsme")
    with pytest.raises(
        InputError, match="expected one of token_accuracy, perplexity, loss for sequence, got 'invalid'"
    ):
        check_selection(SequenceGenerationTask("y"), "invalid", validated=True)
    with pytest.raises(InputError, match="for fractions, got 'roc_auc'"):
        check_selection(FractionRegression(["a", "b"]), "roc_auc", validated=True)
    with pytest.raises(InputError, match="keep_by: no rows validate, so no epoch has a validation mae"):
        train(tmp_path, keep_by="mae", split={"train": SPLIT["train"]})
    assert not list(tmp_path.iterdir())
