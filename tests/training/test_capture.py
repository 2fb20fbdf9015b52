"""A whole step in constant shapes is the plain step, asks nothing of the device, and says when it cannot be had."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, AdamW

from gtx.data import MoleculeStore
from gtx.data.batches import ConstantShapeStore, precompute_encodings
from gtx.tasks import BinaryClassification, MulticlassClassification, NumericTask, Regression
from gtx.training import TrainSettings, capture
from gtx.training.capture import WholeStep, obstacle_to_capture
from gtx.training.module import TrainingModule
from gtx.training.optimise import adamw
from tests.models.test_architectures import make
from tests.models.test_constant_shape import EXTRA

from .task import LOGP, model, store, train
from .test_batch_budget import stopped_in_epoch

TASK = Regression(["y"], element_reference=False).fit(store())
EXAMPLES = TASK.objective.examples(store())
CASES = ["rmat", "egt", "grit", "gps", "torchmd_net", "rings", "few edges under a mask", "triplets in space"]
"""Models that differ in the operators they call."""


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


class Mistaken(nn.Module):
    """A model that asks something of the device."""

    def __init__(self, model: nn.Module, question: str) -> None:
        super().__init__()
        self.model, self.question = model, question

    def forward(self, batch: Any) -> Tensor:
        out = self.model(batch)
        if self.question == "item":
            return out * out.mean().item()
        if self.question == "nonzero":
            return out + out[out[:, 0] > 0].sum()
        if self.question == "copy":
            return out + out.detach().cpu().to(out.device)
        return out + torch.ones(len(out), 1)


@pytest.fixture
def step_without_values(monkeypatch) -> Callable[..., None]:
    """A whole step with tensors that have shapes and no values, so that whatever hangs on values raises."""
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())  # torch has none for such tensors
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda *_: False)

    def step(task: NumericTask, made: nn.Module, molecules: MoleculeStore, question: str | None = None) -> None:
        examples, nowhere = task.objective.examples(molecules), torch.device("meta")
        made.observe(examples)
        kept = precompute_encodings(examples, made.compute_encodings, list(made.fixed), torch.device("cpu"), 1 << 30)
        cutter = ConstantShapeStore(examples)
        index = cutter.sampler(16).batches()[0].to(nowhere)
        cutter.store = examples.to(nowhere)
        if not all(encoding.constant_shapes for encoding in made.embedding.encodings):  # they are computed beforehand
            tables = ({name: x.to(nowhere) for name, x in part.items()} for part in kept[:2])
            cutter.fixed = type(kept)(*tables, kept.pair_ptr.to(nowhere))
        made.to(nowhere)
        training = TrainingModule(Mistaken(made, question) if question else made, task, TrainSettings(epochs=1))
        whole = WholeStep(training, cutter, SGD(made.parameters(), 0.1), torch.tensor(16.0, device=nowhere))
        assert whole(index).shape == ()

    return step


def test_a_whole_step_asks_nothing_of_the_device(step_without_values: Callable[..., None]) -> None:
    """And what asks is found."""
    labels, halves = (("low", "high"),), (LOGP.mean() < LOGP).astype(float)
    more: dict[str, Any] = {"virtual_nodes": 1, "attention_dropout": 0.1}
    more["substructures"] = {"folded": 64, "atoms": [0, 1], "bonds": [0]}
    for kind in (BinaryClassification, MulticlassClassification):
        task = kind(["y"], classes=labels, class_weights="balanced").fit(store(halves))
        step_without_values(task, model(task, **more), store(halves))
    two = store(np.hstack([LOGP, -LOGP]))
    two = replace(two, positions=torch.randn(len(two.atoms), 3))
    for case in CASES:
        task, arguments = Regression(["y", "z"], element_reference=False).fit(two), {"name": case} | EXTRA.get(case, {})
        step_without_values(task, make(**arguments), two)
    for question in ("item", "nonzero", "copy", "host"):
        with pytest.raises((RuntimeError, NotImplementedError), match=r"item\(\)|nonzero|no data|on device cpu"):
            step_without_values(TASK, model(TASK), store(), question)


@pytest.mark.parametrize(
    ("settings", "examples", "processes", "reason"),
    [
        ({"precision": "16-mixed"}, EXAMPLES, 1, "16-mixed"),
        ({}, EXAMPLES, 2, "several processes"),
        ({}, [1, 2], 1, "more than molecules"),
        ({}, EXAMPLES, 1, None),
    ],
)
def test_what_cannot_be_captured_is_said(settings, examples, processes, reason) -> None:
    found = obstacle_to_capture(TrainSettings(**settings), model(TASK), examples, processes)
    assert (found is None) if reason is None else (reason in found)


def test_a_training_that_cannot_be_captured_takes_the_plain_way(tmp_path, capsys) -> None:
    train(tmp_path, epochs=1, capture=True, model_arguments={"edge_list": True})
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("the training step is not captured: GraphTransformer does not declare")


@pytest.mark.parametrize("captured_first", [False, True])
def test_a_run_goes_on_in_the_other_way(captured_first: bool, tmp_path, monkeypatch, capsys) -> None:
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


def test_a_capture_that_fails_restores_stream_and_generator(monkeypatch) -> None:
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
