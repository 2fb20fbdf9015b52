"""What a model reads beside the molecule: columns of the table with numbers, and with lists of atoms and bonds."""

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rdkit import Chem
from rdkit.Chem import AllChem

import gtx
from gtx.base.errors import InputError
from gtx.data import FeatureColumns, featurise, open_table
from gtx.explain import compute_attribution, explain_prediction
from gtx.molecules import Featuriser
from gtx.prediction import DataFramePredictor, Predictor
from gtx.training import TrainSettings
from gtx.training_data import DataSettings, load_training_table
from gtx.workflow import train_model
from tests.tables import ALONE, TINY, molecules, read

pytestmark = pytest.mark.slow

BOTH = FeatureColumns(atoms=("shift",), bonds=("order",))
EVERY = replace(BOTH, names=("temperature", "ph"))
INPUTS = ["smiles", "temperature", "ph", "shift", "order"]
TARGETS = ("y", "ya", "yb")
SMALL = TINY["model_arguments"] | {"substructures": None, "dropout": 0.0, "readout": ["sum"]}
LEARNS = TINY | {
    "kernel_parts": ["substructures", "descriptors"],
    "epochs": 14,
    "blend": "no",
    "lr": 1e-2,
    "batch_molecules": 8,
    "model_arguments": SMALL,
}
PLAIN = Featuriser(descriptors=False)


def table() -> pd.DataFrame:
    """Molecules whose targets are the temperature, and sums of random numbers of atoms and bonds, and nothing else."""
    draw = np.random.default_rng(0)
    frame = molecules(100)[["smiles"]]
    mols = [Chem.MolFromSmiles(smiles) for smiles in frame.smiles]
    frame["shift"] = [draw.normal(100, 10, mol.GetNumAtoms()).round(3).tolist() for mol in mols]
    frame["order"] = [draw.uniform(1, 3, mol.GetNumBonds()).round(3).tolist() for mol in mols]
    frame["temperature"] = frame["y"] = draw.uniform(250, 350, len(frame)).round(3)
    frame["ph"] = draw.uniform(0, 14, len(frame)).round(3)
    frame["ya"] = [sum(each) - 100 * len(each) for each in frame["shift"]]
    frame["yb"] = [sum(each) - 2 * len(each) for each in frame["order"]]
    return frame


def trained(folder: Path, file: Path, features: FeatureColumns, targets: tuple[str, ...] = TARGETS) -> Predictor:
    settings = DataSettings(str(file), targets, features=features, workers=0, featuriser=PLAIN)
    train_model(settings, TrainSettings(**LEARNS), folder, **ALONE)
    return gtx.load(folder / "model.gtx", device="cpu")


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("parts") / "t.parquet"
    table().to_parquet(path)
    return path


@pytest.fixture(scope="module")
def predictor(file: Path) -> Predictor:
    return trained(file.parent / "run", file, EVERY)


def answers(predictor: Predictor, frame: pd.DataFrame) -> np.ndarray:
    found = predictor.predict(frame)
    assert found["error"].isna().all()
    return found[[f"{name}_pred" for name in TARGETS]].to_numpy()


def rewritten(row: pd.Series, seed: int) -> dict[str, object]:
    """The molecule with its atoms in another order, and its lists in theirs."""
    mol = Chem.MolFromSmiles(row.smiles)
    order = np.random.default_rng(seed).permutation(mol.GetNumAtoms()).tolist()
    other = Chem.RenumberAtoms(mol, order)
    text = Chem.MolToSmiles(other, canonical=False, rootedAtAtom=0)
    written = json.loads(other.GetProp("_smilesAtomOutputOrder").replace(",]", "]"))
    back = Chem.MolFromSmiles(text)
    old = [order[i] for i in written]  # of each atom of the text its number in the row
    bonds = [
        mol.GetBondBetweenAtoms(*(old[i.GetIdx()] for i in (b.GetBeginAtom(), b.GetEndAtom()))) for b in back.GetBonds()
    ]
    return {
        **row[["temperature", "ph"]],
        "smiles": text,
        "shift": [row["shift"][i] for i in old],
        "order": [row["order"][bond.GetIdx()] for bond in bonds],
    }


