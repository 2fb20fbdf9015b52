"""Batches and rates: what a choice changes, pairs of the same repeat, a run and its line, nothing twice."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from experiments import archive, batch_rate
from experiments.batch_rate import Budget, Choice
from gtx.data import named_sets
from gtx.training import TrainSettings
from tests.experiments import toy_recipe


@pytest.mark.parametrize(
    "page", [*archive.RESULTS.glob("batch_rate.md")], ids=lambda file: file.name
)  # not in an sdist
def test_the_page_at_hand_was_made_of_the_tables_at_hand(page: Path) -> None:
    assert batch_rate.batch_table(archive.RESULTS) in page.read_text()


def test_a_choice_changes_the_batch_the_rate_and_the_average_alone() -> None:
    usual, rows = TrainSettings(seed=3), 900
    assert Choice(1, "linear", "follows").settings(rows, seed=3) == TrainSettings(seed=3, batch_molecules=30)
    for rate, power in (("same", 0), ("root", 0.5), ("linear", 1)):
        larger = Choice(4, rate, "follows").settings(rows, seed=3)
        assert (larger.batch_molecules, larger.batch_pairs) == (120, 4 * usual.batch_pairs)
        assert larger.lr == pytest.approx(usual.lr * 4**power)
        assert larger.ema**rows == pytest.approx(usual.ema ** (4 * rows))
    assert Choice(4, "same", "stays").settings(rows).ema == usual.ema


def test_the_grid_has_the_default_once() -> None:
    grid = list(batch_rate.choices((1, 4), ("same", "root"), ("stays", "follows")))
    assert grid[0] == Choice(1, "same", "stays")
    assert [one.factor for one in grid] == [1, 4, 4, 4, 4]
    assert len(set(grid)) == 5


def test_a_score_is_compared_with_factor_1_of_the_same_repeat(tmp_path: Path) -> None:
    def put(factor: int, repeat: int, score: float, size: str = "small") -> None:
        choice = Choice(factor, "same", "stays")
        run = {"recipe": "batch_rate", "folder": "toy", "name": f"{size}-{choice.name}-{repeat}", "metric": "rmse"}
        run |= {"seed": repeat, "val": {"rmse": score}, "seconds": 1.0, "rows": {"train": 90}}
        run["settings"] = choice._asdict() | {"size": size, "epochs": 10, "batch_molecules": 4 * factor}
        archive.put(tmp_path, run)

    for repeat, usual, larger in ((0, 1.0, 2.0), (1, 4.0, 2.0)):
        put(1, repeat, usual)
        put(8, repeat, larger)
    put(8, 2, 5.0)  # nothing to compare it with
    put(8, 0, 7.0, "default")
    line = batch_rate.compared("toy", "small", tmp_path)[1]
    assert line.choice.factor == 8
    assert line.steps == 10 * 3  # of 32 molecules at most
    assert line.scores == [2.0, 2.0]
    assert line.excess == pytest.approx([math.log(2), -math.log(2)])
    assert batch_rate.percent(line.excess) == "+0.0 % ± 69.3"


def test_a_run_stands_in_the_page_and_is_not_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = toy_recipe.write(tmp_path / "toy.csv", 30)
    monkeypatch.setitem(named_sets.SETS, "toy", toy_recipe.known(table))
    monkeypatch.setattr(batch_rate, "SETS", {"toy": Budget(toy_recipe.SETS["toy"], rows=18, epochs=2)})
    folders = ["--out", str(tmp_path / "out"), "--runs", str(tmp_path / "runs")]
    words = ["--here", "--size", "small", "--factors", "1", "4", "--rates", "root", "--repeats", "0", *folders]
    assert batch_rate.main(words) == 0
    names = ("small-1-same-0", "small-4-root-0")
    usual, larger = (archive.run_named(tmp_path / "out", "toy", name, "batch_rate") for name in names)
    assert (usual["rows"], larger["settings"]["batch_molecules"]) == ({"train": 18, "val": 5}, 64)
    page = (tmp_path / "out" / "batch_rate.md").read_text()
    assert f"| × 4 | root | stays | 2 | {larger['val']['rmse']:.3f} | " in page
    kept = (tmp_path / "out" / archive.RUNS).read_text()
    monkeypatch.setattr(batch_rate, "train_and_record", lambda *_: pytest.fail("a finished run is repeated"))
    assert batch_rate.main(words) == 0
    assert (tmp_path / "out" / archive.RUNS).read_text() == kept
