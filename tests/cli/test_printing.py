"""What the user or a file calls a thing reaches the terminal as text, and does nothing to it."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from gtx.cli import main
from gtx.cli.benchmark import comparison_table
from gtx.cli.printing import cell, folded, say, score_table
from gtx.prediction import save_model
from gtx.prediction.model_file import read_model
from gtx.tasks import Regression
from gtx.tasks.regression import NumberObjective
from tests.tables import GOLDEN, write

EVIL = "logS\x1b[31m\x1b]0;owned\x07\u202e [x]"
SHOWN = r"logS\x1b[31m\x1b]0;owned\x07\u202e [x]"


def evil_model(path: Path) -> str:
    """A model file that somebody else sent."""
    members, header, _ = read_model(GOLDEN / "regression.gtx")
    scores = {"rmse": 1.0, "mae": 0.5, "r2": None}
    targets = [EVIL, *header.targets[1:]]
    metrics = {"test": {**scores, "per_target": dict.fromkeys(targets, scores)}}
    save_model(path, members, replace(header, task=replace(header.task, targets=targets), metrics=metrics))
    return str(path)


def told(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    text = captured.out + captured.err
    assert all(character.isprintable() or character == "\n" for character in text)
    return text.replace("\n", "")


def test_a_line_a_cell_and_scores(capsys) -> None:
    say(f"{EVIL}\nand a second line")
    assert told(capsys) == f"{SHOWN}\\nand a second line"
    assert cell(f"{EVIL}\nb") == SHOWN.replace("[x]", r"\[x]") + "\nb"
    part = several(1) | {"per_target": {EVIL: {"rmse": 1.0, "mae": 0.5, "r2": None}}}
    score_table({"train": part, "val": part, "test": part}, NumberObjective.metrics, {EVIL: "\x1b[2J"})
    assert r"\x1b[2J" in told(capsys)


def test_commands(tmp_path, monkeypatch, capsys):
    model = evil_model(tmp_path / "model.gtx")
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "t.csv", [["CCO", 1], ["CC", 2], ["C", 3]], ["smiles", EVIL])
    assert main(["info", model]) == 0
    assert r"logS\x1b[31m" in told(capsys)
    assert main(["predict", model, "t.csv", "--out", "out.csv"]) == 0
    assert rf"{SHOWN}: rmse" in told(capsys)
    for words in (
        ["predict", model, f"{EVIL}.csv"],
        ["predict", model, "t.csv", "--smiles-column", EVIL[:-1]],  # the near name is shown, and all others
        ["predict", model, "t.csv", "--out", f"{EVIL}.xlsx"],
        ["train", "t.csv", "--target-columns", f"{EVIL}?", "--out", "run"],
        ["train", "t.csv", "--out", "run"],
        ["explain", model, "CCO", "--target", "logS"],
    ):
        assert main(words) == 2
        assert r"logS\x1b[31m" in told(capsys) or r"logS\\x1b[31m" in told(capsys)


# --- Scores, as a table.


def test_it_is_said_why_there_is_no_test_score(capsys) -> None:
    known, nothing = {"rmse": 1.0, "mae": 0.5, "r2": None}, dict.fromkeys(("rmse", "mae", "r2"))
    part = {**known, "per_target": {"y": known}}
    for more, why in (
        ({}, "no test values"),
        ({"bounds": 4, "bounds_kept": 0.5}, "all 4 test values are bounds, and scores are of exact values"),
    ):
        test = {**nothing, "per_target": {"y": nothing | more}}
        score_table({"train": part, "val": part, "test": test}, NumberObjective.metrics)
        said = capsys.readouterr().out
        assert said.startswith(f"no test scores: {why}\n") and "val scores" in said
    score_table({"train": part, "val": part, "test": part}, NumberObjective.metrics)
    assert "no test scores" not in capsys.readouterr().out


def several(count: int, **more: float) -> dict[str, object]:
    """Scores of so many targets."""
    own = {f"target_{i}": {"rmse": 1.0 + i, "mae": 0.5 + i, "r2": 0.25} for i in range(count)}
    part = {name: sum(scores[name] for scores in own.values()) / count for name in ("rmse", "mae", "r2")}
    return {**part, **more, "per_target": own}


def test_of_many_targets_the_mean_comes_first_and_the_table_ends(capsys) -> None:
    part = several(12)
    score_table({"train": part, "val": part, "test": part}, NumberObjective.metrics)
    said = capsys.readouterr().out.splitlines()
    means = [line for line in said if "mean" in line]
    assert len(said) < 25 and "r2" in means[0] and "0.25" in means[0]  # errors in other units each have no mean
    assert said.index(means[0]) < next(i for i, line in enumerate(said) if "target_0" in line)
    assert said[-1] == "of 12 targets one metric each; metrics.json has all scores"
    part = several(40)
    units = dict.fromkeys(part["per_target"], "eV")
    score_table({"train": part, "val": part, "test": part}, NumberObjective.metrics, units)
    said = capsys.readouterr().out
    assert "mean" in said and f"{part['rmse']:.4g}" in said and len(said.splitlines()) < 35
    assert "of 40 targets one metric each, and 20 of them; metrics.json has all scores" in said


def test_on_a_narrow_terminal_a_name_is_broken_between_its_words(capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert folded("permeability_caco2 of the whole", 14).split("\n") == ["permeability_", "caco2 of the", "whole"]
    assert folded("y" * 33, 16).split("\n") == ["y" * 16, "y" * 16, "y"]
    own = {"permeability_caco2_papp": {"rmse": 0.1234, "mae": 0.2345, "r2": 0.3456}}
    part = {**own["permeability_caco2_papp"], "per_target": own}
    parts = {"train": part, "val": part, "test": part}
    methods = ("mean", "ridge", "random_forest", "kernel")
    score_table({**parts, "baseline": dict.fromkeys(methods, parts)}, NumberObjective.metrics)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80 and "kernel" in "".join(lines) and "…" not in "".join(lines)
    cells = [line.split("│")[1].strip() for line in lines if line.startswith("│")]
    assert [name for name in cells if name] == ["permeability_", "caco2_papp"]


def test_a_comparison_on_a_narrow_terminal_has_fewer_metrics_and_no_cut_number(capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    more = {"mean": 0.5, "sd": 0.1, "difference": -0.1, "low": -0.2, "high": 0.1, "p": 0.0001}
    names = [(method, metric) for method in ("gtx", "random_forest") for metric in NumberObjective.metrics]
    rows = [{"target": "solubility_in_water", "method": method, "metric": metric, **more} for method, metric in names]
    comparison_table(SimpleNamespace(table=rows, task=Regression("solubility_in_water")), {})
    text = capsys.readouterr().out
    assert "…" not in text and "RMSE" in text and text.endswith("no room for MAE, R²; benchmark.csv has all scores\n")
