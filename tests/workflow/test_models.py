"""Every named model trains from a table, is saved, and predicts the same when loaded again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gtx
from gtx.attention import ScaledDotScore
from gtx.base.errors import InputError
from gtx.cli import main
from gtx.models import ARCHITECTURES
from gtx.molecules import Featuriser
from gtx.training import TrainSettings
from gtx.training_data import DataSettings
from gtx.workflow import train_model
from tests.tables import ALONE, TINY, molecules, read, write

pytestmark = pytest.mark.slow

ARGUMENTS = {"channels": 16, "layers": 1, "heads": 2}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "data.csv"
    return write(path, molecules(40)[["smiles", "gap"]].to_numpy().tolist(), ["smiles", "gap"])


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_trains_saves_and_predicts(name: str, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if name != "standard":  # the report, most of the time, is the same for all of them
        monkeypatch.setattr("gtx.workflow.run._report", lambda *about: [])
    spatial = ARCHITECTURES[name].coordinates == "needed"
    data = DataSettings(str(table), ("gap",), featuriser=Featuriser(conformers=spatial, descriptors=False), workers=0)
    settings = TrainSettings(**TINY | {"epochs": 1, "model_arguments": ARGUMENTS}, model=name)
    train_model(data, settings, tmp_path, **ALONE)
    rows = read(tmp_path / "predictions.csv")
    again = gtx.load(tmp_path / "model.gtx").predict([row["smiles"] for row in rows])["gap_pred"]
    np.testing.assert_allclose(again, [float(row["gap_pred"]) for row in rows], rtol=1e-4, atol=1e-5)


def test_a_closed_form_trains_saves_predicts_and_is_reported(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = DataSettings(str(table), ("gap",), workers=0)
    settings = TrainSettings(model="kernel", progress=False)
    metrics = train_model(data, settings, tmp_path, baselines=False).metrics
    assert train_model(data, settings, tmp_path, baselines=False).was_finished
    rows = read(tmp_path / "predictions.csv")
    predictor = gtx.load(tmp_path / "model.gtx")
    again = predictor.predict([row["smiles"] for row in rows])["gap_pred"]
    np.testing.assert_allclose(again, [float(row["gap_pred"]) for row in rows], rtol=1e-4, atol=1e-5)
    assert metrics["train"]["rmse"] < 0.1 * metrics["test"]["rmse"]
    (model,) = predictor.members
    kept = predictor.header.training
    assert list(kept.rows) == [i for i, row in enumerate(rows, 1) if row["split"] == "train"]
    assert model.row.tolist() == list(range(len(kept)))
    report = (tmp_path / "report.html").read_text()
    assert f"kernel of {len(model.row)} training molecules" in report and "by epoch" not in report
    assert main(["explain", str(tmp_path / "model.gtx"), rows[0]["smiles"]]) == 0
    assert "similarity" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("settings", "spatial", "message"),
    [
        ({"model": "matt"}, False, r"no model 'matt'; did you mean 'mat'\?"),
        ({"model": "mat"}, False, "mat needs coordinates: .*--conformers"),
        ({"model": "gps"}, True, "gps uses no coordinates"),
        ({"model": "tanimoto", "model_arguments": {"layers": 2}}, False, "no argument 'layers'; it has labels"),
        (
            {"model_arguments": {"score": ScaledDotScore()}},
            False,
            "score is a ScaledDotScore, and a model file holds plain values alone: make the model yourself",
        ),
        (
            {"model": "gat", "model_arguments": {"head": 5}},
            False,
            r"gat has no argument 'head'; did you mean 'heads'\?",
        ),
        ({"model": "egt", "model_arguments": {"score": "GATv2"}}, False, "egt decides 'score' itself"),
        ({"model": "standard", "model_arguments": {"score": "GATv2"}}, False, "expected a Score of gtx.attention"),
        ({"model": "standard", "model_arguments": {"layers": 0}}, False, "expected layers of at least 1, got 0"),
        ({"model": "kernel", "lr": 0.1, "keep_by": "mae"}, False, "--epochs, --lr, --keep-by"),
        ({"model": "tanimoto"}, False, "tanimoto is solved in closed form and has no training by epochs: leave out"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_does_not_fit_is_said_in_a_line(
    settings: dict, spatial: bool, message: str, table: Path, tmp_path: Path
) -> None:
    data = DataSettings(str(table), ("gap",), featuriser=Featuriser(conformers=spatial, descriptors=False), workers=0)
    with pytest.raises(InputError, match=message) as caught:
        train_model(data, TrainSettings(**TINY | {"model_arguments": {}} | settings), tmp_path / "out")
    assert "\n" not in str(caught.value)
