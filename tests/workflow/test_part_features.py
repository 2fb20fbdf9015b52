"""Features of atoms and bonds: lists in columns of the table that the model reads where it embeds atoms and bonds."""

from __future__ import annotations

import json
from dataclasses import replace
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
from gtx.workflow.specs import check_model_settings
from tests.tables import ALONE, TINY, molecules, read

pytestmark = pytest.mark.slow

BOTH = FeatureColumns(atoms=("shift",), bonds=("order",))
SMALL = TINY["model_arguments"] | {"substructures": None, "dropout": 0.0, "readout": ["sum"]}
LEARNS = TINY | {
    "kernel_parts": ["substructures", "descriptors"],
    "epochs": 10,
    "blend": "no",
    "lr": 1e-2,
    "batch_molecules": 8,
    "model_arguments": SMALL,
}
PLAIN = Featuriser(descriptors=False)


def table() -> pd.DataFrame:
    """Molecules with random numbers of their atoms and bonds; the targets are the sums of these, and nothing else."""
    draw = np.random.default_rng(0)
    frame = molecules(100)[["smiles"]]
    mols = [Chem.MolFromSmiles(smiles) for smiles in frame.smiles]
    frame["shift"] = [draw.normal(100, 10, mol.GetNumAtoms()).round(3).tolist() for mol in mols]
    frame["order"] = [draw.uniform(1, 3, mol.GetNumBonds()).round(3).tolist() for mol in mols]
    frame["ya"] = [sum(each) - 100 * len(each) for each in frame["shift"]]
    frame["yb"] = [sum(each) - 2 * len(each) for each in frame["order"]]
    return frame


def trained(folder: Path, file: Path, features: FeatureColumns | None) -> Predictor:
    settings = DataSettings(str(file), ("ya", "yb"), features=features, workers=0, featuriser=PLAIN)
    train_model(settings, TrainSettings(**LEARNS), folder, **ALONE)
    return gtx.load(folder / "model.gtx", device="cpu")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("parts") / "t.parquet"
    table().to_parquet(path)
    return path


@pytest.fixture(scope="module")
def predictor(file: Path) -> Predictor:
    return trained(file.parent / "run", file, BOTH)


def answers(predictor: Predictor, frame: pd.DataFrame) -> np.ndarray:
    found = predictor.predict(frame)
    assert found["error"].isna().all()
    return found[["ya_pred", "yb_pred"]].to_numpy()


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
        "smiles": text,
        "shift": [row["shift"][i] for i in old],
        "order": [row["order"][bond.GetIdx()] for bond in bonds],
    }


def test_targets_that_are_sums_of_the_lists_are_learned_with_them_alone(
    file: Path, predictor: Predictor, tmp_path: Path
) -> None:
    without = trained(tmp_path / "without", file, None)
    for name in ("ya", "yb"):
        spread = table()[name].std()
        own, blind = (each.header.metrics["test"]["per_target"][name]["rmse"] for each in (predictor, without))
        assert own < 0.5 * min(blind, spread), name


