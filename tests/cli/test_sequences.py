"""Molecules to sequences on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from gtx.cli import main
from tests.tables import molecules, read, write

pytestmark = pytest.mark.slow

WORDS = ["--task=sequence", "--target-columns=product", "--epochs=8", "--no-progress", "--threads=1", "--workers=0"]
WORDS += ["--model-arguments", "channels=16", "layers=1", "heads=2"]


def test_trains_predicts_and_tells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "data.csv", [[s, s] for s in molecules(60)["smiles"]], ["smiles", "product"])
    assert main(["train", str(file), *WORDS, f"--out={tmp_path / 'run'}"]) == 0
    said = capsys.readouterr()
    assert "molecule_accuracy" in said.out and "sequence; split random" in said.err

    model = str(tmp_path / "run" / "model.gtx")
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
    assert capsys.readouterr().err.startswith("gtx: task sequence does not support explanations")
