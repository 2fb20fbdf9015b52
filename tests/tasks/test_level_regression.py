"""Numbers of atoms and bonds: a rule is found, sums are kept, the order is that of the text, blanks have no say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from rdkit import Chem
from torch import Tensor, nn

import gtx
from gtx.base.errors import InputError
from gtx.data import FeatureColumns, MoleculeStore, featurise
from gtx.data.batches import ConstantShapeStore
from gtx.models import standard
from gtx.molecules import Featuriser
from gtx.prediction import ModelFileHeader, Predictor
from gtx.tasks import Regression, TaskList
from gtx.training import TrainSettings
from gtx.training_data import DataSettings, load_training_table
from gtx.workflow import train_model
from gtx.workflow.baselines import means_of_alike
from gtx.workflow.fine_tuning import PretrainedModel
from tests.tables import TINY, molecules, write

SMILES = ["CCO", "C", "C[NH3+]", "c1ccccc1C(=O)[O-]", "CC#N"]
CHARGES = [0, 0, 1, -1, 0]


def rule(atom: Chem.Atom) -> float:
    """The heavier draws charge from its neighbours, bond by bond, so that a molecule's atoms sum to 0."""
    return sum(other.GetAtomicNum() - atom.GetAtomicNum() for other in atom.GetNeighbors()) / 20


def table(path: Path, rows: int = 120) -> Path:
    """Neutral bundled molecules with their atoms' charges by the rule, as lists."""
    known = [s for s in molecules(rows).smiles if "+" not in s and "-" not in s]
    lists = [[rule(atom) for atom in Chem.MolFromSmiles(s).GetAtoms()] for s in known]
    return write(path, [[s, json.dumps(values)] for s, values in zip(known, lists, strict=True)], ["smiles", "q"])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("atoms")
    arguments = TINY["model_arguments"] | {"dropout": 0.0}
    settings = TrainSettings(**TINY | {"epochs": 15, "lr": 1e-2, "batch_molecules": 8, "model_arguments": arguments})
    data = DataSettings(str(table(folder / "t.csv")), task=Regression("q", level="atom", sum_to="charge"), workers=0)
    outcome = train_model(data, settings, folder / "run")
    alike = outcome.metrics["baseline"]["alike"]["test"]
    assert outcome.metrics["test"]["r2"] > max(0.85, alike["r2"])  # the rule is found, and it is not of the atom alone
    assert any("sum to its formal charge; those of the training rows miss it by" in note for note in outcome.notes)
    return folder / "run"


@pytest.fixture(scope="module")
def model(run: Path) -> Predictor:
    return gtx.load(run / "model.gtx", "cpu")


@pytest.mark.slow
def test_predictions_sum_to_the_formal_charge(model: Predictor) -> None:
    lists = [json.loads(text) for text in model.predict(SMILES).q_pred]
    assert [len(values) for values in lists] == [3, 1, 2, 9, 3]
    assert [sum(values) for values in lists] == pytest.approx(CHARGES, abs=1e-7)


@pytest.mark.slow
def test_atoms_are_in_the_order_of_the_text(model: Predictor) -> None:
    mol = Chem.MolFromSmiles("CC(=O)NCC#N")
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(mol.GetNumAtoms()).tolist()
        other = Chem.RenumberAtoms(mol, order)
        text = Chem.MolToSmiles(other, canonical=False)
        written = json.loads(other.GetProp("_smilesAtomOutputOrder"))
        found, expected = (np.array(json.loads(values)) for values in model.predict([text, "CC(=O)NCC#N"]).q_pred)
        np.testing.assert_allclose(found, expected[order][written], atol=1e-5)


@pytest.mark.slow
def test_a_file_whose_parts_contradict_each_other_is_refused(model: Predictor, tmp_path: Path) -> None:
    arguments = {**model.header.model["arguments"], "per": "bond"}
    header = replace(model.header, model={"name": "standard", "arguments": arguments})
    Predictor(model.members, header).save(tmp_path / "m.gtx")
    with pytest.raises(InputError, match=r"model\.arguments\.per: expected 'atom', got 'bond'"):
        gtx.load(tmp_path / "m.gtx")


@pytest.mark.slow
def test_a_model_of_atoms_is_trained_further_on_molecules_or_bonds(model: Predictor) -> None:
    further = PretrainedModel(model.header, [], model.header.featuriser, "m.gtx", "")
    assert further.spec(Regression("y"))["arguments"]["per"] == "molecule"
    assert further.spec(Regression("b", level="bond"))["arguments"]["per"] == "bond"
    tuned = replace(
        further, header=replace(model.header, settings={"tuning": {"rates": {"all": 0.1, "readout.substructures": 1}}})
    )
    bonds, both = Regression("b", level="bond"), TaskList(tasks=(Regression("y"), Regression("b", level="bond")))
    assert tuned.tuned(TrainSettings(), bonds).rates == {"all": 0.1}  # it has no counts of substructures
    assert tuned.tuned(TrainSettings(), both).rates == {
        "all": 0.1,
        "readout.substructures": 1,
        "also": 1,
    }  # its head is new
    assert further.spec(both)["arguments"]["also"] == {"bond": 1}
    assert further.spec(Regression("q", level="atom")) == model.header.model | {
        "arguments": model.header.model["arguments"] | {"out_channels": 1}  # without a sum, no weights
    }


