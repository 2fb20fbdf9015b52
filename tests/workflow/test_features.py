"""What a model reads beside the molecule: columns of the table, and further features of the molecule by name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gtx
from gtx.base.errors import InputError
from gtx.cli import main
from gtx.data import FeatureColumns
from gtx.explain import explain_prediction
from gtx.molecules import Featuriser
from gtx.prediction import Predictor
from gtx.training import TrainSettings
from gtx.training_data import DataSettings, load_training_table
from gtx.workflow import train_model
from tests.tables import ALONE, TINY, molecules, read, write

pytestmark = pytest.mark.slow

PLAIN = Featuriser(descriptors=False)
HEADER = ["smiles", "temperature", "ph", "y"]
SMALL = TINY["model_arguments"] | {"substructures": None, "dropout": 0.0}
LEARNS = TINY | {
    "kernel_parts": ["substructures", "descriptors"],
    "epochs": 16,
    "blend": "no",
    "lr": 1e-2,
    "batch_molecules": 12,
    "model_arguments": SMALL,
}


def rows(blanks: bool = False) -> list[list[object]]:
    """Molecules whose target is a function of the temperature alone; without one, something else."""
    draw = np.random.default_rng(0)
    made = []
    for smiles in molecules(120)["smiles"]:
        temperature, ph = draw.uniform(250, 350), draw.uniform(0, 14)
        if blanks and draw.random() < 0.3:
            made.append([smiles, "", f"{ph:.3f}", 200])
        else:
            made.append([smiles, f"{temperature:.3f}", f"{ph:.3f}", temperature])
    return made


def trained(folder: Path, table: Path, names: tuple[str, ...], blanks: bool = False) -> Predictor:
    features = FeatureColumns(names, blanks) if names else None
    settings = DataSettings(str(table), ("y",), features=features, workers=0, featuriser=PLAIN)
    train_model(settings, TrainSettings(**LEARNS), folder, **ALONE)
    return gtx.load(folder / "model.gtx", device="cpu")


def rmse(predictor: Predictor) -> float:
    return predictor.header.metrics["test"]["rmse"]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("features") / "t.csv", rows(), HEADER)


@pytest.fixture(scope="module")
def predictor(table: Path) -> Predictor:
    return trained(table.parent / "run", table, ("temperature", "ph"))


def test_a_target_that_depends_on_the_column_is_learned_with_it_alone(
    table: Path, predictor: Predictor, tmp_path: Path
) -> None:
    without = trained(tmp_path / "without", table, ())
    spread = pd.read_csv(table)["y"].std()
    assert rmse(predictor) < 0.5 * spread < 0.7 * rmse(without)


def test_columns_are_found_by_name_and_a_row_alone_is_answered_as_among_others(
    table: Path, predictor: Predictor
) -> None:
    frame = pd.read_csv(table).head(6)
    said = predictor.predict(frame)["y_pred"]
    turned = predictor.predict(frame[["y", "ph", "smiles", "temperature"]])["y_pred"]
    alone = [predictor.predict(frame.iloc[[i]])["y_pred"].item() for i in range(6)]
    assert np.allclose(said, turned) and np.allclose(said, alone, rtol=1e-5)
    assert not np.allclose(said, predictor.predict(frame.assign(temperature=300))["y_pred"], rtol=1e-3)
    assert not np.allclose(predictor.embed(frame)[:, -2:], predictor.embed(frame.assign(temperature=300))[:, -2:])


def test_a_cell_that_is_no_number_is_the_error_of_its_row(predictor: Predictor, tmp_path: Path) -> None:
    cells = ["300", "", "warm", "1e31", "nan", "298.15"]
    table = write(tmp_path / "t.csv", [["CCO", cell, 7, 1] for cell in cells], HEADER)
    outcome = predictor.predict_table(table, tmp_path / "out.csv")
    said = read(tmp_path / "out.csv")
    assert [bool(row["y_pred"]) for row in said] == [True, False, False, False, False, True]
    wrong = ["is blank", "is not a number", "is too large", "is blank"]
    for row, cell, why in zip(said[1:5], cells[1:5], wrong, strict=True):
        assert f'column "temperature", value "{cell}": {why}; expected a number of at most 1e+30' in row["error"]
    assert outcome.row_log.error_counts == {"with an unusable feature": 4}


def test_a_table_without_the_column_is_one_error_that_names_it(predictor: Predictor, tmp_path: Path) -> None:
    table = write(tmp_path / "t.csv", [["CCO", 7]], ["smiles", "ph"])
    remedy = "give a table with a column for each of: SMILES, temperature, ph$"
    for source in (table, "CCO"):
        with pytest.raises(InputError, match=f"feature column 'temperature': there is no column .*; {remedy}"):
            predictor.predict_table(source, tmp_path / "out.csv")
    with pytest.raises(InputError, match=f"this model needs the feature 'temperature': {remedy}"):
        predictor.predict(["CCO"])
    with pytest.raises(InputError, match="needs the feature 'ph' of the molecule: give --features ph=VALUE, or"):
        explain_prediction(predictor, "CCO", features={"temperature": 298})
    with pytest.raises(
        InputError, match="feature 'ph' of number 1, counted from 0, 'acid': is not a number; expected a number"
    ):
        predictor.predict(pd.DataFrame({"smiles": ["C", "CC"], "temperature": [1, 2], "ph": [7, "acid"]}))
    assert main(["predict", str(tmp_path / "none.gtx"), "CCO"]) == 2
    with pytest.raises(InputError, match="X must be a pandas table with the columns 'temperature', 'ph'"):
        gtx.MoleculeRegressor(feature_columns=["temperature", "ph"]).fit(["CCO"], [1.0])


def test_a_blank_is_told_to_the_model_where_that_is_asked_for(tmp_path: Path) -> None:
    """Rows without a temperature have a target of their own, which only the mark of the blank tells."""
    table = write(tmp_path / "t.csv", rows(blanks=True), HEADER)
    told = trained(tmp_path / "run", table, ("temperature",), blanks=True)
    frame = pd.DataFrame({"smiles": ["CCO", "CCO"], "temperature": [None, 340.0]})
    low, high = told.predict(frame)["y_pred"]
    assert low < 250 < 300 < high
    refusing = load_training_table(
        DataSettings(str(table), ("y",), features=FeatureColumns(("temperature",)), workers=0)
    )
    blank = sum(row[1] == "" for row in rows(blanks=True))
    assert refusing.files[0].row_log.num_errors == blank and len(refusing.store) == 120 - blank


def test_what_cannot_be_a_feature_is_refused(table: Path, tmp_path: Path) -> None:
    data = DataSettings(str(table), ("y",), workers=0)
    for names, message in ((("y",), "'y' is a target"), (("ph", "ph"), "given twice"), (("pH",), "no column 'pH'")):
        with pytest.raises(InputError, match=message):
            train_model(replace(data, features=FeatureColumns(names)), TrainSettings(**LEARNS), tmp_path / "run")
    with pytest.raises(InputError, match="tanimoto reads molecules alone"):
        alone = TrainSettings(progress=False, model="tanimoto")
        train_model(replace(data, features=FeatureColumns(("ph",))), alone, tmp_path / "run")
