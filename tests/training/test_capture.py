"""A whole step in constant shapes is the plain step, asks nothing of the device, and says when it cannot be had."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gtx.data import CapacityStore
from gtx.tasks import Regression
from gtx.training import TrainSettings
from gtx.training.capture import Captured, WholeStep, why_not
from gtx.training.module import PropertyModule
from gtx.training.optimise import adamw

from .task import LOGP, model, store, train

TASK = Regression(["y"], element_reference=False).fitted(store())
EXAMPLES = TASK.examples(store())


def module() -> PropertyModule:
    torch.manual_seed(0)
    return PropertyModule(model(TASK, dropout=0.0), TASK, TrainSettings(clip=0.1)).double()


def test_a_whole_step_is_the_plain_one() -> None:
    whole, plain = module(), module()
    cutter = CapacityStore(EXAMPLES)
    usual, rates = 12.0, {"all": 0.1, "head": 1}
    optimiser = adamw(whole.model, torch.tensor(0.01), 0.1, rates=rates)
    step = WholeStep(whole, cutter, optimiser, torch.tensor(usual))
    rival = adamw(plain.model, 0.01, 0.1, rates=rates)
    for index in cutter.sampler(12).batches()[:3]:
        loss = step(index)
        batch = EXAMPLES.batch(index[index >= 0])
        expected = plain.loss(batch) * (batch.num_graphs / usual)
        expected.backward()
        nn.utils.clip_grad_norm_(plain.parameters(), 0.1)
        rival.step()
        rival.zero_grad()
        torch.testing.assert_close(loss, expected.detach(), rtol=1e-6, atol=0)
    for (name, weight), other in zip(whole.named_parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(weight, other, rtol=1e-5, atol=1e-7, msg=name)
        assert weight.grad is None  # as before the step: what it leaves behind is the weights


def test_a_whole_step_asks_nothing_of_the_device() -> None:
    """And what asks is found."""
    command = [sys.executable, "-m", "tests.training.fake_device"]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    *lines, host = done.stdout.splitlines()
    assert lines == [
        "as they are: nothing",
        "item: DataDependentOutputException",
        "nonzero: DynamicOutputShapeException",
    ]
    assert host in ("host: FakeTensorDeviceMismatchError", "host: RuntimeError")  # as torch 2.13 and 2.11 say it


def test_training_in_whole_steps_learns_as_well(tmp_path: Path) -> None:
    plain, whole = (train(tmp_path / str(c), epochs=8, lr=3e-3, capture=c)[0] for c in (False, True))
    spread = float(LOGP.std())
    assert min(m.best_score for m in (plain, whole)) < 0.7
    assert abs(plain.best_score - whole.best_score) < 0.3 * spread
    assert len(whole.history) == 8 and whole.history[-1]["lr"] < 1e-4


@pytest.mark.parametrize(
    ("settings", "kind", "examples", "processes", "reason"),
    [
        ({"precision": "16-mixed"}, None, EXAMPLES, 1, "16-mixed"),
        ({}, None, EXAMPLES, 2, "several processes"),
        ({}, None, [1, 2], 1, "more than molecules"),
        ({}, nn.Linear(1, 1), EXAMPLES, 1, "Linear does not say"),
        ({}, None, EXAMPLES, 1, None),
    ],
)
def test_what_cannot_be_captured_is_said(
    settings: dict[str, Any], kind: nn.Module | None, examples: Any, processes: int, reason: str | None
) -> None:
    found = why_not(TrainSettings(**settings), kind or model(TASK), examples, processes)
    assert (found is None) if reason is None else (reason in found)


def test_a_training_that_cannot_be_captured_takes_the_plain_way(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train(tmp_path, epochs=1, capture=True, model_arguments={"edge_list": True})
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("the training step is not captured: GraphTransformer does not say")


def test_a_step_that_a_graph_cannot_hold_runs_without(monkeypatch: pytest.MonkeyPatch) -> None:
    """Played through without a GPU: three calls to warm up, a capture that fails, and the function from then on."""
    said: list[str] = []
    calls: list[float] = []

    class Given(SimpleNamespace):
        def clone(self) -> Given:
            return self

    def function(given: Any) -> Tensor:
        calls.append(given.value)
        return torch.tensor(given.value)

    class Refuses:
        def __init__(self, graph: object) -> None: ...

        def __enter__(self) -> None:
            raise RuntimeError("operation not permitted when stream is capturing\nmore")

        def __exit__(self, *_: object) -> None: ...

    monkeypatch.setattr(Captured, "_aside", lambda self, given: self.function(given))
    monkeypatch.setattr(torch.cuda, "CUDAGraph", object)
    monkeypatch.setattr(torch.cuda, "graph", Refuses)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    captured = Captured(function, said.append)
    found = [float(captured(Given(value=float(i), device=torch.device("cuda")))) for i in range(6)]
    assert found == calls == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]  # every batch once
    assert said == [
        "the step is not captured as a CUDA graph, and runs without: operation not permitted when stream is capturing"
    ]
