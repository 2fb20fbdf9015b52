"""Errors by kind of molecule: each molecule stands in the lines it belongs to, and scores are of these alone."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.error_analysis import SplitMolecules, by_kind
from experiments.paired import Split


def test_small_and_large_near_and_far() -> None:
    n = 66
    atoms = np.arange(1, n + 1)
    nearest = np.where(np.arange(n) < 30, 0.2, 0.55)
    y = np.zeros((n, 1))
    one = np.where(atoms <= 20, 1.0, 2.0)[None, :, None]  # wrong by 1 on small molecules, by 2 on others
    other = np.full((2, n, 1), 3.0)
    lines = {line.title: line for line in by_kind([Split(y, one, other)], [SplitMolecules(atoms, nearest)], "rmse")}
    assert {title: line.count for title, line in lines.items()} == {
        "1 to 23 heavy atoms": 23,
        "24 to 44 heavy atoms": 21,
        "45 to 66 heavy atoms": 22,
        "similarity 0 to 0.3": 30,
        "similarity 0.5 to 0.6": 36,
    }
    assert lines["45 to 66 heavy atoms"].scores == lines["similarity 0.5 to 0.6"].scores == [2.0, 3.0]
    assert lines["similarity 0 to 0.3"].scores[0] == pytest.approx(np.sqrt((20 * 1 + 10 * 4) / 30))


def test_a_line_for_too_few_is_left_out() -> None:
    y, one = np.zeros((30, 1)), np.zeros((1, 30, 1))
    seen = SplitMolecules(np.arange(1, 31), np.full(30, 0.1))
    assert [line.title for line in by_kind([Split(y, one, one)], [seen], "mae")] == ["similarity 0 to 0.3"]
