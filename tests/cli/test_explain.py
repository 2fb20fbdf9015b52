"""`gtx explain` as a stranger meets it."""

from pathlib import Path

from gtx.cli import main
from tests.tables import GOLDEN

MODEL = str(GOLDEN / "neighbours.gtx")


def test_a_figure_and_the_numbers(tmp_path, capsys) -> None:
    out = tmp_path / "page.html"
    words = ["--layer", "-1", "--head", "1", "--receiver", "2", "--draws", "5", "--seed", "7"]
    assert main(["explain", MODEL, "CCO", "--out", str(out), *words]) == 0
    said = capsys.readouterr().out
    for words in ("layer 0 of 1, head 1 of 2, counted from 0; receiver O2", "change less", str(out)):
        assert words in said
    assert said.index("most similar training molecules") < said.index("  row ") < said.index("figure  ")
    assert out.read_text().startswith("<!doctype html>") and "  row 63, similarity 0.20" in said
    assert "row 63, similarity 0.20" in out.read_text()


def test_unusable_input_is_one_line_and_exit_2(capsys, monkeypatch) -> None:
    monkeypatch.chdir(Path(__file__).parent)
    for words, message in (
        (["C1CC"], "'C1CC' cannot be read"),
        (["C" * 300 + "("], "(' cannot be read"),  # longer than the name of a file may be
        (["test_explain.py"], "test_explain.py is a file: gtx explain takes SMILES; gtx predict takes tables"),
        (["CCO", "O"], "gtx explain takes one SMILES, got 2: CCO, O"),
        (["CCO", "--target", "gop"], "target 'gop': the model has solvation_water"),
        (["CCO", "--target", "solvation_watr"], "target 'solvation_watr'; did you mean 'solvation_water'? the"),
        (["CCO", "--features", "presure=3"], "unknown feature 'presure'; this model reads no features"),
        (["CCO", "--layer", "7"], "layer 7: expected 0 to 0 (or -1 for the last)"),
        (["CCO", "--head", "2"], "head 2: expected 0 to 1 (or -1"),
        (["CCO", "--receiver", "11"], "receiver 11: expected 0 to 2\n"),
        (["CCO", "--out", "figure.pdf"], "figure.pdf: expected a file name that ends in .svg or .html"),
    ):
        assert main(["explain", MODEL, *words]) == 2
        error = capsys.readouterr().err
        assert error.startswith("gtx: ") and message in error and error.count("\n") == 1


def test_where_molecules_cannot_be_drawn_the_numbers_come_and_one_line(tmp_path, undrawable: None, capsys) -> None:
    assert main(["explain", MODEL, "C[Si](C)(C)C", "--draws", "5", "--out", str(tmp_path / "figure.svg")]) == 2
    said = capsys.readouterr()
    assert said.err.startswith("gtx: RDKit cannot draw molecules on this machine: ") and said.err.count("\n") == 1
    assert "libxrender1" in said.err and "change less" in said.out and list(tmp_path.iterdir()) == []
    assert "not seen in training: element Si" in said.out
