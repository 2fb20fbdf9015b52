"""The ablation of named models: its page is made of the runs, and a run ends in a line of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments import ablation, archive
from gtx.data import named_sets
from tests.experiments import toy_recipe


@pytest.mark.parametrize("page", [*archive.RESULTS.glob("ablation.md")], ids=lambda file: file.name)  # not in an sdist
def test_the_page_at_hand_was_made_of_the_tables_at_hand(page: Path) -> None:
    assert ablation.ablation_table(archive.RESULTS) in page.read_text()


def test_a_run_stands_in_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = toy_recipe.write(tmp_path / "toy.csv", 30)
    monkeypatch.setitem(named_sets.SETS, "toy", toy_recipe.known(table))
    small = ablation.SmallSet("toy", toy_recipe.TARGET, "split", rows=12, epochs=1, unit="kcal/mol")
    monkeypatch.setattr(ablation, "TASKS", {"toy": small})
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    ablation.train_and_record("toy", "gat", 3, tmp_path / "results")
    (run,) = archive.runs(tmp_path / "results", "ablation")
    assert (run["name"], run["rows"], run["settings"]) == ("gat-3", {"train": 12, "val": 5, "test": 5}, {"epochs": 1})
    assert run["command"] == "python -m experiments.ablation --tasks toy --models gat --seeds 3"
    line = ablation.ablation_table(tmp_path / "results").splitlines()[-1]
    assert line.startswith("| gat | no | ") and line.endswith(f"{run['test']['rmse']:.3f} ± 0.000 | 1 |")
