"""The harness that measures speed: what it records of cases, and its contenders' arithmetic. No times."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest
import torch

from experiments.speed import __main__ as command
from experiments.speed import measure, training
from experiments.speed.layer import HEADS, Batch, contender
from experiments.speed.measure import Case, Figures, Result, race, table

PEAK = 40 << 20  # bytes that the case "grows" holds for a moment
OPTIONS = Namespace(repeats=2, seconds=60.0, device="cpu")


def raises(error: Exception) -> None:
    raise error


def test_cases_take_turns_and_a_failure_is_a_result() -> None:
    order: list[str] = []
    cases = [Case("a", name, lambda name=name: lambda: order.append(name), 7) for name in ("one", "two")]
    cases += [
        Case("b", "grows", lambda: lambda: len(b"\1" * PEAK), once=True),
        Case("b", "hungry", lambda: lambda: raises(MemoryError())),
        Case("b", "no set-up", lambda: raises(ValueError("there is no such thing\nand more"))),
    ]
    one, two, grows, hungry, missing = race(cases, OPTIONS)
    assert order == ["one", "two", "two", "one", "one", "two"]
    assert len(one.seconds) == 3 and two.case.name == "two" and len(grows.seconds) == 1
    if measure.CLEAR.exists():  # the peak can be reset on Linux alone
        assert 0.9 * PEAK < grows.peaks[0] < 1.3 * PEAK and max(one.peaks) < PEAK / 4
    assert (hungry.failed, missing.failed) == ("out of memory", "ValueError: there is no such thing")


def test_ratios_are_medians_over_turns_and_reach_the_table() -> None:
    def result(name: str, seconds: list[float], group: str = "x", **more: object) -> Result:
        return Result(Case(group, name, lambda: lambda: None, 6), seconds, [5 << 20] * len(seconds), **more)

    fast, slow = result("gtx", [100.0, 1.0, 10.0, 3.0]), result("PyG", [0.0, 2.0, 40.0, 9.0])
    own = result("own", [2.0], "y", columns={"RMSE": "0.1"})
    assert table([fast, slow, result("a|b", [], failed="out of memory"), own]).splitlines()[2:] == [
        "| x | gtx | 3,000 ms | 2 | 5 MiB | 1.00x | 1.00x |  |",
        "| x | PyG | 9,000 ms | 1 | 5 MiB | 3.00x | 1.00x |  |",
        "| x | a/b | out of memory |  |  |  |  |  |",
        "| y | own | 2,000 ms | 3 | 5 MiB | 1.00x | 1.00x | 0.1 |",
    ]


def test_a_function_may_measure_itself() -> None:
    (own,) = race([Case("x", "own", lambda: lambda: Figures(2.0, 7, {"RMSE": "0.1"}), once=True)], OPTIONS)
    assert (own.seconds, own.peaks, own.columns) == ([2.0], [7], {"RMSE": "0.1"})


def test_a_topic_replaces_its_own_section_of_the_page(tmp_path: Path) -> None:
    page = tmp_path / "speed.md"
    for topic, text in (("layer", "old"), ("batches", "other"), ("layer", "new \\1")):
        command.write_section(page, topic, f"## {topic}\n\n{text}\n")
    assert page.read_text() == "# How fast gtx is\n\n## layer\n\nnew \\1\n\n## batches\n\nother\n"


def test_a_topic_is_measured_from_end_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--quick", "--threads", "1", "--repeats", "1", "--topics", "layer", "--cases", "^bias:.*padded", "--out"]
    command.main([*words, str(tmp_path)])
    assert capsys.readouterr().out.count("; drug-like, 64, float32 | padded SDPA | ") == 2
    assert "## layer\n\nOne attention layer, forward" in (tmp_path / "speed.md").read_text()


@pytest.mark.parametrize("topic", command.TOPICS)
def test_every_topic_has_cases_with_names_of_their_own(
    topic: str, shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GTX_DATA", str(shared_data))
    cases = command.TOPICS[topic](command.parse(["--quick"]))
    assert len({(case.group, case.name) for case in cases}) == len(cases) > 2
    assert training.CHEMPROP not in {case.name for case in cases} or topic == "training"


@pytest.fixture
def batch() -> Batch:
    return Batch(torch.tensor([3, 1, 7, 5]), 16)


def test_padded_attention_is_the_same_function(batch: Batch) -> None:
    torch.manual_seed(0)
    ours, call = contender("bias", "gtx", batch)
    theirs, other = contender("bias", "padded SDPA", batch)
    with torch.no_grad():
        theirs.lin_in.weight.copy_(torch.cat([ours.lin_query.weight, ours.lin_key.weight, ours.lin_value.weight]))
        theirs.lin_in.bias.copy_(torch.cat([ours.lin_query.bias, ours.lin_key.bias, ours.lin_value.bias]))
        theirs.lin_bias.weight.copy_(ours.lin_edge_bias.weight)
        theirs.lin_out.load_state_dict(ours.lin_out.state_dict())
    assert ours.heads == HEADS
    expected = call(batch.x, batch.edge_attr)
    torch.testing.assert_close(other(batch.x, batch.edge_attr), expected, rtol=1e-5, atol=1e-5)


def test_transformer_conv_is_the_same_function(batch: Batch) -> None:
    ours, call = contender("key and value", "gtx", batch)
    theirs, other = contender("key and value", "TransformerConv", batch)
    for name in ("lin_query", "lin_key", "lin_value"):
        getattr(ours, name).load_state_dict(getattr(theirs, name).state_dict())
    with torch.no_grad():
        ours.lin_edge_key.weight.copy_(theirs.lin_edge.weight)
        ours.lin_edge_value.weight.copy_(theirs.lin_edge.weight)
    torch.testing.assert_close(call(batch.x, batch.edge_attr), other(batch.x, batch.edge_attr), rtol=1e-5, atol=1e-5)
