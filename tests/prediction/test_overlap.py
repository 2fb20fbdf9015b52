"""Scores of a table say how many of its molecules trained the model."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

import gtx
from gtx.cli import main
from gtx.prediction import Predictor, foundation

FILE = Path(__file__).parent / "golden" / "neighbours.gtx"
NEW = ["CCCCCCCCCCCC", "FC(F)(F)CCBr", "OCCOCCOCCO"]


@pytest.fixture(scope="module")
def model() -> Predictor:
    return gtx.load(FILE, device="cpu")


def table(model: Predictor, path: Path, trained: int, new: int) -> Path:
    kept = model.header.training.smiles[:trained]

    values = [str(i / 7) for i in range(trained + new)]
    pd.DataFrame({"smiles": [*kept, *NEW[:new]], "solvation_water": values}).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.usefixtures("forks")
def test_the_others_are_scored_alone(model: Predictor, tmp_path, workers: int) -> None:
    both = model.predict_table(table(model, tmp_path / "t.csv", 5, 3), tmp_path / "p.csv", workers=workers)
    frame = pd.read_csv(tmp_path / "t.csv")
    frame.tail(3).to_csv(tmp_path / "new.csv", index=False)
    alone = model.predict_table(tmp_path / "new.csv", tmp_path / "p.csv")
    said = both.overlap
    assert str(said) == "the model was trained on 5 of these 8 molecules; the other 3 alone:"
    (ours,), (theirs,) = said.metrics["per_target"].values(), alone.metrics["per_target"].values()
    assert ours == pytest.approx(theirs) and said.metrics != both.metrics and alone.overlap is None


def test_it_is_printed_below_the_scores(model: Predictor, tmp_path, capsys) -> None:
    for trained, new, words in ((4, 2, "; the other 2 alone:"), (4, 0, ": the scores do not apply to new molecules")):
        words = f"the model was trained on 4 of these {trained + new} molecules{words}"
        file, out = table(model, tmp_path / "t.csv", trained, new), tmp_path / "p.csv"
        assert main(["predict", str(FILE), str(file), "--out", str(out)]) == 0
        lines = capsys.readouterr().err.splitlines()
        at = lines.index(words)
        assert lines[at - 1].startswith("solvation_water: rmse")
        assert [line.split(",")[0][:21] for line in lines[at + 1 :]] == ["solvation_water: rmse"] * bool(new)


def test_nothing_false_is_said(model: Predictor, tmp_path) -> None:
    file, out = table(model, tmp_path / "t.csv", 3, 1), tmp_path / "p.csv"
    training = model.header.training
    few = model.with_header(replace(model.header, training=replace(training, trained=10**6)))
    assert str(few.predict_table(file, out).overlap).startswith("the model was trained on at least 3 of these 4 mol")
    bare = model.with_header(replace(model.header, training=None))
    assert "contains no training rows: on how many of these 4 molecules" in str(bare.predict_table(file, out).overlap)
    table(model, tmp_path / "new.csv", 0, 3)
    assert model.predict_table(tmp_path / "new.csv", out).overlap is None
    kept = f"which contains {len(training)} of the 1,000,000 training rows"
    none = few.predict_table(tmp_path / "new.csv", out).overlap
    assert str(none) == f"none of these 3 molecules is in the model file, {kept}" and none.metrics is None
    pd.read_csv(file)[["smiles"]].to_csv(tmp_path / "bare.csv", index=False)
    assert model.predict_table(tmp_path / "bare.csv", out).overlap is None  # no scores, so nothing beside them
    beside = gtx.prediction.predict_table(model.with_neighbours(1), file, out)
    assert beside.overlap.trained == 3


def test_a_molecule_whose_neutral_parent_cannot_be_read_has_no_scaffold() -> None:
    assert foundation.identity("[SbH6+3]") == ("[SbH9]", "")  # of Tox21
    assert foundation.identity("OCC") == ("CCO", "") and foundation.identity("nonsense") == ("", "")
