"""What the user or a file calls a thing reaches the terminal as text, and does nothing to it."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest

from gtx.cli import main
from gtx.cli.printing import cell, say, score_table, stages
from gtx.prediction import save_model
from gtx.prediction.model_file import read_model
from gtx.tasks.regression import NumberObjective
from tests.tables import write

EVIL = "logS\x1b[31m\x1b]0;owned\x07\u202e [x]"
SHOWN = r"logS\x1b[31m\x1b]0;owned\x07\u202e [x]"
GOLDEN = Path(__file__).parents[1] / "prediction" / "golden" / "regression.gtx"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model file that somebody else sent."""
    members, header, _ = read_model(GOLDEN)
    scores = {"rmse": 1.0, "mae": 0.5, "r2": None}
    targets = [EVIL, *header.targets[1:]]
    metrics = {"test": {**scores, "per_target": dict.fromkeys(targets, scores)}}
    path = tmp_path_factory.mktemp("evil") / "model.gtx"
    save_model(path, members, replace(header, task=replace(header.task, targets=targets), metrics=metrics))
    return str(path)


def told(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    text = captured.out + captured.err
    assert all(character.isprintable() or character == "\n" for character in text)
    return text.replace("\n", "")


def test_a_line_and_a_cell(capsys: pytest.CaptureFixture[str]) -> None:
    say(f"{EVIL}\nand a second line")
    assert told(capsys) == f"{SHOWN}\\nand a second line"
    assert cell(f"{EVIL}\nb") == SHOWN.replace("[x]", r"\[x]") + "\nb"


def test_on_a_terminal_a_clock_runs_beside_the_stage_of_a_long_command(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    shown = Terminal()
    monkeypatch.setattr("sys.stderr", shown)
    with stages() as show:
        show("1/2 reading")
        show("2/2 writing")
    assert "2/2 writing" in shown.getvalue() and "0:00:00" in shown.getvalue()


def test_scores(capsys: pytest.CaptureFixture[str]) -> None:
    scores = {"rmse": 1.0, "mae": 0.5, "r2": None}
    part = {**scores, "per_target": {EVIL: scores}}
    score_table({"train": part, "val": part, "test": part}, NumberObjective.metrics, {EVIL: "\x1b[2J"})
    assert r"\x1b[2J" in told(capsys)


def test_commands(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
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
