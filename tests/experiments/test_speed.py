"""The harness that measures speed: what it records of cases, and its contenders' arithmetic. No times."""

from __future__ import annotations

import importlib
import sys
from argparse import Namespace
from pathlib import Path

import pytest
import torch

from experiments import archive
from experiments.speed import __main__ as command
from experiments.speed import bench_layer, bench_step, harness, measure, pages
from experiments.speed.attentions import HEADS, Batch, contender
from experiments.speed.pages import ratio, rival_tables, table
from tests.experiments import toy_cases
from tests.experiments.toy_cases import PEAK


def options(*words: str) -> Namespace:
    return harness.options(["--quick", "--threads", "1", "--repeats", "2", *words])


@pytest.fixture(scope="module")
def records() -> dict[tuple[str, str], dict]:
    own = options("--cases", "works|set-up|hungry|dies")
    own.memory = 2 << 30
    *parts, found = harness.measure_topic(toy_cases, own)
    assert [len(part) for part in parts] == [len(found) - 1, len(found)]  # as they come: a group's, then all
    return {(record["case"], record["step"]): record for record in found}


def test_running_out_of_memory_is_a_result_and_other_steps_keep_theirs(records: dict) -> None:
    assert records["works", "fails"] == {"case": "works", "step": "fails", "size": 7, "failed": "out of memory"}
    assert records["works", "talks"]["runs"] == records["works", "grows"]["runs"] == 2


def test_a_killed_process_is_a_result(records: dict) -> None:
    assert records["dies", "all"]["failed"] == "the process was killed"


def test_a_case_that_cannot_be_set_up_says_why_in_a_line(records: dict) -> None:
    assert records["no set-up", "all"]["failed"] == "ValueError: there is no such thing"


@pytest.mark.skipif(not measure.CLEAR.exists(), reason="the peak can be reset on Linux alone")
def test_peak_memory_is_what_a_step_needs(records: dict) -> None:
    assert 0.9 * PEAK < records["works", "grows"]["peak"] < 1.3 * PEAK  # the kernel counts pages in batches
    assert records["works", "talks"]["peak"] < PEAK / 4


def test_what_takes_too_long_is_killed_and_what_there_is_no_time_for_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "GRACE", 0.1)
    started, begin = [], harness.ProcessPoolExecutor
    monkeypatch.setattr(harness, "ProcessPoolExecutor", lambda *given: started.append(given) or begin(*given))
    *_, (stopped, late) = harness.measure_topic(toy_cases, options("--cases", "set-up|waits"), 7.0)
    assert len(started) == 1  # of two groups
    assert stopped == {"case": "waits", "step": "all", "failed": "no time was left"}
    assert late == {"case": "no set-up", "step": "all", "failed": "no time was left"}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit holds on Linux alone")
def test_a_limit_of_memory_is_met_as_a_failure(records: dict) -> None:
    assert records["hungry", "all"]["failed"] == "out of memory"


def turn(*seconds: float, peak: int = 5) -> dict:
    return {"wall": list(seconds), "cpu": [2 * s for s in seconds], "peak": peak}


def test_record_takes_medians_and_leaves_out_the_warm_up() -> None:
    turns = [turn(100.0, peak=99), turn(1.0, 2.0), turn(6.0, peak=8)]
    found = harness.record({"case": "a"}, turns)
    assert (found["seconds"], found["wall"], found["cpu"], found["runs"]) == (2.0, 2.0, 4.0, 3)
    assert (found["case"], found["turns"], found["peak"]) == ("a", [1.5, 6.0], 8)
    assert harness.record({}, turns, clock="cpu")["seconds"] == 4.0
    alone = harness.record({}, [turn(3.0, peak=7)], warm_up=False)
    assert (alone["seconds"], alone["peak"]) == (3.0, 7)


def test_a_ratio_of_times_is_the_median_over_turns() -> None:
    slow = harness.record({"case": "a"}, [turn(0.0), turn(2.0), turn(40.0), turn(9.0)])
    fast = harness.record({"case": "b"}, [turn(0.0), turn(1.0), turn(10.0), turn(3.0)])
    assert ratio(slow, fast) == 3.0
    assert ratio(slow, fast, "peak") == 1.0
    assert ratio({"failed": "out of memory"}, fast) is None is ratio(None, fast)


def test_a_case_is_compared_with_its_rival() -> None:
    gtx = {"step": "all", "rival": "all, x, gtx"}
    records = [
        harness.record({"case": "all, x, PyG", **gtx}, [turn(0.0), turn(2.0), turn(9.0)]),
        harness.record({"case": "all, x, gtx", **gtx}, [turn(0.0), turn(1.0), turn(3.0)]),
        {"case": "all, x, other", "step": "all", "failed": "out of memory"},
        harness.record({"case": "all, x, alone", "step": "all"}, [turn(0.0), turn(2.0)]),
        harness.record({"case": "else, x, gtx", "step": "all"}, [turn(0.0), turn(2.0)]),
    ]
    figures = {"time": pages.milliseconds, "time over gtx": None, "memory over gtx": None}
    (made,) = rival_tables(records, "All", ["batch", "layer"], figures, ", ", "all, ")
    assert made.splitlines()[4:] == [
        "| x | PyG | 5.5e+03 ms | 2.50x | 1.00x |",
        "| x | gtx | 2e+03 ms | 1.00x | 1.00x |",
        "| x | other | out of memory |  |  |",
        "| x | alone | 2e+03 ms |  |  |",
    ]
    assert rival_tables(records, "None", ["batch", "layer"], figures, ", ", "other, ") == []


