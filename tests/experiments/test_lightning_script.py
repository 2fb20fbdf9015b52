"""The script that a user starts from trains, and scores in the target's own units."""

from __future__ import annotations

from pathlib import Path

from experiments.lightning_script import main
from tests.tables import molecules, write


def test_it_learns_and_scores(tmp_path: Path) -> None:
    rows = molecules(200)[["smiles", "solvation_water"]].to_numpy().tolist()
    table = write(tmp_path / "data.csv", rows, ["smiles", "y"])
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    quiet |= {"enable_model_summary": False, "accelerator": "cpu"}
    scores = main(str(table), "y", max_epochs=4, **quiet)
    assert {"test_rmse", "test_mae", "test_r2", "test_loss"} <= scores.keys()
    assert 0 < scores["test_mae"] <= scores["test_rmse"] < 4  # kcal/mol; the mean alone has about 3