def test_those_alike_are_of_training_alone() -> None:
    codes = np.array([[6, 1], [6, 1], [6, 2], [7, 1], [6, 1], [6, 3], [8, 1]])
    y = np.array([[1.0], [3.0], [8.0], [0.0], [np.nan], [100.0], [100.0]])
    found = means_of_alike(codes, y, np.arange(7) < 4)
    assert found[:, 0].tolist() == [2, 2, 8, 0, 2, 4, 3]  # the mean of its codes, else of its element, else of all


# rows


def test_a_list_of_another_length_is_an_error_of_its_row(tmp_path: Path) -> None:
    cells = ["[1, 2, 3]", "[1, 2]", "", "[null, 5, null]", "[1, 2, x]", "[1, 2, 3, 4]"]
    path = write(tmp_path / "t.csv", [["CCO", cell, "train"] for cell in cells], ["smiles", "q", "split"])
    data = load_training_table(
        DataSettings(str(path), task=Regression("q", level="atom"), split_column="split", workers=0)
    )
    errors = data.files[0].row_log.errors
    assert list(errors) == [5, 2, 6]
    assert errors[2].endswith('value "[1, 2]": has 2 numbers; expected one for each of the molecule\'s 3 atoms')
    assert errors[6].endswith("of the molecule's 3 atoms; --hydrogens makes atoms of hydrogens too")
    assert errors[5].endswith("item 3, 'x', is neither a finite number nor null")
    assert sum(map(len, data.split.values())) == 2  # without any value, a row is only predicted
    y = data.store.atom_y[:, 0].reshape(3, 3)
    np.testing.assert_array_equal(y, [[1, 2, 3], [np.nan] * 3, [np.nan, 5, np.nan]])


def test_bonds_are_in_the_order_of_rdkit(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.csv",
        [["CC=O", "[1, 2]", "train"], ["C", "[]", ""], ["CO", "[1, 2]", "train"]],
        ["smiles", "b", "split"],
    )
    data = load_training_table(
        DataSettings(str(path), task=Regression("b", level="bond"), split_column="split", workers=0)
    )
    assert "has 2 numbers; expected one for each of the molecule's 1 bond" in data.files[0].row_log.errors[3]
    assert data.store.bond_y[:, 0].tolist() == [1, 1, 2, 2] and data.store.bonds[:, 2].tolist() == [1, 2]


# the loss


def store(task: Regression) -> MoleculeStore:
    """Molecules with targets of their parts, some of them blank."""
    made = featurise(Featuriser(), SMILES, workers=0).store
    rows = int(task.objective.level.ptr(made)[-1]) // task.objective.level.rows_each
    y = (
        torch.randn(rows, 2, generator=torch.Generator().manual_seed(0))
        .double()
        .repeat_interleave(task.objective.level.rows_each, 0)
    )
    y[::3, 0] = torch.nan
    y[: 3 * task.objective.level.rows_each] = torch.nan
    return replace(made, **{task.objective.level.field: y})


ARGUMENTS = {"channels": 8, "layers": 1, "heads": 2, "dropout": 0.0}


def sizes(further: int = 0) -> dict[str, object]:
    read = Featuriser()
    counts = {"atom_sizes": list(read.atom_sizes), "bond_sizes": list(read.bond_sizes)}
    return counts | {"num_descriptors": read.num_descriptors + further}


def network(task: Regression, further: int = 0) -> nn.Module:
    torch.manual_seed(0)
    made = standard(task.objective.out_channels, **sizes(further), **ARGUMENTS, per=task.level)
    molecules = store(task)
    made.observe(molecules.with_features(torch.randn(len(molecules), further)))
    return made


TASKS = [
    Regression(["a", "b"], level="atom", sum_to="charge"),
    Regression(["a", "b"], level="atom"),
    Regression(["a", "b"], level="bond"),
]
NAMES = ["atoms with a sum", "atoms", "bonds"]


def kept(task: Regression, model: nn.Module, batch: object) -> tuple[Tensor, Tensor, float]:
    output = task.objective.forward(model, batch)
    return (
        task.objective.mean_loss(output, batch),
        task.objective.validation.outputs(output, batch),
        float(task.objective.share(batch)),
    )