def test_what_is_measured_is_kept_and_made_a_page_of(tmp_path: Path) -> None:
    made = "### Layers\n\nA note.\n\n| layer | time |\n| --- | --: |\n| a/b | 1 ms |\n| c |  |\n"
    assert table("Layers", [{"layer": "a|b", "time": "1 ms"}, {"layer": "c"}], "A note.") == made
    own = options("--out", str(tmp_path))
    for count in (3, 2):  # the second run stands in the place of the first
        cases = [
            {"case": f"bias, a {i}, gtx", "step": "forward", "seconds": 0.5, "turns": [0.5], "peak": i << 20}
            for i in range(count)
        ]
        pages.keep("layer", own, "python -m experiments.speed --quick", cases)
    pages.keep("encodings", own, "python", [{"case": "b", "step": "all", "failed": "no"}])
    run = archive.run_named(tmp_path, "speed", "layer", "speed")
    assert run["records"] == cases
    assert run["machine"]["threads"] == 1 and {"torch", "gtx", "python"} <= set(run["versions"])
    assert run["command"] == "python -m experiments.speed --quick"
    text = pages.write_page(tmp_path, "speed").read_text()
    assert text.index("## layer\n\nOne attention layer") < text.index("## encodings\n\nEncodings of a batch")
    assert "| a 1 | gtx | 500 ms | 1 MiB |" in text and "| b | no |" in text and ", threads 1, clock wall, " in text
    assert not pages.write_page(tmp_path, "speed-cuda").exists()


@pytest.mark.parametrize("name", pages.TITLES)
def test_the_pages_at_hand_were_made_of_the_tables_at_hand(name: str) -> None:
    for file in archive.RESULTS.glob(f"{name}.md"):  # a source distribution has none
        assert pages.page(archive.RESULTS, name) == file.read_text()


def test_every_topic_has_cases_and_a_gpu_takes_less_than_ten_minutes() -> None:
    assert sum(harness.GPU_TOPICS.values()) + len(harness.GPU_TOPICS) * (harness.GRACE + 10) <= 600
    assert next(iter(harness.GPU_TOPICS)) == "step"
    names = [name for group in bench_layer.groups(options("--device", "cuda")) for name in group]
    assert sum("captured gtx" in name for name in names) == sum("captured padded SDPA" in name for name in names) > 0
    for device, topics in (("cpu", harness.TOPICS), ("cuda", harness.GPU_TOPICS)):
        own = options("--device", device)
        for topic in topics:
            module = importlib.import_module(f"experiments.speed.bench_{topic}")
            for group in module.groups(own):
                assert group and len({*group}) == len(group)


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


def test_a_topic_is_measured_from_end_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--quick", "--threads", "1", "--repeats", "1", "--topics", "layer", "--cases", "^bias,.*padded", "--out"]
    command.main([*words, str(tmp_path)])
    records = archive.run_named(tmp_path, "speed", "layer", "speed")["records"]
    assert [record["step"] for record in records] == ["forward", bench_layer.BOTH]
    assert records[0]["nodes"] == int(bench_layer.sizes("drug-like").sum())
    assert all(record["seconds"] > 0 and record["peak"] > 0 for record in records)
    assert capsys.readouterr().out.count("| drug-like, 64, float32 | padded SDPA | ") == 2
    assert (tmp_path / "speed.md").exists()


def test_a_training_step_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_step, "EPOCHS", 2)
    cases = [name for group in bench_step.groups(options()) for name in group]
    records = harness.race(bench_step.__name__, cases, options())
    assert [record["case"] for record in records] == [f"xtb9, {model}" for model in bench_step.MODELS]
    assert all(record["molecules"] == 32 and record["seconds"] > 0 for record in records)


def test_padding_changes_no_output_of_the_padded_transformer() -> None:
    torch.manual_seed(0)
    model = bench_step.PaddedTransformer([9, 4], 5).eval()
    codes, distance, real = torch.randint(4, (1, 3, 2)), torch.randint(5, (1, 3, 3)), torch.ones(1, 3).bool()
    padded = (torch.nn.functional.pad(given, pad) for given, pad in ((codes, (0, 0, 0, 5)), (distance, (0, 5, 0, 5))))
    out = model(*padded, torch.nn.functional.pad(real, (0, 5)))
    torch.testing.assert_close(out, model(codes, distance, real))
