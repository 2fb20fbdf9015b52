"""`gtx predict` of tables and of folders; what is written is tested where it is made."""

import io
from pathlib import Path

import pandas as pd
import pytest

from gtx.base.errors import Terminated
from gtx.cli import main
from gtx.prediction import folders
from tests.tables import GOLDEN, read

MODEL = str(GOLDEN / "regression.gtx")
HERE = ["--workers=0", "--device=cpu"]


@pytest.fixture
def library(tmp_path, monkeypatch) -> None:
    """The working folder holds a folder `library` of two tables, and a note."""
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "a.csv").write_text("smiles\nCCO\nC1CC\nCCN\n")
    (tmp_path / "library" / "b.smi").write_text("C one\nCC two\n")
    (tmp_path / "library" / "notes.txt").write_text("")
    monkeypatch.chdir(tmp_path)


def test_a_folder_is_predicted_into_a_folder_and_not_twice(library: None, capsys) -> None:
    words = ["predict", MODEL, "library", "--out", "out", *HERE]
    assert main(words) == 0
    said = capsys.readouterr()
    assert said.out == "" and said.err.splitlines() == [
        "a.csv: 3 rows: 2 read, 1 error (1 with an unusable molecule)",
        "b.smi: 2 rows: 2 read, 0 errors, 1 with warnings",
        "2 tables predicted; written to out",
        "left out, as no tables: notes.txt",
    ]
    assert len(pd.read_csv("out/a.csv")) == 3 and len(pd.read_csv("out/b.smi.csv")) == 2
    Path("library/c.csv").write_text("x,y\n1,2\n")
    assert main(words) == 2
    said = capsys.readouterr().err
    assert "0 tables predicted, 2 predicted before" in said and "gtx: c.csv: which column holds the SMILES?" in said


def test_the_scores_of_each_table_of_a_folder_are_told(library: None, capsys) -> None:
    Path("library/a.csv").write_text("smiles,gap\nCCO,7\nCCN,6\n")
    assert main(["predict", MODEL, "library", "--out", "out", *HERE]) == 0
    assert "a.csv: gap: rmse " in capsys.readouterr().err


def test_several_smiles_and_a_pipe_are_predicted_without_a_file(library: None, capsys, monkeypatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"CCO\nC1CC\nCCN\n")))
    for words in ["CCO", "C1CC", "CCN"], ["-"]:
        assert main(["predict", MODEL, *words, *HERE]) == 0
        said = capsys.readouterr()
        assert [line.split(",")[0] for line in said.out.splitlines()] == ["smiles", "CCO", "C1CC", "CCN"]
        assert "3 rows: 2 read, 1 error" in said.err and "row 2" in said.out.splitlines()[2]
    assert main(["predict", MODEL, "CCO", "CCN", "--engine=ray", "--out=out", *HERE]) == 2
    assert "--engine is for a folder of molecules" in capsys.readouterr().err


@pytest.mark.parametrize(("rows", "errors"), [(["C1CC", "x"], [1, 1]), (["C1CC", "CO"], [1, 0]), ([], [])])
def test_every_error_is_written_and_status_2_where_no_row_can_be_used(library: None, rows, errors, capsys) -> None:
    Path("in.csv").write_text("\n".join(["smiles", *rows, ""]))
    nothing = bool(rows) and all(errors)
    assert main(["predict", MODEL, "in.csv", "--out=out.csv", *HERE]) == (2 if nothing else 0)
    said = capsys.readouterr().err
    assert said.endswith("gtx: no row can be used; the column 'error' of the output has the reasons\n") == nothing
    assert [bool(row["error"]) for row in read(Path("out.csv"))] == errors
    assert Path("out.csv").read_text().startswith("smiles,gap_pred")


def test_what_each_member_predicts_stands_behind(library: None, capsys) -> None:
    model = str(Path(MODEL).with_name("ensemble.gtx"))
    Path("taken.csv").write_text("smiles,dipole_pred_1\nCCO,0.5\n")
    assert main(["predict", model, "taken.csv", "--members", *HERE]) == 0
    header, row = (line.split(",") for line in capsys.readouterr().out.splitlines())
    assert header[:2] == ["smiles", "dipole_pred_1"] and header[-4:-2] == ["dipole_pred_11", "dipole_pred_2"]
    cells = dict(zip(header, row, strict=True))
    mean = (float(cells["dipole_pred_11"]) + float(cells["dipole_pred_2"])) / 2
    assert cells["dipole_pred_1"] == "0.5" and float(cells["dipole_pred"]) == pytest.approx(mean, rel=1e-6)
    assert main(["predict", model, "library", "--members", "--out", "out", *HERE]) == 0
    assert list(pd.read_csv("out/a.csv"))[-4:-2] == ["dipole_pred_1", "dipole_pred_2"]


def test_only_what_is_asked_for_is_written(library: None, capsys) -> None:
    best = ["--top=2", "--by=gap_pred"]
    assert main(["predict", MODEL, "library", "--out", "best", *best, *HERE]) == 0
    assert "the best 2 rows in best/top.csv" in capsys.readouterr().err and len(pd.read_csv("best/top.csv")) == 2
    assert main(["predict", MODEL, "library/a.csv", *best, *HERE]) == 0
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == 3 and "2 of them are written" in said.err
    Path("again.csv").write_text(said.out)
    assert main(["predict", MODEL, "again.csv", *best, *HERE]) == 2
    said = capsys.readouterr().err
    assert "--by gap_pred: the table has this column, and the one that this model predicts is called 'gap_p" in said


def test_a_run_that_is_ended_says_that_it_goes_on(library: None, capsys, monkeypatch) -> None:
    def end(*_: object, **__: object) -> None:
        raise Terminated

    monkeypatch.setattr(folders, "predict_table", end)
    assert main(["predict", MODEL, "library", "--out", "out", *HERE]) == 143
    assert "the tables so far are kept; run the same command again to resume" in capsys.readouterr().err


def test_what_cannot_be_done_is_said(library: None, capsys) -> None:
    for words, message in (
        (["library"], "--out is missing: the predictions of a folder are written to a folder"),
        (["library", "--out", "library/out"], "library/out is within library"),
        (["library", "--out", "library/a.csv"], "library/a.csv is within library"),
        (["library", "--out", "out", "--address", "auto"], "expected with the engine 'ray', got 'auto' without it"),
        (["library/a.csv", "--top", "9"], "gtx: --top needs --by, such as --top 100 --by y_pred"),
    ):
        assert main(["predict", MODEL, *words, *HERE]) == 2
        assert message in capsys.readouterr().err
