"""What decays, how the learning rate runs, how weights are averaged, and which epoch is kept."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from gtx.base.errors import InputError
from gtx.sequence.task import SequenceGenerationTask
from gtx.tasks import BinaryClassification, FractionRegression, Regression
from gtx.tasks.regression import TargetScaler
from gtx.training.optimise import (
    BestEpoch,
    WeightAverage,
    adamw,
    check_selection,
    freeze,
    rate_of,
    validation_scorer,
    warmup_cosine,
)

from .task import LOGP, SPLIT, store, train
from .task import model as small


def test_matrices_alone_decay() -> None:
    model = small(Regression(["y"]))
    names = {id(p): name for name, p in model.named_parameters()}
    decayed, free = ({names[id(p)] for p in group["params"]} for group in adamw(model, 1e-3, 0.1).param_groups)
    assert decayed | free == set(names.values()) and not decayed & free
    assert not [n for n in decayed if "norm" in n or n.endswith(("bias", "table"))]
    assert "head.0.weight" in decayed and "embedding.atoms.table" in free
    assert not [n for n in free if n.endswith("lin.weight") or (n.startswith("head") and n.endswith("weight"))]


def test_rate_rises_then_falls_to_zero() -> None:
    optimiser = adamw(nn.Linear(2, 2), lr=0.01, weight_decay=0)
    schedule = warmup_cosine(optimiser, steps=200, warmup=0.1)
    rates = []
    for _ in range(201):
        rates.append(schedule.get_last_lr()[0])
        optimiser.step()
        schedule.step()
    assert 0 < rates[0] < 0.001 and max(rates) == rates[20] == 0.01
    assert rates[:21] == sorted(rates[:21]) and rates[20:] == sorted(rates[20:], reverse=True)
    assert abs(rates[110] - 0.005) < 1e-9 and rates[200] < 1e-12


def test_the_smallest_part_decides_the_rate() -> None:
    rates = {"all": 0.1, "layers": 0.5, "layers.1": 0.0, "head": 1.0}
    found = [
        rate_of(name, rates) for name in ("norm.weight", "layers.0.norm.bias", "layers.1.x", "layers.10.x", "head")
    ]
    assert found == [0.1, 0.5, 0.0, 0.5, 1.0]
    assert rate_of("norm.weight", {"head": 2.0}) == 1.0


def test_parts_learn_at_their_rates_and_the_slow_ones_later() -> None:
    model = nn.ModuleDict({"body": nn.Linear(2, 2), "head": nn.Linear(2, 2)})
    optimiser = adamw(model, 0.01, 0.1, rates={"body": 0.1})
    schedule = warmup_cosine(optimiser, steps=100, warmup=0.1, head_first=0.3)
    rates = []
    for _ in range(100):
        rates.append([group["lr"] for group in optimiser.param_groups])
        optimiser.step()
        schedule.step()
    fast, slow = zip(*((head, body) for head, _, body, _ in rates), strict=True)
    assert max(fast) == 0.01 and set(slow[:30]) == {0.0}
    assert slow[30:] == pytest.approx([rate / 10 for rate in fast[30:]])
    assert [group["weight_decay"] for group in optimiser.param_groups] == [0.1, 0.0, 0.1, 0.0]


def test_a_module_at_rate_0_is_frozen_and_an_unknown_module_is_named() -> None:
    model = nn.ModuleDict({"body": nn.Linear(2, 2), "head": nn.Linear(2, 2)})
    freeze(model, {"all": 0.0, "head": 1.0})
    assert [name for name, p in model.named_parameters() if p.requires_grad] == ["head.weight", "head.bias"]
    assert len(adamw(model, 0.01, 0.1, rates={"all": 0.0, "head": 1.0}).param_groups) == 2
    with pytest.raises(ValueError, match="no module 'heads'; it has body, head"):
        freeze(model, {"heads": 1.0})
    with pytest.raises(ValueError, match="nothing would learn"):
        freeze(model, {"all": 0})


# --- The average of the weights is what its equation says, stands in for validation, and the best of it is kept.


class Wrapped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.model = nn.Linear(3, 2)


def at(step: int = 0, epoch: int = 0, epochs: int = 8, **metrics: float) -> SimpleNamespace:
    return SimpleNamespace(
        global_step=step, current_epoch=epoch, max_epochs=epochs, callback_metrics=metrics, should_stop=False
    )


def begun(decay: float = 0.99) -> tuple[Wrapped, WeightAverage]:
    module, average = Wrapped(), WeightAverage(decay)
    average.on_train_start(at(), module)
    return module, average


def step(module: Wrapped, average: WeightAverage, number: int) -> None:
    with torch.no_grad():
        module.model.weight.normal_()
    average.on_train_batch_end(at(number), module, None, None, 0)


def test_follows_its_equation() -> None:
    module, average = begun(decay=0.4)
    expected = module.model.weight.detach().double().clone()
    for t in range(1, 12):
        step(module, average, t)
        decay = min(0.4, (1 + t) / (10 + t))
        expected = decay * expected + (1 - decay) * module.model.weight.detach().double()
    torch.testing.assert_close(average.average[0].double(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("scores", "kept"),
    [
        ({25: 1.0}, (30, 40)),  # the second half looks for its best anew, and waits for as long
        ({25: 1.0, 33: 3.0}, (33, 43)),
        ({5: 1.0}, (5, 15)),
        ({5: 1.0, 15: 1.0}, (15, 15)),  # as good, not better: the later is kept, and the wait goes on
    ],
    ids=["best before half", "again after half", "early", "equals"],
)
def test_patience_waits_for_the_epoch_that_is_kept(scores: dict[int, float], kept: tuple[int, int]) -> None:
    module, average = begun()
    best, epoch = BestEpoch(average, patience=10), 0
    trainer = at(epochs=60)
    best.on_train_start(trainer, module)
    while not trainer.should_stop:
        trainer.callback_metrics = {
            "val_score": scores.get(epoch, 90.0 - epoch if epoch < min(scores) else 90.0 + epoch)
        }
        trainer.current_epoch = epoch
        best.on_train_epoch_end(trainer, module)
        epoch += 1
    assert (best.epoch, epoch - 1) == kept
    resumed = BestEpoch(average, patience=10)
    resumed.load_state_dict(best.state_dict())
    trainer.should_stop = False
    resumed.on_train_start(trainer, module)
    assert trainer.should_stop


# --- The validation score of the user's choice decides which epoch is kept.


NOISE = np.random.default_rng(1).permutation(np.where(np.median(LOGP) < LOGP, 1.0, 0.0))  # which nobody can learn
CLASSES = BinaryClassification("y")


@pytest.mark.slow
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
    with pytest.raises(InputError, match="keep_by: the validation rows do not define r2; too few of their values"):
        validation_scorer(task, val.with_targets(np.ones_like(y)), "r2")(near)


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
