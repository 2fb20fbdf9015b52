"""What a training will take is found without touching it, and a batch too large for the memory is made smaller."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch

from gtx.data import PairBudgetSampler
from gtx.errors import InputError
from gtx.models import standard
from gtx.molecules import Featuriser
from gtx.tasks import Regression
from gtx.training.capture import WARM_UP
from gtx.training.data import free_memory
from gtx.training.forecast import forecast
from gtx.training.module import TrainingModule
from tests.molecules_for_tests import SMILES, store

from .task import train

pytestmark = pytest.mark.slow

FEATURISER, TASK = Featuriser(), Regression(["y"])
STORE = store().with_targets(np.random.default_rng(0).normal(size=(len(SMILES), 1)))


def make(**arguments: object) -> torch.nn.Module:
    torch.manual_seed(0)
    sizes = {"atom_sizes": FEATURISER.atom_sizes, "bond_sizes": FEATURISER.bond_sizes}
    return standard(1, **sizes, channels=16, heads=2, layers=4, **arguments)


def look(model: torch.nn.Module, budget: int = 50_000, free: int | None = None, captured: bool = False):
    sampler = PairBudgetSampler(STORE.sizes, budget)
    loss = lambda batch: TASK.training_loss(model(batch), batch)  # noqa: E731
    return forecast(model, STORE.batch, sampler, loss, torch.device("cpu"), budget, free, captured)


@pytest.mark.parametrize("captured", [False, True])
def test_leaves_everything_as_it_was(captured: bool) -> None:
    model = make().eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = torch.get_rng_state()
    found = look(model, captured=captured)
    assert torch.equal(torch.get_rng_state(), state) and not model.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())
    assert found.batches == 1 and found.pairs == int(STORE.sizes.square().sum()) and found.seconds > 0
    assert found.budget == 50_000
    assert str(found).startswith(f"1 batch an epoch, {found.pairs:,} pairs of atoms; estimated: ")


def test_a_capture_finds_no_gradient_node_of_an_earlier_pass() -> None:
    """A node remembers its stream: one that an earlier pass has left would take a capture out of its own."""
    model, seen = make(), []

    def nodes() -> list[torch.autograd.graph.Node]:
        return [p.view_as(p).grad_fn.next_functions[0][0] for p in model.parameters()]

    def loss(batch: Batch) -> torch.Tensor:
        seen.append(sum("pass" in node.metadata for node in nodes()))
        value = TASK.training_loss(model(batch), batch)
        for node in nodes():
            node.metadata["pass"] = len(seen)
        assert any("pass" in node.metadata for node in nodes())  # they live as long as the loss
        return value

    sampler = PairBudgetSampler(STORE.sizes, 50_000)
    with torch.autocast("cpu", torch.bfloat16):
        forecast(model, STORE.batch, sampler, loss, torch.device("cpu"), 50_000, captured=True)
        assert sum("pass" in node.metadata for node in nodes()) == 0
    assert len(seen) == 2 + WARM_UP + 2 and set(seen[2:]) == {0}


def test_activations_are_gone_when_a_trial_has_failed() -> None:
    """Without waiting for Python to collect cycles: an exponential keeps its own result for the backward pass."""
    model, alive = make(), []
    model.layers[0].register_forward_hook(lambda *given: alive.append(weakref.ref(given[2][0])))

    def loss(batch: Batch) -> torch.Tensor:
        kept = TASK.training_loss(model(batch), batch).exp()
        raise torch.OutOfMemoryError(f"CUDA out of memory, after {len(kept.shape)}")

    gc.disable()
    try:
        with suppress(torch.OutOfMemoryError):
            forecast(model, STORE.batch, PairBudgetSampler(STORE.sizes, 5000), loss, torch.device("cpu"), 5000)
        assert alive and all(activation() is None for activation in alive)
    finally:
        gc.enable()


@pytest.mark.parametrize("capture", [False, True])
def test_a_trial_that_runs_out_of_memory_takes_smaller_batches(
    capture: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cut, room, tried = TrainingModule.loss, {"pairs": 0}, []

    def loss(self: TrainingModule, batch: Batch) -> torch.Tensor:
        if sys.exc_info()[0] is not None or (pairs := batch_pairs(batch)) > room["pairs"]:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        tried.append(pairs)
        return cut(self, batch)

    monkeypatch.setattr(TrainingModule, "loss", loss)
    monkeypatch.setattr("gtx.training.fitting.check_capture", lambda *_: None)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: emptied.append(sys.exc_info()[0]))
    emptied: list[Any] = []
    room["pairs"] = 1500
    (member,) = train(tmp_path / "less", epochs=1, progress=True, capture=capture)
    assert 100 < member.batch_pairs <= 1500 and max(tried) <= 1500
    assert f"memory is short: batches of {member.batch_pairs:,} pairs instead" in capsys.readouterr().err
    assert emptied and set(emptied) == {None}  # not while the error holds what did not fit
    room["pairs"] = 0
    with pytest.raises(InputError, match=r"does not hold one training step of the largest molecule, of 13 atoms"):
        train(tmp_path / "none", epochs=1, capture=capture)


def batch_pairs(batch: Batch) -> int:
    return batch.graph.num_pairs if "graph" in batch else int(batch.ptr.diff().square().sum())


def test_short_memory_lowers_the_budget() -> None:
    whole = look(make())
    short = look(make(), free=whole.memory // 2)
    assert 1 <= short.budget < whole.pairs
    assert look(make(), free=0).budget == 1
    assert free_memory(torch.device("cpu")) > 2**20


def test_a_run_that_goes_on_keeps_its_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    short = {"batch_molecules": 48, "batch_pairs": 5000, "epochs": 3, "progress": True}
    memory = {"free": 2**40}
    monkeypatch.setattr("gtx.training.forecast.free_memory", lambda device: memory["free"])
    (usual,) = train(tmp_path / "usual", **short)
    assert usual.batch_pairs == 5000 and "memory is short" not in capsys.readouterr().err
    memory["free"] = 3 * 2**20
    (whole,) = train(tmp_path / "whole", **short)
    assert 100 < whole.batch_pairs < 5000
    assert f"memory is short: batches of {whole.batch_pairs:,} pairs instead" in capsys.readouterr().err
    for later, said in ((2**40, ""), (2**20, f"memory is short for batches of {whole.batch_pairs:,} pairs")):
        memory["free"] = 3 * 2**20
        out = tmp_path / str(later)
        with monkeypatch.context() as patch:
            patch.setattr(TrainingModule, "on_train_epoch_start", stopped_in_epoch(2))
            with pytest.raises(KeyboardInterrupt):
                train(out, **short)
        capsys.readouterr()
        memory["free"] = later
        (member,) = train(out, **short)
        assert said in capsys.readouterr().err
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
