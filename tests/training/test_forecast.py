"""What a training will take is found without touching it, and a batch too large for the memory is made smaller."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from gtx.data import PairBudgetSampler
from gtx.models import standard
from gtx.molecules import Featuriser
from gtx.tasks import Regression
from gtx.training.forecast import forecast
from gtx.training.memory import free_memory
from gtx.training.module import PropertyModule
from tests.molecules_for_tests import SMILES, store

from .task import train

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
    assert str(found).startswith(f"1 batch an epoch, {found.pairs:,} pairs of atoms; expected: ")


def test_memory_grows_with_the_batch_and_shrinks_when_layers_are_worked_out_again() -> None:
    whole, cut, again = look(make()), look(make(), budget=1000), look(make(recompute=True))
    assert cut.memory < whole.memory and again.memory < 0.8 * whole.memory


def test_short_memory_lowers_the_budget() -> None:
    whole = look(make())
    short = look(make(), free=whole.memory // 2)
    assert 1 <= short.budget < whole.pairs
    assert look(make(), free=0).budget == 1
    assert free_memory(torch.device("cpu")) > 2**20


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_layers_worked_out_again_give_the_same_gradients(dropout: float) -> None:
    results = []
    for recompute in (False, True):
        model = make(recompute=recompute, dropout=dropout).train()
        torch.manual_seed(1)
        model(STORE.batch(torch.arange(len(STORE)))).square().sum().backward()
        results.append([p.grad for p in model.parameters()])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other)


def test_a_run_that_goes_on_keeps_its_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    short = {"batch_molecules": 48, "batch_pairs": 5000, "epochs": 3, "progress": True}
    memory = {"free": 2**40}
    monkeypatch.setattr("gtx.training.forecast.free_memory", lambda device: memory["free"])
    (usual,) = train(tmp_path / "usual", **short)
    assert usual.batch_pairs == 5000 and "memory" not in capsys.readouterr().err
    memory["free"] = 3 * 2**20
    (whole,) = train(tmp_path / "whole", **short)
    assert 100 < whole.batch_pairs < 5000
    assert f"memory is short: batches of {whole.batch_pairs:,} pairs instead" in capsys.readouterr().err
    for later, said in ((2**40, ""), (2**20, f"memory is short for batches of {whole.batch_pairs:,} pairs")):
        memory["free"] = 3 * 2**20
        out = tmp_path / str(later)
        with monkeypatch.context() as patch:
            patch.setattr(PropertyModule, "on_train_epoch_start", stopped_in_epoch(2))
            with pytest.raises(KeyboardInterrupt):
                train(out, **short)
        capsys.readouterr()
        memory["free"] = later
        (member,) = train(out, **short)
        assert said in capsys.readouterr().err
        assert [row["batch_pairs"] for row in member.history] == [whole.batch_pairs] * 3
        for name, weight in member.model.state_dict().items():
            assert torch.equal(weight, whole.model.state_dict()[name])


def stopped_in_epoch(number: int) -> Callable[[PropertyModule], None]:
    start = PropertyModule.on_train_epoch_start

    def started(self: PropertyModule) -> None:
        start(self)
        if self.current_epoch == number:
            raise KeyboardInterrupt

    return started