@pytest.mark.parametrize("task", TASKS, ids=NAMES)
def test_batches_of_constant_shape_are_worth_the_same(task: Regression) -> None:
    task = task.fitted(store(task))
    model, examples = network(task), task.objective.examples(store(task))
    cutter = ConstantShapeStore(examples)
    (index, *_) = cutter.sampler(5).batches()
    assert (
        task.objective.share(cutter)
        == task.objective.share(examples)
        == (~getattr(examples, task.objective.level.field).isnan()).sum()
    )
    loss, sums, share = kept(task, model, cutter.batch(index))
    rows = index[index >= 0]
    plain_loss, plain_sums, plain_share = kept(task, model, examples.batch(rows))
    torch.testing.assert_close(loss, plain_loss, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(sums[: len(rows)], plain_sums, rtol=1e-5, atol=1e-6)
    assert sums.shape[1] == task.objective.validation.channels and share == plain_share and model.constant_shapes


@pytest.mark.parametrize("task", TASKS, ids=NAMES)
def test_every_value_has_the_same_say_and_blanks_have_none(task: Regression) -> None:
    task = task.fitted(store(task))
    batch = task.objective.examples(store(task)).batch()
    y = getattr(batch, task.objective.level.field)
    output = torch.randn(y.shape, requires_grad=True)
    loss = task.objective.mean_loss(output, batch)
    loss.backward()
    known = ~y.isnan()
    torch.testing.assert_close(loss.detach(), (output.detach() - y)[known].square().mean())
    assert ((output.grad != 0) == known).all()
    scores = task.objective.validation.scorer(store(task))(task.objective.validation.outputs(output.detach(), batch))
    assert scores["val_loss"] == pytest.approx(float(loss.detach()))
    found = task.objective.evaluate(
        getattr(store(task), task.objective.level.field), task.scaler.unscale(output.detach())
    )
    for name in ("rmse", "mae", "r2"):
        assert scores[f"val_{name}"] == pytest.approx(found[name], rel=1e-5)


def test_a_row_of_weight_two_counts_as_two() -> None:
    task = TASKS[1].fitted(store(TASKS[1]))
    molecules = replace(task.objective.examples(store(task)), weights=torch.tensor([1.0, 1.0, 2.0, 1.0, 0.0]).double())
    weighed, twice = molecules.batch(), replace(molecules, weights=None).batch([0, 1, 2, 2, 3])
    model = network(task)
    assert torch.equal(task.objective.share(weighed), task.objective.share(twice).float()) and task.objective.share(
        molecules
    ) == task.objective.share(twice)
    of = [task.objective.mean_loss(task.objective.forward(model, batch), batch) for batch in (weighed, twice)]
    torch.testing.assert_close(*of)
    assert len(task.labelled(molecules)) == 3  # the first has no value, the last no weight


def test_scaled_outputs_of_a_molecule_sum_to_its_total() -> None:
    for total in ("charge", 2.0):
        task = Regression(["a", "b"], level="atom", sum_to=total)
        task = task.fitted(store(task))
        with torch.no_grad():
            outputs = task.objective.predict([network(task)], store(task).batch())
        lists = task.answers.decode(outputs, store(task)).mean
        for values, charge in zip(lists, CHARGES, strict=True):
            assert values.sum(0) == pytest.approx([charge if total == "charge" else total] * 2, abs=1e-12)


def test_a_column_beside_the_molecule_may_be_the_total(tmp_path: Path) -> None:
    cells = [["CCO", "[1, 2, 3]", 6, "train"], ["CO", "[1, 2]", 3.5, "train"]]
    path = write(tmp_path / "t.csv", cells, ["smiles", "q", "total", "split"])
    columns = FeatureColumns(("temperature", "total"), blanks=True)
    asked = Regression("q", level="atom", sum_to="total")
    with pytest.raises(InputError, match="sum_to: expected charge, a number or one of --feature-columns, got 'total'"):
        load_training_table(DataSettings(str(path), task=asked, split_column="split", workers=0))
    known = DataSettings(str(path), task=asked, split_column="split", workers=0, features=FeatureColumns(("total",)))
    data = load_training_table(known)
    task = data.task.fitted(data.store)
    assert task.answers.notes()[0].endswith("sum to total; those of the training rows miss it by 0.25 on average")
    model, read = network(task, further=columns.width), Featuriser()
    spec = {"name": "standard", "arguments": ARGUMENTS | sizes(columns.width) | {"out_channels": 2, "per": "atom"}}
    header = ModelFileHeader(task.reading(columns), read, spec, features=columns)
    Predictor([model], header).save(tmp_path / "m.gtx")
    given = pd.DataFrame({"smiles": ["CCO", "CC"], "temperature": [1, 2], "total": [4.5, None]})
    found = gtx.load(tmp_path / "m.gtx", "cpu").predict(given)
    assert sum(json.loads(found.q_pred[0])) == pytest.approx(4.5, abs=1e-7)
    assert found.warning[1].endswith("sum to no total: 'total' is blank")
