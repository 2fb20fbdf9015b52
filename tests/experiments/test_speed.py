"""The harness that measures speed: what it makes of what it is told, and its contenders' arithmetic. No times."""

from __future__ import annotations

import subprocess
import sys
import time
from argparse import Namespace
from pathlib import Path

import pytest
import torch

from experiments import archive
from experiments.speed import attentions, bench_floor, bench_layer, bench_training, harness, measure, measured
from experiments.speed.attentions import HEADS, Batch
from experiments.speed.harness import Topic
from experiments.speed.measured import ratio, rival_table, speed_page, table, write
from tests.experiments import toy_cases
from tests.experiments.toy_cases import PEAK, TOPIC

ROOT = Path(__file__).parents[2]


def read(*words: str) -> Namespace:
    return harness.options(TOPIC, ["--quick", "--threads", "1", "--repeats", "2", *words])


@pytest.fixture(scope="module")
def records() -> dict[tuple[str, str], dict]:
    found = harness.race(TOPIC, ["works", "dies", "no set-up"], read())
    return {(record["case"], record["step"]): record for record in found}


def test_running_out_of_memory_is_a_result_and_other_steps_keep_theirs(records: dict) -> None:
    assert records["works", "fails"] == {"case": "works", "step": "fails", "size": 7, "failed": "out of memory"}
    assert records["works", "talks"]["runs"] == records["works", "grows"]["runs"] == 2


def test_a_killed_process_is_a_result(records: dict) -> None:
    assert records["dies", "dies"]["failed"] == "killed by SIGKILL"
    assert records["dies", "talks"]["failed"] == "ended by the step before"


def test_a_case_that_cannot_be_set_up_says_why_in_a_line(records: dict) -> None:
    assert records["no set-up", "all"]["failed"] == "ValueError: there is no such thing"


def test_what_a_step_prints_stays_out_of_the_way_and_what_it_gives_is_kept(records: dict) -> None:
    talks = records["works", "talks"]
    assert (talks["share"], talks["size"], len(talks["turns"])) == (3, 7, 2)


@pytest.mark.skipif(not measure.CLEAR.exists(), reason="the peak can be reset on Linux alone")
def test_peak_memory_is_what_a_step_needs(records: dict) -> None:
    assert 0.9 * PEAK < records["works", "grows"]["peak"] < 1.3 * PEAK  # the kernel counts pages in batches
    assert records["works", "talks"]["peak"] < PEAK / 4


def test_a_turn_that_takes_too_long_ends_the_case() -> None:
    (record,) = harness.race(TOPIC, ["waits"], read("--limit", "4"))
    assert record["failed"] == "longer than 4 s"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit holds on Linux alone")
def test_a_limit_of_memory_is_met_as_a_failure() -> None:
    code = (
        "import torch; from experiments.speed import harness, measure; measure.limit_memory(2 << 30);"
        "print(harness.attempt(lambda: torch.ones(1 << 30))[1], harness.attempt(lambda: bytes(3 << 30))[1], sep='|')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "out of memory|out of memory"


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
    records = [
        harness.record({"case": "x, PyG", "rival": "x, gtx"}, [turn(0.0), turn(2.0), turn(9.0)]),
        harness.record({"case": "x, gtx", "rival": "x, gtx"}, [turn(0.0), turn(1.0), turn(3.0)]),
        {"case": "x, other", "failed": "out of memory"},
        harness.record({"case": "x, alone"}, [turn(0.0), turn(2.0)]),
    ]
    figures = {"time": measured.milliseconds, "time over gtx": None, "memory over gtx": None}
    assert rival_table(records, "All", ["batch", "layer"], figures, ", ").splitlines()[4:] == [
        "| x | PyG | 5.5e+03 ms | 2.50x | 1.00x |",
        "| x | gtx | 2e+03 ms | 1.00x | 1.00x |",
        "| x | other | out of memory |  |  |",
        "| x | alone | 2e+03 ms |  |  |",
    ]


def test_a_burst_runs_a_step_until_the_time_is_up() -> None:
    done = []
    found = measure.burst(lambda: done.append(time.sleep(0.01)), 0.05)
    assert len(done) == len(found["wall"]) == len(found["cpu"]) <= 5
    assert len(measure.burst(lambda: {"epochs": [1.0]}, 0.0)["wall"]) == 1


def test_a_stopwatch_counts_each_part_for_itself() -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(2))

        def forward(self) -> torch.Tensor:
            with watch.running("within"):
                time.sleep(0.03)
            return self.weight.sum()

    watch = measure.Stopwatch()
    watch.put_on(Model, "forward", "forward")
    assert Model()().item() == 2.0
    assert watch.seconds["within"] >= 0.03 > watch.seconds["forward"]


def test_the_optimiser_counts_without_its_closure(monkeypatch: pytest.MonkeyPatch) -> None:
    class Own(torch.optim.Adam):  # torch marks the class of an optimiser at its first use
        pass

    for owner, name in ((torch.autograd, "backward"), (torch.optim.Adam, "step")):
        monkeypatch.setattr(owner, name, getattr(owner, name))  # and puts it back after the test
    watch = measure.Stopwatch()
    watch.put_on_training()
    weight = torch.nn.Parameter(torch.ones(2))

    def closure() -> torch.Tensor:
        time.sleep(0.03)
        loss = weight.square().sum()
        loss.backward()
        return loss

    assert Own([weight], lr=0.1).step(closure).item() == 2.0
    assert weight[0].item() == pytest.approx(0.9)
    assert set(watch.seconds) == {"optimiser", "elsewhere", "backward"}
    assert watch.seconds["elsewhere"] >= 0.03


