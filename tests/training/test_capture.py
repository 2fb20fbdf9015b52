"""A whole step in constant shapes is the plain step, asks nothing of the device, and says when it cannot be had."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from torch import Tensor, nn
from torch.optim import AdamW

from gtx.data.batches import ConstantShapeStore
from gtx.tasks import Regression
from gtx.training import TrainSettings, capture
from gtx.training.capture import WholeStep, obstacle_to_capture
from gtx.training.module import TrainingModule
from gtx.training.optimise import adamw

from .distributed import processes
from .task import LOGP, model, store, train
from .test_batch_budget import stopped_in_epoch

TASK = Regression(["y"], element_reference=False).fit(store())
EXAMPLES = TASK.objective.examples(store())


def module() -> TrainingModule:
    torch.manual_seed(0)
    return TrainingModule(model(TASK, dropout=0.0), TASK, TrainSettings(clip=0.1)).double()


def test_a_whole_step_is_the_plain_one() -> None:
    whole, plain = module(), module()
    cutter = ConstantShapeStore(EXAMPLES)
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


def on_fake_device() -> None:
    from .fake_device import main  # which makes the device

    main()


@pytest.mark.slow
def test_a_whole_step_asks_nothing_of_the_device(tmp_path: Path) -> None:
    """And what asks is found."""
    ((status, said),) = processes(tmp_path, on_fake_device)
    assert status == 0, said
    *lines, host = said.splitlines()[-5:]
    assert lines == [
        "as they are, 8 cases: nothing",
        "item: DataDependentOutputException",
        "nonzero: DynamicOutputShapeException",
        "copy: RuntimeError",
    ]
    assert host in ("host: FakeTensorDeviceMismatchError", "host: RuntimeError")  # as torch 2.13 and 2.11 say it


@pytest.mark.slow
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
        ({}, None, EXAMPLES, 1, None),
    ],
)
def test_what_cannot_be_captured_is_said(
    settings: dict[str, Any], kind: nn.Module | None, examples: Any, processes: int, reason: str | None
) -> None:
    found = obstacle_to_capture(TrainSettings(**settings), kind or model(TASK), examples, processes)
    assert (found is None) if reason is None else (reason in found)


def test_a_training_that_cannot_be_captured_takes_the_plain_way(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train(tmp_path, epochs=1, capture=True, model_arguments={"edge_list": True})
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("the training step is not captured: GraphTransformer does not declare")


@pytest.mark.parametrize("captured_first", [False, True])
def test_a_run_goes_on_in_the_other_way(
    captured_first: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As where it was begun on a GPU and goes on on a processor, or the other way round."""
    found = iter(["no", None] if not captured_first else [None, "no"])
    monkeypatch.setattr("gtx.training.fitting.check_capture", lambda *_: next(found))
    with monkeypatch.context() as patch:
        patch.setattr(TrainingModule, "on_train_epoch_start", stopped_in_epoch(2))
        with pytest.raises(KeyboardInterrupt):
            train(tmp_path, capture=True)
    seen = []
    step = AdamW.step

    def spied(self: AdamW, *arguments: Any, **named: Any) -> Any:
        seen.append([(type(group["lr"]), group["capturable"]) for group in self.param_groups])
        return step(self, *arguments, **named)

    monkeypatch.setattr(AdamW, "step", spied)
    (member,) = train(tmp_path, capture=True)
    assert [row["epoch"] for row in member.history] == [1, 2, 3, 4]
    assert {kind for each in seen for kind, _ in each} == {float if captured_first else Tensor}
    assert member.history[-1]["train_loss"] < member.history[0]["train_loss"]


def test_a_capture_that_fails_restores_stream_and_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a GPU: what stands in for torch's capture leaves its stream current where it fails, as torch does."""
    device, current, generator = torch.device("cuda", 0), ["default"], Mock(**{"clone_state.return_value": "before"})

    @contextmanager
    def on(stream: Any) -> Iterator[None]:
        before, current[0] = current[0], stream
        try:
            yield
        finally:
            current[0] = before

    @contextmanager
    def graph(_: Any, stream: Any) -> Iterator[None]:
        current[0] = stream
        yield

    fakes = {"Stream": lambda _: Mock(), "stream": on, "current_stream": Mock(), "CUDAGraph": Mock(), "graph": graph}
    for name, fake in {**fakes, "default_generators": [generator]}.items():
        monkeypatch.setattr(torch.cuda, name, fake)
    capture.side_stream.cache_clear()
    stream = capture.side_stream(device)
    with pytest.raises(ValueError, match="a question to the device"):
        capture.record(Mock(side_effect=ValueError("a question to the device")), Mock(device=device))
    assert current == ["default"]
    generator.graphsafe_set_state.assert_called_once_with("before")
    assert capture.side_stream(device) is not stream  # which may still be in the capture
    capture.side_stream.cache_clear()
