"""The harness that measures speed: what it records of cases, and its contenders' arithmetic. No times."""

import json
from pathlib import Path

import pytest
import torch

from experiments import gpu_check
from experiments.speed import measure
from experiments.speed.layer import CONTENDERS, HEADS, Batch
from experiments.speed.measure import Case, race

PEAK = 40 << 20  # bytes that the case "grows" holds for a moment


def raises(error: Exception) -> None:
    raise error


@pytest.mark.slow
def test_cases_are_measured_and_a_failure_is_a_result(monkeypatch) -> None:
    monkeypatch.setattr(measure, "LEAST", 0.01)
    calls: set[str] = set()
    cases = [Case("a", name, lambda name=name: lambda: calls.add(name), 7) for name in ("one", "two")]
    cases += [
        Case("b", "grows", lambda: lambda: len(b"\1" * PEAK), once=True),
        Case("b", "hungry", lambda: lambda: raises(MemoryError())),
        Case("b", "no set-up", lambda: raises(ValueError("there is no such thing\nand more"))),
        Case("b", "own", lambda: lambda: {"seconds": 2.0, "peak": 7, "RMSE": "0.1"}, once=True, own=True),
    ]
    one, two, grows, hungry, missing, own = race(cases, 3).values()
    assert calls == {"one", "two"} and [len(found) for found in (one, two, grows)] == [3, 3, 1]
    if measure.CLEAR.exists():  # the peak can be reset on Linux alone
        assert 0.9 * PEAK < grows[0]["peak"] < 1.3 * PEAK and max(turn["peak"] for turn in one) < PEAK / 4
    assert (hungry, missing) == ([{"failed": "out of memory"}], [{"failed": "ValueError: there is no such thing"}])
    assert own == [{"seconds": 2.0, "peak": 7, "RMSE": "0.1"}]


def test_padded_attention_is_the_same_function() -> None:
    torch.manual_seed(0)
    names, calls = ("gtx", "padded SDPA"), CONTENDERS["bias"]
    ours, theirs = layers = [calls[name][0](16) for name in names]
    with torch.no_grad():
        theirs.lin_in.weight.copy_(torch.cat([ours.lin_query.weight, ours.lin_key.weight, ours.lin_value.weight]))
        theirs.lin_in.bias.copy_(torch.cat([ours.lin_query.bias, ours.lin_key.bias, ours.lin_value.bias]))
        theirs.lin_bias.weight.copy_(ours.lin_edge_bias.weight)
        theirs.lin_out.load_state_dict(ours.lin_out.state_dict())
    assert ours.heads == HEADS
    batch = Batch(torch.tensor([3, 1, 7, 5]), 16)
    found, expected = (calls[name][1](layer, batch) for name, layer in zip(names, layers, strict=True))
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


# --- What a GPU is asked in one call runs on a processor as far as it can, and says where it cannot.


def results(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("phase", gpu_check.PHASES)
def test_a_phase_runs_on_a_processor(phase: str, tmp_path) -> None:
    note = gpu_check.Notes(tmp_path / "results.jsonl", phase)
    gpu_check.PHASES[phase](note, torch.device("cpu"), quick=True)
    found = results(tmp_path)
    assert found and not [line for line in found if "failed" in line]
    if phase == "step":
        assert found[0]["refused"] is None
    if phase == "train":
        assert found[-1]["repeated, largest difference of a weight"] == 0 == found[-1]["resumed"]
    if phase == "kernels":
        assert "a GPU" in found[-1]["needs"]


def test_a_failure_is_a_result(tmp_path) -> None:
    gpu_check.Notes(tmp_path / "results.jsonl", "step").attempt("division", lambda: 1 / 0)
    assert results(tmp_path)[0]["failed"] == "ZeroDivisionError: division by zero"
