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