def test_the_order_of_the_atoms_other_molecules_and_the_way_do_not_matter(
    predictor: Predictor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = table().head(8)[["smiles", "shift", "order"]]
    said = answers(predictor, frame)
    turned = pd.DataFrame([rewritten(row, seed) for seed, (_, row) in enumerate(frame.iterrows())])
    assert (turned.smiles != frame.smiles).any()
    np.testing.assert_allclose(answers(predictor, turned), said, rtol=1e-4, atol=1e-4)
    wrong = frame.assign(shift=[each[::-1] for each in turned["shift"]])
    assert not np.allclose(answers(predictor, wrong), said, atol=1e-2)
    alone = [answers(predictor, frame.iloc[[i]])[0] for i in range(8)]
    np.testing.assert_allclose(alone, said, rtol=1e-4, atol=1e-4)
    monkeypatch.setenv("GTX_FAST", "0")
    np.testing.assert_allclose(answers(predictor, frame), said, rtol=1e-5, atol=1e-5)
    monkeypatch.delenv("GTX_FAST")

    frames = DataFramePredictor(tmp_path.parent / "none.gtx")
    frames.predictor = predictor
    np.testing.assert_allclose(frames(frame)[["ya_pred", "yb_pred"]], said, rtol=1e-5)
    frame.assign(shift=[json.dumps(one) for one in frame["shift"]], order=[str(one) for one in frame["order"]]).to_csv(
        tmp_path / "t.csv", index=False
    )
    frame.to_parquet(tmp_path / "t.parquet")
    for name in ("t.csv", "t.parquet"):
        predictor.predict_table(tmp_path / name, tmp_path / "out.csv")
        found = [[float(row["ya_pred"]), float(row["yb_pred"])] for row in read(tmp_path / "out.csv")]
        np.testing.assert_allclose(found, said, rtol=1e-5)


def test_an_sdf_holds_them_as_property_lists(predictor: Predictor, tmp_path: Path) -> None:
    row = table().iloc[5]
    mol = Chem.MolFromSmiles(row.smiles)
    for name in ("shift", "order"):
        mol.SetProp(name, "\n".join(map(str, row[name])))
    with Chem.SDWriter(str(tmp_path / "t.sdf")) as writer:
        writer.write(mol)
    predictor.predict_table(tmp_path / "t.sdf", tmp_path / "out.csv")
    (found,) = read(tmp_path / "out.csv")
    assert np.allclose(float(found["ya_pred"]), answers(predictor, table().iloc[[5]])[0, 0], rtol=1e-4)


@pytest.mark.parametrize("fast", ["0", "1"])
def test_each_number_stands_at_its_own_atom_or_bond(fast: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Atomic numbers, and products of those of a bond's ends, hydrogens between the heavy atoms."""
    monkeypatch.setenv("GTX_FAST", fast)
    full = Chem.AddHs(Chem.MolFromSmiles("OC(=O)C1CC1N"))
    AllChem.EmbedMolecule(full, randomSeed=1)
    mixed = Chem.RenumberAtoms(full, np.random.default_rng(0).permutation(full.GetNumAtoms()).tolist())
    heavy = Chem.MolFromMolBlock(Chem.MolToMolBlock(mixed))
    for settings, mol in (
        ({}, heavy),
        ({"hydrogens": True}, mixed),
        ({"coordinates": True}, heavy),
        ({"hydrogens": True, "coordinates": True}, mixed),
    ):
        values = {"atom": [atom.GetAtomicNum() for atom in mol.GetAtoms()]}
        values["bond"] = [b.GetBeginAtom().GetAtomicNum() * b.GetEndAtom().GetAtomicNum() for b in mol.GetBonds()]
        for name, each in values.items():
            mixed.SetProp(name, " ".join(map(str, each)))
        with Chem.SDWriter(str(tmp_path / "t.sdf")) as writer:
            writer.write(mixed)
        features, featuriser = FeatureColumns(atoms=("atom",), bonds=("bond",)), Featuriser(**settings)
        (row,) = features.read_table(open_table(tmp_path / "t.sdf")).rows
        read = featurise(featuriser, [row.readable], workers=0)
        store = features.joined(read, [row.features], [row.readable], featuriser).store
        assert store.atom_features[:, 0].equal(store.atoms[:, 0].float()) and len(store.atoms) == mol.GetNumAtoms()
        elements = store.atoms[:, 0].float()[store.bonds.long()]
        assert store.bond_features[:, 0].equal(elements[0] * elements[1])


def test_a_list_that_cannot_be_used_is_the_error_of_its_row(predictor: Predictor, file: Path, tmp_path: Path) -> None:
    good = {"smiles": "CCO", "shift": "[1, 2, 3]", "order": "[1, 1]"}
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
    with pytest.raises(InputError, match="this model needs the feature 'shift'"):
        predictor.predict(["CCO"])
    with pytest.raises(InputError, match="feature column 'order': there is no column 'order'"):
        predictor.predict_table(write_plain(tmp_path, frame), tmp_path / "out.csv")


def write_plain(folder: Path, frame: pd.DataFrame) -> Path:
    frame.drop(columns="order").to_csv(folder / "plain.csv", index=False)
    return folder / "plain.csv"


def test_blanks_count_as_the_mean_and_are_told(tmp_path: Path) -> None:
    frame = pd.DataFrame({"smiles": ["CCO", "CC", "C"], "q": [[1.0, None, 3.0], None, [5.0]], "y": [0.0, 1.0, 2.0]})
    frame.to_parquet(tmp_path / "t.parquet")
    data = DataSettings(str(tmp_path / "t.parquet"), ("y",), features=FeatureColumns((), True, ("q",)), workers=0)
    values = load_training_table(data).store.atom_features
    expected = [[1, 0], [np.nan, 1], [3, 0], [np.nan, 1], [np.nan, 1], [5, 0]]
    np.testing.assert_array_equal(values, np.array(expected, np.float32))


def test_going_on_keeps_the_columns_and_the_foundation_takes_new_ones(
    file: Path, predictor: Predictor, tmp_path: Path
) -> None:
    data = DataSettings(str(file), ("ya", "yb"), workers=0, featuriser=PLAIN)
    settings = replace(TrainSettings(**LEARNS), epochs=1, model_arguments={})
    with pytest.raises(InputError, match="of --atom-feature-columns, --bond-feature-columns it has shift, order"):
        train_model(
            replace(data, features=FeatureColumns(("ya",))), settings, tmp_path / "run", start=predictor_file(file)
        )
    short = table().head(20)
    short.to_parquet(tmp_path / "short.parquet")
    data = replace(data, data=str(tmp_path / "short.parquet"))
    train_model(data, settings, tmp_path / "more", start=predictor_file(file), **ALONE)
    assert gtx.load(tmp_path / "more" / "model.gtx").header.features == BOTH
    train_model(replace(data, features=BOTH), settings, tmp_path / "tuned", start="foundation", **ALONE)
    assert np.isfinite(answers(gtx.load(tmp_path / "tuned" / "model.gtx"), short.head(3))).all()


def predictor_file(file: Path) -> Path:
    return file.parent / "run" / "model.gtx"


def test_what_cannot_read_them_says_so(file: Path, tmp_path: Path) -> None:
    data = DataSettings(str(file), ("ya",), workers=0)
    cases = {
        "--bond-feature-columns are of the atoms as they are written: leave out --standardise": {
            "featuriser": Featuriser(standardise=True)
        },
        "are for one molecule a row": {"featuriser": Featuriser(components=("smiles", "other"))},
    }
    for message, other in cases.items():
        with pytest.raises(InputError, match=message):
            replace(data, features=BOTH, **other)
    with pytest.raises(InputError, match="tanimoto reads molecules alone: leave out --atom-feature-columns"):
        alone = TrainSettings(progress=False, model="tanimoto")
        train_model(replace(data, features=BOTH), alone, tmp_path / "run")
    with pytest.raises(InputError, match="embeds neither bonds nor pairs cannot read bond_features"):
        check_model_settings(TrainSettings(model="gat"), Featuriser(), BOTH)
    check_model_settings(TrainSettings(model="gat"), Featuriser(), FeatureColumns(atoms=("shift",)))


def test_an_explanation_is_told_the_lists(predictor: Predictor) -> None:
    given = {"shift": [100, 120, 100], "order": "[1, 1]"}
    seen = explain_prediction(predictor, "CCO", draws=1, features=given).prediction
    told = pd.DataFrame({"smiles": ["CCO"], **{name: [value] for name, value in given.items()}})
    assert seen == pytest.approx(answers(predictor, told)[0, 0], rel=1e-4)
    assert np.isfinite(compute_attribution(predictor, "CCO", draws=2, features=given).prediction)
    with pytest.raises(
        InputError, match='column "shift" has 1 number; expected one for each of the molecule\'s 3 atoms'
    ):
        explain_prediction(predictor, "CCO", draws=1, features=given | {"shift": [1]})


def test_an_estimator_reads_lists_of_a_frame(file: Path) -> None:
    frame = table().head(30)
    regressor = gtx.MoleculeRegressor(
        epochs=1,
        model_arguments=TINY["model_arguments"],
        atom_feature_columns=["shift"],
        bond_feature_columns=["order"],
        ignore_stereo=True,
        settings={"blend": "no", "threads": 1},
    ).fit(frame[["order", "smiles", "shift"]], frame["ya"])
    assert regressor.predict(frame[["smiles", "shift", "order"]]).shape == (30,)
    assert regressor.predictor_.header.features == BOTH and regressor.predictor_.header.featuriser.ignore_stereo
    with pytest.warns(UserWarning, match='1 of 2 SMILES cannot be used.*"order" has 3 numbers'):
        found = regressor.predict(
            pd.DataFrame({"smiles": ["CO", "CO"], "shift": [[1, 2]] * 2, "order": [[1], [1, 1, 1]]})
        )
    assert np.isfinite(found).tolist() == [True, False]