def test_what_is_measured_is_kept_and_made_a_page_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = "### Layers\n\nA note.\n\n| layer | time |\n| --- | --: |\n| a/b | 1 ms |\n"
    assert table("Layers", ["layer", "time"], [["a|b", "1 ms"]], "A note.") == made
    topic = Topic("layer", "What it\nis.\n\nMore.", toy_cases.make, list, lambda records: [f"{len(records)} records\n"])
    monkeypatch.setattr(bench_layer, "TOPIC", topic)
    for count in (3, 2):  # the second run stands in the place of the first
        cases = [
            {"case": f"a {i}", "step": "all", "seconds": 0.5, "turns": [0.5, 0.6], "nodes": i} for i in range(count)
        ]
        write(topic, read("--out", str(tmp_path), "--name", "layer-cuda"), ["--quick"], cases)
    write(topic, read("--out", str(tmp_path), "--name", "layer"), [], [{"case": "b", "step": "all", "failed": "no"}])
    lines = measured.SHEET.read(tmp_path / measured.FILE)
    assert [line["case"] for line in lines] == ["a 0", "a 1", "b"]
    assert lines[1] == {"page": "speed", "topic": "layer-cuda", **cases[1]}
    run = archive.run_named(tmp_path, "speed", "layer-cuda", "speed")
    assert run["machine"]["threads"] == 1 and {"torch", "gtx", "python"} <= set(run["versions"])
    assert run["command"] == "python -m experiments.speed.bench_layer --quick"
    text = speed_page(tmp_path)
    assert text.index("## layer\n\nWhat it is.\n") < text.index("## layer-cuda\n\nWhat it is.\n")
    assert "1 records" in text and "2 records" in text and ", threads 1, clock wall, " in text


@pytest.mark.parametrize("name", measured.TITLES)
def test_the_pages_at_hand_were_made_of_the_tables_at_hand(name: str) -> None:
    for file in archive.RESULTS.glob(f"{name}.md"):  # a source distribution has none
        assert speed_page(archive.RESULTS, name) == file.read_text()


@pytest.fixture
def batch() -> Batch:
    return Batch(torch.tensor([3, 1, 7, 5]), 16)


def test_padded_attention_is_the_same_function(batch: Batch) -> None:
    torch.manual_seed(0)
    ours, call = attentions.gtx_bias(batch)
    theirs, other = attentions.padded_sdpa(batch)
    with torch.no_grad():
        theirs.lin_in.weight.copy_(torch.cat([ours.lin_query.weight, ours.lin_key.weight, ours.lin_value.weight]))
        theirs.lin_in.bias.copy_(torch.cat([ours.lin_query.bias, ours.lin_key.bias, ours.lin_value.bias]))
        theirs.lin_bias.weight.copy_(ours.lin_edge_bias.weight)
        theirs.lin_out.load_state_dict(ours.lin_out.state_dict())
    assert ours.heads == HEADS
    expected = call(batch.x, batch.edge_attr)
    torch.testing.assert_close(other(batch.x, batch.edge_attr), expected, rtol=1e-5, atol=1e-5)


def test_transformer_conv_is_the_same_function(batch: Batch) -> None:
    ours, call = attentions.gtx_key_value(batch)
    theirs, other = attentions.transformer_conv(batch)
    for name in ("lin_query", "lin_key", "lin_value"):
        getattr(ours, name).load_state_dict(getattr(theirs, name).state_dict())
    with torch.no_grad():
        ours.lin_edge_key.weight.copy_(theirs.lin_edge.weight)
        ours.lin_edge_value.weight.copy_(theirs.lin_edge.weight)
    torch.testing.assert_close(call(batch.x, batch.edge_attr), other(batch.x, batch.edge_attr), rtol=1e-5, atol=1e-5)


def test_the_two_multihead_attentions_are_the_same_function(batch: Batch) -> None:
    ours, call = attentions.multihead(batch)
    theirs, other = attentions.gps_conv(batch)
    theirs.load_state_dict(ours.state_dict())
    padded = call(batch.x, batch.edge_attr).flatten(0, 1)[batch.dense.node]
    torch.testing.assert_close(padded, other(batch.x, batch.edge_attr), rtol=1e-5, atol=1e-5)


def test_the_floor_counts_what_torch_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch.utils.flop_counter import FlopCounterMode

    from gtx.attention.fast import compiled

    monkeypatch.setattr(compiled, "can_run", lambda *_: False)  # torch cannot count in a compiled loop

    sizes = torch.tensor([6])  # one graph: no padding
    for function, build in (("bias", attentions.gtx_bias), ("key and value", attentions.gtx_key_value)):
        batch = Batch(sizes, 16)
        _, call = build(batch)
        with FlopCounterMode(display=False) as counter:
            call(batch.x, batch.edge_attr)
        products, _ = bench_floor.counts(function, 6, 36, 16)
        assert counter.get_total_flops() == 2 * products


def test_a_layer_is_measured_from_end_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "bias, drug-like, 64, float32, padded SDPA"
    topic = bench_layer.TOPIC._replace(groups=lambda read: [[name]])
    measured.main(topic, ["--quick", "--repeats", "1", "--threads", "1", "--out", str(tmp_path)])
    forward, both = measured.SHEET.read(tmp_path / measured.FILE)
    assert (forward["step"], both["step"]) == ("forward", bench_layer.BOTH)
    assert forward["nodes"] == int(bench_layer.sizes("drug-like").sum())
    assert forward["seconds"] > 0 and both["peak"] > 0
    assert capsys.readouterr().out.count("| drug-like, 64, float32 | padded SDPA | ") == 2


def test_an_unknown_contender_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        measured.main(bench_training.TOPIC, ["--contenders", "gtx", "--quick", "--out", str(tmp_path)])
    assert "invalid choice: 'gtx'" in capsys.readouterr().err
