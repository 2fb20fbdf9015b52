"""Molecules to sequences on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from gtx.cli import main
from tests.tables import molecules, read, write

from .victim import killed

WORDS = ["--task=sequence", "--target-columns=product", "--epochs=8", "--no-progress", "--threads=1", "--workers=0"]
WORDS += ["--model-arguments", "channels=16", "layers=1", "heads=2"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was killed after an epoch."""
    folder = tmp_path_factory.mktemp("writer")
    write(folder / "data.csv", [[s, s] for s in molecules(60)["smiles"]], ["smiles", "product"])
    killed("after an epoch", ["train", str(folder / "data.csv"), *WORDS, f"--out={folder / 'run'}"])
    assert (folder / "run" / "members" / "0" / "last.ckpt").exists() and not (folder / "run" / "model.gtx").exists()
    return folder


def test_trains_on_after_a_kill_predicts_and_tells(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", str(folder / "data.csv"), *WORDS, "--out"]
    assert main([*words, str(folder / "run")]) == 0
    said = capsys.readouterr()
    assert "molecule_accuracy" in said.out and "sequence; split random" in said.err
    assert main([*words, str(tmp_path / "whole")]) == 0
    one, other = (path / "predictions.csv" for path in (folder / "run", tmp_path / "whole"))
    assert one.read_bytes() == other.read_bytes()

    model = str(folder / "run" / "model.gtx")
    (tmp_path / "in.csv").write_text("smiles\nCCO\nC1CC\n")
    assert main(["predict", model, str(tmp_path / "in.csv"), "--beams=2", f"--out={tmp_path / 'out.csv'}"]) == 0
    error = capsys.readouterr().err
    assert "2 rows: 1 read, 1 error" in error and "of 1 sequences written, " in error
    good, bad = read(tmp_path / "out.csv")
    assert good["product_pred"] and good["product_log_probability"] and good["product_valid"] in ("0", "1")
    assert "unclosed ring" in bad["error"] and not bad["product_pred"]

    assert main(["info", model]) == 0
    assert "tokens, at most" in capsys.readouterr().out
    assert main(["explain", model, "CCO", "--out", str(tmp_path / "figure.svg")]) == 2
    assert capsys.readouterr().err.startswith("gtx: only predictions of numbers and classes are explained")
