"""Several molecules a row, from a table to a model file and its predictions."""

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gtx
from gtx.base.errors import InputError
from gtx.cli import main
from gtx.data import FeatureColumns
from gtx.explain import compute_attribution, explain_prediction
from gtx.models import build_model
from gtx.molecules import Featuriser
from gtx.prediction import Predictor, save_model
from gtx.prediction.model_file import read_model
from gtx.training import TrainSettings
from gtx.training_data import DataSettings
from gtx.workflow import PretrainedModel, RunResult, train_model
from tests.tables import ALONE, TINY, molecules, read, write

pytestmark = pytest.mark.slow

NAMES = ("solute", "solvent")
PAIRS = Featuriser(descriptors=False, components=NAMES)
SOLVENTS = ["O", "CO", "CCCCCC", "ClCCl", "CS(C)=O"]
SMALL = TINY["model_arguments"] | {"substructures": None, "dropout": 0.0}
LEARNS = TrainSettings(
    **TINY | {"epochs": 1, "blend": "no", "lr": 2e-2, "batch_molecules": 8, "model_arguments": SMALL}
)


def pairs() -> pd.DataFrame:
    """Rows of a solute, a solvent and a temperature."""
    solvents = itertools.islice(itertools.cycle(SOLVENTS), 60)
    given = {"solute": molecules(60)["smiles"], "solvent": list(solvents), "T": np.linspace(250, 350, 60)}
    return pd.DataFrame(given | {"y": np.linspace(-3, 3, 60) ** 2})


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Path:
    rows = [*pairs().values.tolist(), ["CCO", "C(", 300, 1], ["CCO", "", 300, 1]]
    return write(tmp_path_factory.mktemp("components") / "t.csv", rows, [*NAMES, "T", "y"])


@pytest.fixture(scope="module")
def outcome(table: Path) -> RunResult:
    data = DataSettings(str(table), ("y",), features=FeatureColumns(("T",)), workers=0, featuriser=PAIRS)
    return train_model(data, LEARNS, table.parent / "run", **ALONE)


@pytest.fixture(scope="module")
def predictor(outcome: RunResult) -> Predictor:
    return gtx.load(outcome.out / "model.gtx", device="cpu")


def test_a_row_alone_is_answered_as_among_others(predictor: Predictor) -> None:
    frame = pairs().head(3).set_axis(["c", "a", "b"])
    said = predictor.predict(frame)
    assert said.index.tolist() == ["c", "a", "b"]
    assert said.columns[:3].tolist() == [*NAMES, "y_pred"] and said["error"].isna().all()
    alone = [predictor.predict(frame.iloc[[i]])["y_pred"].item() for i in range(3)]
    turned = predictor.predict(frame[["T", "solvent", "solute"]])["y_pred"]
    assert np.allclose(said["y_pred"], alone, rtol=1e-5) and np.allclose(said["y_pred"], turned)
    for part, other in {"solute": "CCN", "solvent": "CCCCCC", "T": 300.0}.items():
        changed = predictor.predict(frame.assign(**{part: other}))["y_pred"]
        assert not np.isclose(said["y_pred"], changed, rtol=1e-4)[frame[part] != other].any(), part
    assert predictor.embed(frame).shape == (3, predictor.members[0].width)


def test_a_table_is_answered_by_its_columns(table: Path, predictor: Predictor, tmp_path) -> None:
    frame = pd.read_csv(table, keep_default_na=False).iloc[-8:]
    expected = predictor.predict(frame)["y_pred"]
    frame.rename(columns={"solvent": "medium"}).to_csv(tmp_path / "t.csv", index=False)
    model, renamed = str(table.parent / "run" / "model.gtx"), ["--smiles-columns", "solute", "medium"]
    out = tmp_path / "out.csv"
    assert main(["predict", model, str(tmp_path / "t.csv"), "--out", str(out), "--device", "cpu", *renamed]) == 0
    rows = read(out)
    assert np.allclose([float(row["y_pred"] or "nan") for row in rows], expected, rtol=1e-4, equal_nan=True)
    assert rows[-2]["error"].startswith('row 7: solvent "C(": cannot be read')
    assert rows[-1]["error"] == 'row 8: solvent "": cannot be read: the text is empty'


