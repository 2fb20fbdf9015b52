"""The average of the weights is what its equation says, stands in for validation, and the best of it is kept."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from gtx.training.optimise import BestEpoch, WeightAverage


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
