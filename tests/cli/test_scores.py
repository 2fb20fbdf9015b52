"""Scores on a terminal."""

from __future__ import annotations

import pytest

from gtx.cli.printing import score_table
from gtx.tasks import Regression


def test_it_is_said_why_there_is_no_test_score(capsys: pytest.CaptureFixture[str]) -> None:
    known, nothing = {"rmse": 1.0, "mae": 0.5, "r2": None}, dict.fromkeys(("rmse", "mae", "r2"))
    part = {**known, "per_target": {"y": known}}
    for more, why in (
        ({}, "no test values"),
        ({"bounds": 4, "bounds_kept": 0.5}, "all 4 test values are bounds, and scores are of exact values"),
    ):
        test = {**nothing, "per_target": {"y": nothing | more}}
        score_table({"train": part, "val": part, "test": test}, Regression.metrics)
        said = capsys.readouterr().out
        assert said.startswith(f"no test scores: {why}\n") and "val scores" in said
    score_table({"train": part, "val": part, "test": part}, Regression.metrics)
    assert "no test scores" not in capsys.readouterr().out


def several(count: int, **more: float) -> dict[str, object]:
    """Scores of so many targets."""
    own = {f"target_{i}": {"rmse": 1.0 + i, "mae": 0.5 + i, "r2": 0.25} for i in range(count)}
    part = {name: sum(scores[name] for scores in own.values()) / count for name in ("rmse", "mae", "r2")}
    return {**part, **more, "per_target": own}


def test_of_many_targets_the_mean_comes_first_and_the_table_ends(capsys: pytest.CaptureFixture[str]) -> None:
    part = several(12)
    score_table({"train": part, "val": part, "test": part}, Regression.metrics)
    said = capsys.readouterr().out.splitlines()
    means = [line for line in said if "mean" in line]
    assert len(said) < 25 and "r2" in means[0] and "0.25" in means[0]  # errors in other units each have no mean
    assert said.index(means[0]) < next(i for i, line in enumerate(said) if "target_0" in line)
    assert said[-1] == "of 12 targets one metric each; metrics.json has all scores"
    part = several(40)
    units = dict.fromkeys(part["per_target"], "eV")
    score_table({"train": part, "val": part, "test": part}, Regression.metrics, units)
    said = capsys.readouterr().out
    assert "mean" in said and f"{part['rmse']:.4g}" in said and len(said.splitlines()) < 35
    assert "of 40 targets one metric each, and 20 of them; metrics.json has all scores" in said
