from __future__ import annotations

import pytest

from gtx.report.kinds import count, flat, in_unit, number, score, signed


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (float("nan"), "–"),
        (0, "0"),
        (-2.2e-16, "0"),
        (0.29, "0.290"),
        (-1.2, "−1.20"),
        (12.34, "12.3"),
        (345.6, "346"),
        (12345.6, "12,346"),
        (0.00012, "1.2e−04"),
    ],
)
def test_numbers(value, text):
    assert number(value) == text


def test_scores_of_at_most_one_have_three_decimals():
    assert score(0.99996, "r2") == "1.000"
    assert score(-1e-9, "r2") == "0.000"
    assert score(-0.25, "r2") == "−0.250"
    assert score(None, "roc_auc") == "–"
    assert score(0.05, "rmse") == "0.0500"


def test_words():
    assert signed(1.5) == "+1.50" and signed(-1.5) == "−1.50" and signed(0.0) == "0"
    assert in_unit("eV") == " (eV)" and in_unit("") == ""
    assert count(1, "row") == "1 row" and count(1128, "row") == "1,128 rows"
    settings = {"model": {"name": "standard", "sizes": [1, 2]}, "lr": 1e-3, "none": {}}
    assert dict(flat(settings)) == {
        "model.name": "standard",
        "model.sizes": "1, 2",
        "lr": "0.001",
        "none": "{}",
    }