def test_targets_that_depend_on_the_columns_alone_are_learned(predictor: Predictor) -> None:
    for name in TARGETS:
        assert predictor.header.metrics["test"]["per_target"][name]["rmse"] < 0.5 * table()[name].std(), name


def test_the_order_of_the_atoms_other_molecules_and_the_way_do_not_matter(predictor, tmp_path, monkeypatch) -> None:
    frame = table().head(8)[INPUTS]
    said = answers(predictor, frame)
    turned = pd.DataFrame([rewritten(row, seed) for seed, (_, row) in enumerate(frame.iterrows())])
    assert (turned.smiles != frame.smiles).any()
    np.testing.assert_allclose(answers(predictor, turned), said, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(answers(predictor, frame[INPUTS[::-1]]), said, rtol=1e-5, atol=1e-5)  # found by name
    for wrong in (frame.assign(shift=[each[::-1] for each in turned["shift"]]), frame.assign(temperature=300)):
        assert not np.allclose(answers(predictor, wrong), said, atol=1e-2)
    features = [predictor.embed(each)[:, -2:] for each in (frame, frame.assign(temperature=300))]
    assert not np.allclose(*features)
    alone = [answers(predictor, frame.iloc[[i]])[0] for i in range(8)]
    np.testing.assert_allclose(alone, said, rtol=1e-4, atol=1e-4)
    monkeypatch.setenv("GTX_FAST", "0")
    np.testing.assert_allclose(answers(predictor, frame), said, rtol=1e-5, atol=1e-5)
    monkeypatch.delenv("GTX_FAST")

    frames = DataFramePredictor(tmp_path.parent / "none.gtx")
    frames.predictor = predictor
    np.testing.assert_allclose(frames(frame)[[f"{name}_pred" for name in TARGETS]], said, rtol=1e-5)
    frame.assign(shift=[json.dumps(one) for one in frame["shift"]], order=[str(one) for one in frame["order"]]).to_csv(
        tmp_path / "t.csv", index=False
    )
    frame.to_parquet(tmp_path / "t.parquet")
    for name in ("t.csv", "t.parquet"):
        predictor.predict_table(tmp_path / name, tmp_path / "out.csv")
        found = [[float(row[f"{name}_pred"]) for name in TARGETS] for row in read(tmp_path / "out.csv")]
        np.testing.assert_allclose(found, said, rtol=1e-5)


GOOD = {"smiles": "CCO", "temperature": 300, "ph": 7, "shift": "[1, 2, 3]", "order": "[1, 1]"}


@pytest.mark.parametrize("fast", ["0", "1"])
def test_each_number_stands_at_its_own_atom_or_bond(fast: str, tmp_path, monkeypatch) -> None:
    """Atomic numbers, and products of those of a bond's ends, hydrogens between the heavy atoms."""
    monkeypatch.setenv("GTX_FAST", fast)
    full = Chem.AddHs(Chem.MolFromSmiles("OC(=O)C1CC1N"))
    AllChem.EmbedMolecule(full, randomSeed=1)
    mixed = Chem.RenumberAtoms(full, np.random.default_rng(0).permutation(full.GetNumAtoms()).tolist())
    heavy = Chem.MolFromMolBlock(Chem.MolToMolBlock(mixed))
    for hydrogens, coordinates in product((False, True), repeat=2):
        settings, mol = {"hydrogens": hydrogens, "coordinates": coordinates}, mixed if hydrogens else heavy
        values = {"atom": [atom.GetAtomicNum() for atom in mol.GetAtoms()]}
        values["bond"] = [b.GetBeginAtom().GetAtomicNum() * b.GetEndAtom().GetAtomicNum() for b in mol.GetBonds()]
        for name, each in values.items():
            mixed.SetProp(name, " ".join(map(str, each)))
        with Chem.SDWriter(str(tmp_path / "t.sdf")) as writer:
            writer.write(mixed)
        features, featuriser = FeatureColumns(atoms=("atom",), bonds=("bond",)), Featuriser(**settings)
        (row,) = features.read_table(open_table(tmp_path / "t.sdf")).rows
        read = featurise(featuriser, [row.readable], workers=0)
        store = features.attach(read, [row.features], [row.readable], featuriser).store
        assert store.atom_features[:, 0].equal(store.atoms[:, 0].float()) and len(store.atoms) == mol.GetNumAtoms()
        elements = store.atoms[:, 0].float()[store.bonds.long()]
        assert store.bond_features[:, 0].equal(elements[0] * elements[1])


def test_a_list_that_cannot_be_used_is_the_error_of_its_row(predictor: Predictor, file: Path, tmp_path) -> None:
    good = GOOD
    wrong = {
        'row 2, column "smiles", value "CCO": column "shift" has 2 numbers; expected one for each of the molecule\'s '
        "3 atoms": {"shift": "[1, 2]"},
        "3 atoms; --hydrogens makes atoms of hydrogens too": {"shift": "1 2 3 4"},
        'column "order" has 3 numbers; expected one for each of the molecule\'s 2 bonds': {"order": "[1, 1, 1]"},
        'row 5: column "shift", value "": expected a list of numbers, one for each atom, without blanks': {"shift": ""},
        "one for each bond, without blanks": {"order": "[1, null]"},
        'column "shift", value "[1, x, 2]": is no list of numbers: item 2': {"shift": "[1, x, 2]"},
    }
    frame = pd.DataFrame([good, *(good | one for one in wrong.values())]).assign(ya=np.arange(7) + 0.5, yb=1.0)
    frame.to_csv(tmp_path / "t.csv", index=False)
    outcome = predictor.predict_table(tmp_path / "t.csv", tmp_path / "out.csv")
    first, *said = read(tmp_path / "out.csv")
    assert first["ya_pred"] and not any(row["ya_pred"] for row in said) and outcome.row_log.num_errors == len(wrong)
    for row, expected in zip(said, wrong, strict=True):
        assert expected in row["error"]
    data = DataSettings(str(tmp_path / "t.csv"), ("ya",), features=BOTH, workers=0, test=str(file), val=str(file))
    errors = load_training_table(data).files[0].row_log.errors
    assert sorted(errors) == [2, 3, 4, 5, 6, 7]
    assert all(expected in errors[number] for number, expected in enumerate(wrong, 2))
    with pytest.raises(InputError, match='row 2, column "smiles", value "CCO": column "shift" has 2 numbers'):
        load_training_table(replace(data, on_error="fail"))
    frame.drop(columns="order").to_csv(tmp_path / "plain.csv", index=False)
    with pytest.raises(InputError, match="feature column 'order': there is no column 'order'"):
        predictor.predict_table(tmp_path / "plain.csv", tmp_path / "out.csv")


def test_a_cell_that_is_no_number_is_the_error_of_its_row(predictor: Predictor, tmp_path) -> None:
    cells = ["300", "", "warm", "1e31", "nan", "298.15"]
    pd.DataFrame([GOOD | {"temperature": cell} for cell in cells]).to_csv(tmp_path / "t.csv", index=False)
    outcome = predictor.predict_table(tmp_path / "t.csv", tmp_path / "out.csv")
    said = read(tmp_path / "out.csv")
    assert [bool(row["y_pred"]) for row in said] == [True, False, False, False, False, True]
    wrong = ["is blank", "is not a number", "is too large", "is blank"]
    found = predictor.predict(pd.DataFrame([GOOD | {"temperature": cell, "note": "C"} for cell in cells]))
    np.testing.assert_allclose(found.y_pred[[0, 5]], [float(said[i]["y_pred"]) for i in (0, 5)], rtol=1e-5)
    for row, cell, why, error in zip(said[1:5], cells[1:5], wrong, found.error[1:5], strict=True):
        assert row["error"].endswith(error)
        assert error.startswith(f'column "temperature", value "{cell}": {why}; expected a number of at most 1e+30')
    assert outcome.row_log.error_counts == {"with an unusable feature": 4}


def test_a_table_without_the_column_is_one_error_that_names_it(predictor: Predictor, tmp_path) -> None:
    frame = pd.DataFrame([GOOD]).drop(columns="temperature")
    frame.to_csv(tmp_path / "t.csv", index=False)
    remedy = "give a table with a column for each of: SMILES, temperature, ph, shift, order$"
    for source in (tmp_path / "t.csv", "CCO"):
        with pytest.raises(InputError, match=f"feature column 'temperature': there is no column .*; {remedy}"):
            predictor.predict_table(source, tmp_path / "out.csv")
    for given in (["CCO"], frame):
        with pytest.raises(InputError, match=f"(reads|feature column) 'temperature'.*{remedy}"):
            predictor.predict(given)
    with pytest.raises(InputError, match="needs the feature 'ph' of the molecule: give --features ph=VALUE, or"):
        explain_prediction(predictor, "CCO", features={k: v for k, v in GOOD.items() if k not in ("smiles", "ph")})
    with pytest.raises(InputError, match="this model reads 'temperature', 'ph' too: give a table"):
        gtx.MoleculeRegressor(feature_columns=["temperature", "ph"]).fit(["CCO"], [1.0])


def test_a_blank_is_told_to_the_model_where_that_is_asked_for(tmp_path) -> None:
    """Rows without a temperature have a target of their own, which only the mark of the blank tells."""
    frame, path = table()[["smiles", "temperature", "y"]], tmp_path / "t.csv"
    blank = np.random.default_rng(1).random(len(frame)) < 0.3
    frame.loc[blank, ["temperature", "y"]] = [np.nan, 200]
    frame.to_csv(path, index=False)
    told = trained(tmp_path / "run", path, FeatureColumns(("temperature",), blanks=True), ("y",))
    low, high = told.predict(pd.DataFrame({"smiles": ["CCO", "CCO"], "temperature": [None, 340.0]}))["y_pred"]
    assert low < 250 < 300 < high
    data = DataSettings(str(path), ("y",), features=FeatureColumns(("temperature",)), workers=0)
    refusing = load_training_table(data)
    assert refusing.files[0].row_log.num_errors == blank.sum() and len(refusing.store) == 100 - blank.sum()


def test_blanks_count_as_the_mean_and_are_told(tmp_path) -> None:
    frame = pd.DataFrame({"smiles": ["CCO", "CC", "C"], "q": [[1.0, None, 3.0], None, [5.0]], "y": [0.0, 1.0, 2.0]})
    frame.to_parquet(tmp_path / "t.parquet")
    data = DataSettings(str(tmp_path / "t.parquet"), ("y",), features=FeatureColumns((), True, ("q",)), workers=0)
    values = load_training_table(data).store.atom_features
    expected = [[1, 0], [np.nan, 1], [3, 0], [np.nan, 1], [np.nan, 1], [5, 0]]
    np.testing.assert_array_equal(values, np.array(expected, np.float32))


def test_going_on_keeps_the_columns_and_the_foundation_takes_new_ones(file, predictor, tmp_path) -> None:
    data = DataSettings(str(file), TARGETS, workers=0, featuriser=PLAIN)
    settings, model = replace(TrainSettings(**LEARNS), epochs=1, model_arguments={}), file.parent / "run" / "model.gtx"
    options = "`feature_columns`, `atom_feature_columns`, `bond_feature_columns`"
    other = replace(data, features=FeatureColumns(("yb",)), target_columns=("ya",))
    with pytest.raises(InputError, match=f"of {options} it has temperature, ph, shift, order"):
        train_model(other, settings, tmp_path / "run", start=model)
    short = table().head(20)
    short.to_parquet(tmp_path / "short.parquet")
    data = replace(data, data=str(tmp_path / "short.parquet"))
    train_model(data, settings, tmp_path / "more", start=model, **ALONE)
    assert gtx.load(tmp_path / "more" / "model.gtx").header.features == EVERY
    train_model(replace(data, features=EVERY), settings, tmp_path / "tuned", start="foundation", **ALONE)
    assert np.isfinite(answers(gtx.load(tmp_path / "tuned" / "model.gtx"), short.head(3))).all()


def test_an_explanation_is_told_the_lists(predictor: Predictor) -> None:
    given = {"temperature": 300, "ph": 7, "shift": [100, 120, 100], "order": "[1, 1]"}
    seen = explain_prediction(predictor, "CCO", draws=1, features=given).prediction
    told = pd.DataFrame({"smiles": ["CCO"], **{name: [value] for name, value in given.items()}})
    assert seen == pytest.approx(answers(predictor, told)[0, 0], rel=1e-4)
    assert np.isfinite(compute_attribution(predictor, "CCO", draws=2, features=given).prediction)
    with pytest.raises(InputError, match='"shift" has 1 number; expected one for each of the molecule\'s 3 atoms'):
        explain_prediction(predictor, "CCO", draws=1, features=given | {"shift": [1]})
