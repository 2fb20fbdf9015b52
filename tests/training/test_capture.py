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

from gtx.data import MoleculeStore, featurise
from gtx.data.batches import ConstantShapeStore, precompute_encodings
from gtx.tasks import BinaryClassification, MulticlassClassification, NumericTask, Regression
from gtx.training import TrainedMember, TrainSettings, capture, fit
from gtx.training.capture import WholeStep, obstacle_to_capture
from gtx.training.module import TrainingModule
from gtx.training.optimise import adamw
from tests.models.test_architectures import make
from tests.models.test_constant_shape import EXTRA

from .task import FEATURISER, LOGP, SMALL, SPLIT, model, store, train
from .test_fitting import stopped_in_epoch

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


# --- What a captured training relies on is tried at its start; every way to fail ends in one line and a right model.
# CUDA graphs are played by a stand-in: `record` keeps the function, and a replay calls it.


DROPOUT = {"model_arguments": {"dropout": 0.2}}


@pytest.fixture
def graphs(monkeypatch) -> Callable[..., list[int]]:
    """Let the stand-in take the place of CUDA graphs; it gives back the list of its replays.

    `replay` makes the result of one of a step, its input and what runs it; `refuse` may refuse to record the step.
    """

    def install(replay: Callable | None = None, refuse: Callable | None = None) -> list[int]:
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
                found = step(given) if replay is None else replay(step, given, lambda: step(given))
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


@pytest.mark.slow
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


def fewer_molecules(self: ConstantShapeStore, index: Tensor) -> Any:
    return CUT(self, torch.cat([index[:1] * 0 - 1, index[1:]]))


def memory_runs_out(self: ConstantShapeStore, index: Tensor) -> Any:
    raise torch.OutOfMemoryError("CUDA out of memory. Tried")


CUT = ConstantShapeStore.batch
CAPTURING = RuntimeError("operation not permitted when stream is capturing\nmore of it")


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"refuse": Mock(side_effect=CAPTURING)}, "operation not permitted when stream is capturing"),
        ({"replay": stale_input}, "the loss of a replayed step is "),
        ({"replay": rate_of_the_capture}, "a replayed step does not see that the rate is 0"),
        ({"replay": same_dropout}, "every replayed step has the same dropout"),
        ({"cut": fewer_molecules}, "in constant shapes the loss of a batch is "),
        ({"cut": memory_runs_out}, "CUDA out of memory. Tried"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.slow
def test_what_cannot_be_relied_on_is_left_out(how, reason, tmp_path, graphs, plain, monkeypatch, capsys) -> None:
    if "cut" in how:
        monkeypatch.setattr(ConstantShapeStore, "batch", how["cut"])
    else:
        graphs(**how)
    (member,) = train(tmp_path, epochs=1, capture=True, **DROPOUT)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"the training step is not captured: {reason}")
    assert_same(member, plain)


@pytest.mark.slow
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


@pytest.mark.slow
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
