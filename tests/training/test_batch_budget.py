"""A batch too large for the memory is made smaller before training starts, and the trial leaves no trace."""

import gc
import sys
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch

from gtx.base.errors import InputError
from gtx.models import standard
from gtx.molecules import Featuriser
from gtx.tasks import Regression
from gtx.training.fitting import try_step
from gtx.training.module import TrainingModule
from tests.molecules_for_tests import CODE_SIZES, SMILES, store

from .task import train

pytestmark = pytest.mark.slow

FEATURISER, TASK = Featuriser(), Regression(["y"])
STORE = store().with_targets(np.random.default_rng(0).normal(size=(len(SMILES), 1)))


@pytest.fixture
def module() -> TrainingModule:
    torch.manual_seed(0)
    return TrainingModule(standard(1, **CODE_SIZES, channels=16, heads=2, layers=4), TASK)


def every() -> Batch:
    return STORE.batch(torch.arange(len(STORE)))


def test_a_trial_leaves_everything_as_it_was(module: TrainingModule) -> None:
    module.eval()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    state = torch.get_rng_state()
    try_step(module, every)
    assert torch.equal(torch.get_rng_state(), state) and not module.model.training
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert all(p.grad is None for p in module.parameters())


def test_activations_are_gone_when_a_trial_has_failed(module: TrainingModule, monkeypatch) -> None:
    """Without waiting for Python to collect cycles: an exponential keeps its own result for the backward pass."""
    cut, alive = TrainingModule.loss, []
    module.model.layers[0].register_forward_hook(lambda *given: alive.append(weakref.ref(given[2][0])))

    def loss(self: TrainingModule, batch: Batch) -> torch.Tensor:
        kept = cut(self, batch).exp()
        raise torch.OutOfMemoryError(f"CUDA out of memory, after {len(kept.shape)}")

    monkeypatch.setattr(TrainingModule, "loss", loss)
    gc.disable()
    try:
        with suppress(torch.OutOfMemoryError):
            try_step(module, every)
        assert alive and all(activation() is None for activation in alive)
    finally:
        gc.enable()


@pytest.fixture
def room(monkeypatch) -> dict[str, int]:
    """A memory with room for a number of pairs."""
    cut, room = TrainingModule.loss, {"pairs": 1500, "largest": 0}

    def loss(self: TrainingModule, batch: Batch) -> torch.Tensor:
        pairs = batch.graph.num_pairs if "graph" in batch else int(batch.ptr.diff().square().sum())
        if sys.exc_info()[0] is not None or pairs > room["pairs"]:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        room["largest"] = max(room["largest"], pairs)
        return cut(self, batch)

    monkeypatch.setattr(TrainingModule, "loss", loss)
    monkeypatch.setattr("gtx.training.fitting.check_capture", lambda *_: None)
    return room


@pytest.mark.parametrize("capture", [False, True])
def test_a_trial_that_runs_out_of_memory_takes_smaller_batches(capture, room, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: emptied.append(sys.exc_info()[0]))
    emptied: list[Any] = []
    (member,) = train(tmp_path / "less", epochs=1, progress=True, capture=capture)
    assert 100 < member.batch_pairs <= 1500 and room["largest"] <= 1500
    assert f"memory is short: batches of {member.batch_pairs:,} pairs instead" in capsys.readouterr().err
    assert emptied and set(emptied) == {None}  # not while the error holds what did not fit
    room["pairs"] = 0
    with pytest.raises(InputError, match=r"does not hold one training step of the largest molecule, of 13 atoms"):
        train(tmp_path / "none", epochs=1, capture=capture)


def test_a_run_that_goes_on_keeps_its_batches(room: dict[str, int], tmp_path, monkeypatch, capsys) -> None:
    (whole,) = train(tmp_path / "whole", epochs=3)
    assert 100 < whole.batch_pairs <= 1500
    with monkeypatch.context() as patch:
        patch.setattr(TrainingModule, "on_train_epoch_start", stopped_in_epoch(2))
        with pytest.raises(KeyboardInterrupt):
            train(tmp_path / "run", epochs=3)
    room["pairs"] = 10**9
    (member,) = train(tmp_path / "run", epochs=3)
    assert [row["batch_pairs"] for row in member.history] == [whole.batch_pairs] * 3
    for name, weight in member.model.state_dict().items():
        assert torch.equal(weight, whole.model.state_dict()[name])


def stopped_in_epoch(number: int) -> Callable[[TrainingModule], None]:
    start = TrainingModule.on_train_epoch_start

    def started(self: TrainingModule) -> None:
        start(self)
        if self.current_epoch == number:
            raise KeyboardInterrupt

    return started
