"""What a captured training relies on is tried at its start, and every way to fail ends in one line and a right model.

CUDA graphs are played by a stand-in: `record` keeps the function, and a replay calls it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from gtx.data import MoleculeStore, featurise
from gtx.data.batches import ConstantShapeStore
from gtx.tasks import Regression
from gtx.training import TrainedMember, TrainSettings, capture, fit

from .task import FEATURISER, SMALL, SPLIT, model, store, train

pytestmark = pytest.mark.slow

DROPOUT = {"model_arguments": {"dropout": 0.2}}
Replay = Callable[[Any, Tensor, Callable[[], Tensor]], Tensor]
"""Given a step, its input and what runs it: the result of a replay."""


def as_it_is(step: Any, given: Tensor, run: Callable[[], Tensor]) -> Tensor:
    return run()


@pytest.fixture
def graphs(monkeypatch) -> Callable[..., list[int]]:
    """Let the stand-in take the place of CUDA graphs; it gives back the list of its replays."""

    def install(replay: Replay = as_it_is, refuse: Callable[[int, Any, Tensor], None] | None = None) -> list[int]:
        recorded, replays = [], []

        def record(step: Any, given: Tensor) -> tuple[Callable[[], None], Tensor]:
            recorded.append(step)
            if refuse is not None:
                random = torch.get_rng_state()
                try:
                    refuse(len(recorded), step, given)
                finally:
                    torch.set_rng_state(random)
            result, number = torch.empty(()), len(recorded)

            def again() -> None:
                replays.append(number)
                found = replay(step, given, lambda: step(given))
                result.resize_(found.shape).copy_(found)

            return again, result

        monkeypatch.setattr(capture, "can_capture", lambda device: True)
        monkeypatch.setattr(capture, "record", record)
        return replays

    return install


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> TrainedMember:
    return train(tmp_path_factory.mktemp("plain"), epochs=1, capture=False, **DROPOUT)[0]


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> TrainedMember:
    """Trained in batches of constant shape, by steps that are not captured."""
    return train(tmp_path_factory.mktemp("whole"), epochs=3, capture=True, **DROPOUT)[0]


def assert_same(one: TrainedMember, other: TrainedMember) -> None:
    weights = other.model.state_dict()
    assert all(torch.equal(weight, weights[name]) for name, weight in one.model.state_dict().items())


def test_a_replayed_training_is_the_one_that_runs_as_it_is(tmp_path, graphs, whole, capsys) -> None:
    replays = graphs()
    (member,) = train(tmp_path, epochs=3, capture=True, **DROPOUT)
    assert capsys.readouterr().err == "" and {1, 2, 3} <= set(replays)  # two of the check, then the training
    assert_same(member, whole)


def stale_input(step: Any, given: Tensor, run: Callable[[], Tensor]) -> Tensor:
    first = step.__dict__.setdefault("first", given.clone())
    return step(first)


def rate_of_the_capture(step: Any, given: Tensor, run: Callable[[], Tensor]) -> Tensor:
    for group in step.optimiser.param_groups:
        group["lr"].fill_(1e-3)
    return run()


def same_dropout(step: Any, given: Tensor, run: Callable[[], Tensor]) -> Tensor:
    torch.manual_seed(1)
    return run()


def raising(error: Exception) -> Callable[[int, Any, Tensor], None]:
    def refuse(*_: Any) -> None:
        raise error

    return refuse


def fewer_molecules(self: ConstantShapeStore, index: Tensor) -> Any:
    return CUT(self, torch.cat([index[:1] * 0 - 1, index[1:]]))


def memory_runs_out(self: ConstantShapeStore, index: Tensor) -> Any:
    raise torch.OutOfMemoryError("CUDA out of memory. Tried")


CUT = ConstantShapeStore.batch
CAPTURING = RuntimeError("operation not permitted when stream is capturing\nmore of it")


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"refuse": raising(CAPTURING)}, "operation not permitted when stream is capturing"),
        ({"replay": stale_input}, "the loss of a replayed step is "),
        ({"replay": rate_of_the_capture}, "a replayed step does not see that the rate is 0"),
        ({"replay": same_dropout}, "every replayed step has the same dropout"),
        ({"cut": fewer_molecules}, "in constant shapes the loss of a batch is "),
        ({"cut": memory_runs_out}, "CUDA out of memory. Tried"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_relied_on_is_left_out(how, reason, tmp_path, graphs, plain, monkeypatch, capsys) -> None:
    if "cut" in how:
        monkeypatch.setattr(ConstantShapeStore, "batch", how["cut"])
    else:
        graphs(**how)
    (member,) = train(tmp_path, epochs=1, capture=True, **DROPOUT)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"the training step is not captured: {reason}")
    assert_same(member, plain)


def test_a_capture_that_fails_behind_the_backward_pass_changes_nothing(tmp_path, graphs, whole, capsys) -> None:
    """In the training itself, after a check that found nothing wrong."""

    def refuse(number: int, step: Any, given: Tensor) -> None:
        if number == 3:
            step.module.loss(step.train.batch(given)).backward()
            raise CAPTURING

    graphs(refuse=refuse)
    (member,) = train(tmp_path, epochs=3, capture=True, **DROPOUT)
    (line,) = capsys.readouterr().err.splitlines()
    said = str(CAPTURING).splitlines()[0]
    assert line == f"the step is not captured as a CUDA graph, and runs without: {said}"
    assert_same(member, whole)


def test_a_huge_molecule_is_learned_beside_replays(tmp_path, graphs: Callable, monkeypatch, capsys) -> None:
    """It is a batch of its own, in training and in validation, and the training is that without captures."""
    long = featurise(FEATURISER, ["C" * 120, "C" * 110], workers=0).store.with_targets(np.array([[30.0], [28.0]]))
    train, val = (
        MoleculeStore.join([store().subset(torch.as_tensor(SPLIT[part])), long.subset(torch.tensor([k]))])
        for k, part in enumerate(("train", "val"))
    )
    task = Regression(["y"], element_reference=False)
    settings = TrainSettings(**SMALL | {"epochs": 3, "capture": True, "batch_molecules": 6})
    alone: list[int] = []

    def cut(self: ConstantShapeStore, index: Tensor) -> Any:
        alone.append(len(index))
        return CUT(self, index)

    monkeypatch.setattr(ConstantShapeStore, "batch", cut)
    (plain,) = fit(lambda: model(task), task, train, val, settings, tmp_path / "plain")
    assert alone.count(1) >= 2 * settings.epochs
    replays = graphs()
    (replayed,) = fit(lambda: model(task), task, train, val, settings, tmp_path / "replayed")
    assert {3, 4} <= set(replays) and capsys.readouterr().err == ""
    assert_same(replayed, plain)
