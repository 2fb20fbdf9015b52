"""Scores on a terminal."""

from __future__ import annotations

import pytest

from gtx.cli.scores import score_table
from gtx.tasks import Regression


@pytest.mark.parametrize("target", ["IC50 [nM]", "logS [mol/L]", "ratio [/x]"])
def test_brackets_in_a_name_are_shown(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    scores = {"rmse": 1.0, "mae": 0.5, "r2": None}
    part = {**scores, "per_target": {target: scores}}
    score_table({"train": part, "val": part, "test": part}, Regression.metrics, {target: "[u]"})
    said = capsys.readouterr().out
    assert target in said and "rmse [u]" in said


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
