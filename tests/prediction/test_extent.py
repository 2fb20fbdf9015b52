"""Predictions warn of what training did not have: elements, sizes, values of features; in every model and way."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

import gtx
from gtx.data import FeatureColumns, MoleculeStore, featurise
from gtx.models import build_model
from gtx.molecules import Featuriser
from gtx.prediction import Predictor
from gtx.prediction.domain import TrainingExtent
from gtx.tasks import Regression
from gtx.training import TrainSettings
from gtx.training_data import DataSettings
from gtx.workflow import train_model
from tests.molecules_for_tests import CODE_SIZES
from tests.tables import ALONE, TINY, molecules, write

CHAIN = "C" * 40
SIZE = "far larger than the molecules of training: 40 atoms, in training at most 9"
SILICON = "not seen in training: element Si"
PLAIN = Featuriser(descriptors=False)


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Path:
    """Molecules of at most 9 atoms, at 273 to 373 K."""
    kelvin = np.random.default_rng(0).uniform(273, 373, 80)
    rows = [[s, f"{t:.2f}", g] for s, t, g in zip(molecules(80).smiles, kelvin, molecules(80).gap, strict=True)]
    return write(tmp_path_factory.mktemp("extent") / "t.csv", rows, ["smiles", "temperature", "gap"])


def trained(table: Path, out: Path, model: str = "standard", start: Path | None = None) -> Predictor:
    features = FeatureColumns(() if model == "tanimoto" else ("temperature",))
    data = DataSettings(str(table), ("gap",), features=features, workers=0, featuriser=PLAIN)
    settings = {"progress": False, "model": model} if model in ("kernel", "tanimoto") else TINY
    settings = {name: value for name, value in settings.items() if start is None or name != "model_arguments"}
    train_model(data, TrainSettings(**settings), out, start=start, **ALONE)
    return gtx.load(out / "model.gtx", device="cpu")


@pytest.mark.parametrize("model", ["standard", "kernel", "tanimoto"])
def test_every_kind_of_model_warns(table: Path, tmp_path, model: str) -> None:
    predictor = trained(table, tmp_path / "run", model)
    rows = [("CCO", 300), ("C[Si](C)(C)C", 300), (CHAIN, 300), ("CCO", 25), ("CCO", 380)]
    frame = pd.DataFrame(rows, columns=["smiles", "temperature"])
    warning = predictor.predict(frame, workers=0).warning.fillna("")
    celsius = "" if model == "tanimoto" else "temperature is far outside its range in training: 25, in training 27"
    assert warning[:3].tolist() == ["", SILICON, SIZE] and warning[4] == ""
    assert warning[3].startswith(celsius) and bool(warning[3]) == bool(celsius)
    frame.to_csv(tmp_path / "new.csv", index=False)
    predictor.predict_table(tmp_path / "new.csv", tmp_path / "out.csv", workers=0)
    written = pd.read_csv(tmp_path / "out.csv").warning.fillna("")
    assert [text.endswith(told) for text, told in zip(written, warning, strict=True)] == [True] * 5
    assert written.str.startswith("row").tolist() == [False, True, True, model != "tanimoto", False]


def test_a_fine_tuned_model_knows_what_both_trainings_had(table: Path, tmp_path) -> None:
    trained(table, tmp_path / "first")
    rows = [["C" * i + "[Si](C)(C)C", 400 + i, i / 7] for i in range(1, 31)]
    second = write(tmp_path / "second.csv", rows, ["smiles", "temperature", "gap"])
    extent = trained(second, tmp_path / "run", start=tmp_path / "first" / "model.gtx").header.extent
    (part,), (low, high) = extent.molecules, extent.features["temperature"]
    assert part.largest > 20 and {"N", "Si"} <= set(part.describe().replace(",", "").replace(";", "").split())
    assert low < 290 and high > 420


# --- The rule itself.


def store(smiles: list[object], features: object = None, read: Featuriser = PLAIN) -> MoleculeStore:
    made = featurise(read, smiles, workers=0).store
    return made if features is None else made.with_features(np.array(features))


def test_a_feature_is_far_outside_from_a_tenth_of_its_range_on() -> None:
    columns = FeatureColumns(("T", "pH", "salt"), blanks=True)
    train = store(["CCO"] * 3, [[273, 7, 0, 0, 0, 0], [np.nan, 7, 0, 1, 0, 0], [373, 7, 0, 0, 0, 0]])
    member = SimpleNamespace(model=torch.nn.Identity(), task=Regression(("y",)))
    header = Predictor.of([member], PLAIN, "cpu", train=train, features=columns).header
    extent = header.extent
    assert header.features is columns

    def warnings(*values: float) -> list[str]:
        return extent.warnings(store(["CCO"], [[*values, 0, 0, 0]]), (), columns)[0]

    assert warnings(264, 7.5, 0) == warnings(382, 6.4, 0) == warnings(np.nan, np.nan, np.nan) == []
    assert warnings(262, 7, 0) == ["T is far outside its range in training: 262, in training 273 to 373"]
    assert warnings(384, 8, 0.1) == [
        "T is far outside its range in training: 384, in training 273 to 373",
        "pH is far from its only value in training: 8, in training 7",
        "salt is far from its only value in training: 0.1, in training 0",
    ]


def test_of_a_list_of_atoms_the_farthest_value_is_told() -> None:
    columns = FeatureColumns(atoms=("charge",))
    made = store(["CCO", "CN"])
    train = replace(made, atom_features=torch.tensor([[-1.0], [0], [1], [0], [0.5]]))
    new = replace(made, atom_features=torch.tensor([[2.0], [9], [-5], [0], [0]]))
    told = TrainingExtent.of(train, columns).warnings(new, (), columns)
    assert told == [["charge is far outside its range in training: 9, in training -1 to 1"], []]


def test_components_are_told_apart() -> None:
    names = ("solute", "solvent")
    read = Featuriser(descriptors=False, components=names)
    columns = FeatureColumns(("T",))
    extent = TrainingExtent.of(store([("CCCCCC[Si](C)(C)C", "O"), ("CCO", "CO")], [[1], [2]], read), columns)
    told = extent.warnings(store([("CO", "CCO"), ("O", "C[Si](C)(C)C")], [[1], [9]], read), names, columns)
    assert told[0] == ["solvent: not seen in training: atom degree 2"]
    assert any(text.startswith("solvent: ") and "element Si" in text for text in told[1])
    assert "solvent: far larger than the molecules of training: 5 atoms, in training at most 2" in told[1]
    assert not any(text.startswith("solute: far larger") for text in told[1])
    assert told[1][-1] == "T is far outside its range in training: 9, in training 1 to 2"
    assert extent.warnings(store([("C(", "O")], np.zeros((0, 1)), read), names, columns) == []


@pytest.mark.parametrize("separate", [False, True])
def test_a_header_without_an_extent_tells_the_codes_that_its_encoders_observed(separate: bool) -> None:
    read = Featuriser(descriptors=False, components=("solute", "solvent"))
    rows = store([("CCO", "O"), ("CC[Se]C", "CS(C)=O"), ("c1ccccc1", "O")], None, read)
    spec = {"name": "standard", "arguments": {"out_channels": 1, "channels": 8, "layers": 1, "heads": 2, **CODE_SIZES}}
    model = build_model(spec | {"components": {"count": 2, "separate": separate}})
    model.observe(rows)
    observed, (solutes, solvents) = TrainingExtent.of_network(model, 2).molecules, TrainingExtent.of(rows).molecules
    both = solutes | solvents
    expected = [replace(part, largest=None) for part in ((solutes, solvents) if separate else (both, both))]
    assert list(observed) == expected