def explains(predictor: Predictor, row: tuple[str, str], **options: Any) -> None:
    """Both explanations are of the prediction of a row, and no atom attends to one of another molecule."""
    frame = pd.DataFrame([row], columns=NAMES).assign(**options.get("features", {}))
    found = compute_attribution(predictor, row, draws=2, **options)
    assert np.isclose(found.prediction, predictor.predict(frame)["y_pred"].item(), rtol=1e-5)
    assert np.isclose(found.contributions.values.sum(), found.prediction - found.without)
    first, second = (predictor.header.featuriser.read(smiles).GetNumAtoms() for smiles in row)
    explanation = explain_prediction(predictor, row, draws=2, **options)
    assert np.isclose(explanation.prediction, found.prediction) and explanation.atoms == found.atoms
    weights = explanation.weights
    assert weights.shape[-1] == first + second and not weights[..., :first, first:].any()
    np.testing.assert_allclose(weights[..., first:, first:].sum(-1), 1, atol=1e-6)
    assert (np.abs(found.contributions.values[[0, first]]) > 0).all()  # atoms of both molecules
    assert found.svg().count("<g transform") == 2


def test_a_row_is_explained(predictor: Predictor) -> None:
    explains(predictor, ("CC(=O)O", "ClCCl"), features={"T": 300.0})


def test_columns_that_lack_are_said(table: Path, predictor: Predictor, tmp_path, capsys) -> None:
    frame = pairs().head(2)
    with pytest.raises(InputError, match="there is no column 'solvent'"):
        predictor.predict(frame.drop(columns="solvent"))
    (tmp_path / "t.csv").write_text("solute\nCCO\n")
    remedy = "this model reads solute and solvent: give a table with these columns, or `smiles_columns`$"
    with pytest.raises(InputError, match=f"there is no column 'solvent'.* the columns are 'solute'; {remedy}"):
        predictor.predict_table(tmp_path / "t.csv", tmp_path / "out.csv")
    with pytest.raises(InputError, match=r"expected rows of 2 SMILES, solute, solvent, or a table .* number 0.*'CCO'"):
        predictor.predict(["CCO", "O"])
    with pytest.raises(InputError, match=r"expected 2 molecules \(solute, solvent\) for row 0, got 'CCO'"):
        explain_prediction(predictor, "CCO")
    words = ["predict", str(table.parent / "run" / "model.gtx"), str(table)]
    for wrong, said in (
        (["--smiles-columns", "solute"], "this model reads solute and solvent: expected 2 --smiles-columns, got 1"),
        (["--smiles-columns", "solute", "medium"], "there is no column 'medium'"),
    ):
        assert main([*words, *wrong]) == 2
        assert said in capsys.readouterr().err


def test_a_model_file_whose_components_do_not_suit_is_refused(predictor: Predictor, tmp_path) -> None:
    header, file = predictor.header, tmp_path / "m.gtx"
    for entry, wrong in (("count", 3), ("further", 2), ("separate", True)):
        model = header.model | {"components": header.model["components"] | {entry: wrong}}
        save_model(file, predictor.members, replace(header, model=model))
        message = "tensor" if entry == "separate" else f"model.components.{entry}: expected"
        with pytest.raises(InputError, match=message):
            read_model(file)
    save_model(file, predictor.members, replace(header, model={k: header.model[k] for k in ("name", "arguments")}))
    with pytest.raises(InputError, match=r"model.components.count: expected 2, got None"):
        read_model(file)


def test_a_trained_model_goes_on_with_the_molecules_that_it_reads(table: Path, outcome: RunResult) -> None:
    data, settings = DataSettings(str(table), ("y",)), replace(LEARNS, model_arguments={})
    fine_tuning = PretrainedModel.open(outcome.out / "model.gtx", data, settings)
    assert fine_tuning.featuriser.components == NAMES
    made = build_model(fine_tuning.spec(outcome.task))
    made.load_state_dict(fine_tuning.members[0].model.state_dict())


def test_estimators_read_rows_of_several_molecules() -> None:
    frame, small = pairs().head(30), {"threads": 1, "blend": "no", "separate_encoders": True}
    options = {"epochs": 1, "model_arguments": SMALL, "smiles_columns": NAMES, "settings": small, "workers": 0}
    made = gtx.MoleculeRegressor(**options).fit(frame[[*NAMES]], frame["y"])
    said = made.predict(frame[[*NAMES]])
    assert len(made.predictor_.members[0].encoders) == 2
    explains(made.predictor_, ("CC(=O)O", "ClCCl"))
    assert np.allclose(said, made.predict([tuple(row) for row in frame[[*NAMES]].values]))
    with pytest.warns(UserWarning, match='1 of 1 SMILES cannot be used; .* counted from 0: solvent "C\\(": cannot'):
        assert np.isnan(made.predict([("CCO", "C(")])).all()
