"""The page that sets a start from the foundation beside one from scratch."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.foundation import table
from experiments.summary import Difference, ModelRuns
from experiments.tables import Predictions


def runs(folder: str, model: str, test: float, val: float, spread: float = 0.0) -> ModelRuns:
    y = np.linspace(-1, 1, 60)[:, None]
    predicted = Predictions(np.arange(60), ("y",), y + test * np.where(np.arange(60) % 2, 1, -1)[:, None], y)
    each = [
        {
            "folder": folder,
            "model": model,
            "set": folder,
            "split": "split",
            "seed": seed,
            "metric": "rmse",
            "test": {"rmse": test + spread * seed},
            "val": {"rmse": val},
            "predictions": predicted,
        }
        for seed in range(2)
    ]
    return ModelRuns(folder, model, each)


def test_validation_rows_choose_and_the_aim_is_that_of_the_chosen() -> None:
    found = {folder: [runs(folder, "gtx", 1.0, 1.0)] for folder in table.AIMS}
    found["scaffold-esol"] = [
        runs("scaffold-esol", "gtx", 0.70, 0.9),
        runs("scaffold-esol", "gtx-foundation", 0.80, 0.8),
        runs("scaffold-esol", "forest-counts", 0.60, 0.6),
    ]
    found["moleculeace-a"] = [runs("moleculeace-a", name, e, e) for name, e in (("gtx-foundation-mix", 0.5),)]
    page = table.page(found)
    esol = next(line for line in page.splitlines() if line.startswith("| scaffold-esol | RMSE"))
    assert "| missed (network, foundation) |" in esol  # though the other start is below the aim of 0.75 on test rows
    assert "+0.100 [" in esol and "| 0.75 |" in esol
    behind = next(line for line in page.splitlines() if line.startswith("| scaffold-esol | network"))
    assert "network, foundation: 0.800" in behind and "forest on counts: 0.600" in behind and "| behind |" in behind
    assert "| 1 | default, foundation | 0.500 |" in page and "default, scratch | 0.5" not in page


def test_errors_of_validation_rows_over_all_sets_choose_the_start() -> None:
    """e ** -0.1 and e ** -0.3 of those from scratch: a mean of -20 %, and t of one degree of freedom, 12.706."""
    sets = {
        folder: {
            row.model: row for row in (runs(folder, "gtx-mix", 1.0, 1.0), runs(folder, "gtx-foundation-mix", *own))
        }
        for folder, own in (("a", (1.1, np.exp(-0.1))), ("b", (0.9, np.exp(-0.3))))
    }
    half = 12.706 * np.std([0.1, 0.3], ddof=1) / np.sqrt(2)
    (line,) = (line for line in table.deciding(sets) if line.startswith("| validation"))
    assert line == f"| validation, which decide | -20.0% [{-0.2 - half:+.1%}, {-0.2 + half:+.1%}] | 2 of 2 |"
    assert table.deciding({"a": sets["a"]}) == []


@pytest.mark.parametrize(
    ("gap", "metric", "words"),
    [
        (Difference(0.2, 0.1, 0.3), "rmse", "behind"),
        (Difference(0.2, 0.1, 0.3), "roc_auc", "ahead"),
        (Difference(-0.2, -0.3, -0.1), "rmse", "ahead"),
        (Difference(0.2, -0.1, 0.3), "rmse", "no difference that seeds and rows show"),
    ],
)
def test_a_model_is_behind_where_the_whole_interval_is(gap: Difference, metric: str, words: str) -> None:
    assert table.standing(gap, metric) == words
