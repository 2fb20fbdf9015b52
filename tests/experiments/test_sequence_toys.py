"""The toy tasks are what they say, and a run of a few rows ends in a line and a figure."""

from __future__ import annotations

import argparse
from pathlib import Path

from experiments import archive
from experiments.sequence.addition import addition
from experiments.sequence.copying import LETTERS, LONGEST, copying
from experiments.sequence.toy import solve


def test_copies_are_distinct_strings_of_all_lengths() -> None:
    task = copying(500, 50)
    assert task.sources == task.targets and len(set(task.sources)) == len(task.sources) == 600
    assert {len(text) for text in task.sources} == set(range(1, LONGEST + 1))
    assert set("".join(task.sources)) == set(LETTERS)


def test_sums_are_right_in_either_order() -> None:
    plain, reverse = addition(500, 50), addition(500, 50, reverse=True)
    assert len(set(plain.sources)) == 600 and plain.targets == reverse.targets
    for text, turned, value in zip(plain.sources, reverse.sources, plain.targets, strict=True):
        a, b = text.split("+")
        assert len(a) == len(b) == 3 and int(a) + int(b) == int(value) and turned[::-1] == text


def test_a_run_is_written_down_and_drawn(tmp_path: Path) -> None:
    read = argparse.Namespace(epochs=2, rows=64, seed=0, threads=1, out=tmp_path, runs=tmp_path / "runs")
    solve("copying", {"copying": copying(64, 8)}, read)
    (one,) = archive.runs(tmp_path, "sequence", "copying")
    assert one["name"] == "copying" and (tmp_path / "sequence" / "copying.svg").stat().st_size > 5000
    assert one["rows"] == {"train": 64, "test": 8, "val": 8} and 0 <= one["test_exact"] <= 1
    assert len(one["history"]) == 2 and len(one["test_wrong"]) == round(8 * (1 - one["test_exact"]))
