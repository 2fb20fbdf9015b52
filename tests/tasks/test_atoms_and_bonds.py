"""Targets of atoms and bonds, alone and with those of molecules: a rule is found, sums are kept, the order is that of
the text, blanks have no say, and no task disturbs another.
"""

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
from gtx.cli.printing import score_table
from gtx.data import FeatureColumns, MoleculeStore, featurise
from gtx.data.batches import ConstantShapeStore
from gtx.models import build_model, standard
from gtx.molecules import Featuriser
from gtx.prediction import ModelFileHeader, Predictor
from gtx.tasks import BinaryClassification, InferredTask, MulticlassClassification, NumericTask, Regression, TaskList
from gtx.tasks.combined import join_scores, store_of
from gtx.training import TrainSettings
from gtx.training.module import TRANSFER_MATCHING
from gtx.training_data import DataSettings
from gtx.workflow import train_model
from gtx.workflow.baselines import means_of_alike
from gtx.workflow.fine_tuning import PretrainedModel
from tests.molecules_for_tests import CODE_SIZES
from tests.tables import TINY, load, molecules, write

pytestmark = pytest.mark.usefixtures("written_pictures")

SMILES = ["CCO", "C", "C[NH3+]", "c1ccccc1C(=O)[O-]", "CC#N"]
CHARGES = [0, 0, 1, -1, 0]
LEARNING = TrainSettings(
    **TINY
    | {"epochs": 15, "lr": 1e-2, "batch_molecules": 8, "model_arguments": TINY["model_arguments"] | {"dropout": 0.0}}
    | {"kernel_parts": ["substructures", "descriptors"]}
)


def test_those_alike_are_of_training_alone() -> None:
    codes = np.array([[6, 1], [6, 1], [6, 2], [7, 1], [6, 1], [6, 3], [8, 1]])
    y = np.array([[1.0], [3.0], [8.0], [0.0], [np.nan], [100.0], [100.0]])
    found = means_of_alike(codes, y, np.arange(7) < 4)
    assert found[:, 0].tolist() == [2, 2, 8, 0, 2, 4, 3]  # the mean of its codes, else of its element, else of all


# --- A model of molecules, atoms and bonds: a number, and classes of atoms and bonds.


def near_oxygen(atom: Chem.Atom) -> str:
    return "yes" if any(other.GetAtomicNum() == 8 for other in atom.GetNeighbors()) else "no"


def cells(smiles: str) -> list:
    """What follows from a molecule: a number, a class that the atom's own codes do not tell, and one that they do."""
    mol = Chem.MolFromSmiles(smiles)
    near = [near_oxygen(atom) for atom in mol.GetAtoms()]
    orders = [str(bond.GetBondType()).lower() for bond in mol.GetBonds()]
    return [sum(atom.GetAtomicNum() != 6 for atom in mol.GetAtoms()), json.dumps(near), str(orders)]


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """A joint model; every fourth molecule lacks the classes of its atoms."""
    folder = tmp_path_factory.mktemp("classes")
    rows = [[smiles, *cells(smiles)] for smiles in molecules(120).smiles]
    for row in rows[1::4]:
        row[2] = ""
    task = TaskList(tasks=(Regression("hetero"), InferredTask("near", "atom"), InferredTask("order", "bond")))
    path = write(folder / "t.csv", rows, ["smiles", "hetero", "near", "order"])
    outcome = train_model(DataSettings(str(path), task=task, workers=0), LEARNING, folder / "run")
    found, baselines = outcome.metrics["test"]["per_target"], outcome.metrics["baseline"]
    alike = baselines["alike"]["test"]["per_target"]
    assert list(found) == ["hetero", "near", "order"] and found["hetero"]["r2"] > 0.8
    assert found["near"]["roc_auc"] > 0.9 > alike["near"]["roc_auc"] + 0.1  # not of the atom alone
    assert found["order"]["accuracy"] > 0.97 and alike["order"]["accuracy"] > 0.97
    assert baselines["ridge"]["test"]["per_target"]["near"]["accuracy"] is None is alike["hetero"]["rmse"]
    assert set(found["near"]) == {"roc_auc", "pr_auc", "accuracy"}
    assert set(found["order"]) == {"roc_auc", "accuracy", "f1", "mcc"}
    of_classes = [found["near"]["accuracy"], found["order"]["accuracy"]]
    assert outcome.metrics["test"]["accuracy"] == pytest.approx(np.mean(of_classes))
    assert "near: near_pred is the probability of the positive class, 'yes'; the other class is 'no'" in outcome.notes
    assert "order: classes 'aromatic', 'double', 'single', 'triple'" in outcome.notes
    score_table(outcome.metrics, outcome.task.metrics)  # though targets have unlike scores
    assert "report-atom-classes.html" in " ".join(outcome.notes)
    return folder / "run"


@pytest.mark.slow
def test_answers_are_lists_of_probabilities_and_of_classes(run: Path) -> None:
    answer = gtx.load(run / "model.gtx", "cpu").predict(["CC=O", "C", "CC#N"])
    assert json.loads(answer.near_class[0]) == ["no", "yes", "no"] and json.loads(answer.order_pred[1]) == []
    assert json.loads(answer.order_pred[0]) == ["single", "double"]
    p = np.array([json.loads(answer[f"order_{name}"][2]) for name in ("aromatic", "double", "single", "triple")])
    np.testing.assert_allclose(p.sum(0), 1, atol=1e-7)
    assert p.argmax(0).tolist() == [2, 3]


@pytest.mark.slow
def test_the_report_of_classes_has_their_pictures(run: Path) -> None:
    atoms, bonds = ((run / f"report-{part}-classes.html").read_text() for part in ("atom", "bond"))
    for words in ("ROC curves of near", "Confusion of near", "Atoms by measured class", "mean probability of the meas"):
        assert words in atoms
    assert "report-atom-classes.html" in (run / "report.html").read_text()
    assert "Confusion of order" in bonds and "ROC curves" not in bonds and "Bonds by measured class" in bonds
    assert "The loss is the cross-entropy, in nats" in atoms and "could not be drawn" not in atoms + bonds


# --- Rows: bad lists are errors.


NONE = [np.nan] * 3
EACH = "expected one for each of the molecule's"
ATOMS = ["[1, 2, 3]", "[1, 2]", "", "[null, 5, null]", "[1, 2, x]", "[1, 2, 3, 4]"]
LABELS = ["[0, 1, 0]", "[0, 1]", "", "[null, 1, null]", '[0, "1", [1]]', "['0, 1, 0]", "0 1 1"]


@pytest.mark.parametrize(
    ("task", "cells", "y", "errors"),
    [
        (
            Regression("q", level="atom"),
            ATOMS,
            [[1, 2, 3], NONE, [np.nan, 5, np.nan]],
            {2: f'value "[1, 2]": has 2 numbers; {EACH} 3 atoms', 5: "item 3, 'x', is neither a finite number nor null"}
            | {6: f"{EACH} 3 atoms; --hydrogens makes atoms of hydrogens too"},
        ),
        (Regression("q", level="bond"), ["[1, 2]", "[1]"], [[1, 1, 2, 2]], {2: f"has 1 number; {EACH} 2 bonds"}),
        (
            InferredTask("q", level="atom"),
            LABELS,
            [[0, 1, 0], NONE, [np.nan, 1, np.nan], [0, 1, 1]],
            {2: f"has 2 classes; {EACH} 3 atoms", 5: "item 3 is neither a word nor a number nor null"}
            | {6: "item 1, '0, has a quote on one side"},
        ),
    ],
    ids=["numbers of atoms", "numbers of bonds", "classes of atoms"],
)
def test_a_list_that_is_wrong_is_an_error_of_its_row(task, cells, y, errors, tmp_path) -> None:
    rows = [["CCO", cell, "train"] for cell in cells]
    data = load(tmp_path / "t.csv", rows, ["smiles", "q", "split"], task=task, split_column="split")
    found = data.files[0].row_log.errors
    assert found.keys() == errors.keys() and all(found[row].endswith(words) for row, words in errors.items())
    parts = data.store.bond_y if data.store.atom_y is None else data.store.atom_y
    np.testing.assert_array_equal(parts.reshape(len(y), -1), y)
    assert len(data.split["train"]) == len(y) - y.count(NONE)  # without any value, a row is only predicted


def test_a_class_of_an_atom_that_training_lacks_is_an_error_of_its_row(tmp_path) -> None:
    two = str(write(tmp_path / "v.csv", [["CCO", "[0, 1, 0]"], ["CCO", "[0, 2, 0]"]], ["smiles", "site"]))
    rows, task = [["CCO", "[0, 1, 0]"]] * 3, InferredTask("site", level="atom")
    data = load(tmp_path / "t.csv", rows, ["smiles", "site"], task=task, val=two, test=two)
    (other,) = data.files[1].row_log.errors.values()
    assert other.endswith("item 2, '2', is none of the classes '0', '1' of the training table, nor null")
    assert type(data.task) is BinaryClassification and data.task.columns.labels(0) == ("0", "1")


def test_columns_that_are_no_classes_are_said(tmp_path) -> None:
    cells = [json.dumps([round(x / 7, 3) for x in range(3 * i, 3 * i + 3)]) for i in range(40)]
    rows = [["CCO", cell, "", "[1, 1, 1]", "a b c"] for cell in cells]
    columns, positive = ["smiles", "q", "no", "one", "text"], {"positive": "a"}
    for kind, name, options, reason in (
        (InferredTask, "q", {}, "120 different values, .* at most 100 classes; for numbers there is --task atoms"),
        (InferredTask, "no", {}, "'no' holds no list of classes in any of the 40 rows; one class for each atom was"),
        (InferredTask, "one", {}, "'one' that are not blank hold '1' and none 0; atom-classes needs two or more"),
        (InferredTask, "text", positive, "positive: expected targets of two classes, got 'a', 'b', 'c'"),
        (Regression, "text", {}, "'text' holds no list of numbers in any of the 40 rows; one number for each atom was"),
    ):
        with pytest.raises(InputError, match=reason):
            load(tmp_path / "t.csv", rows, columns, task=kind(name, level="atom", **options))


# --- The loss and the outputs, alone.

NUMBERS = {
    "atoms with a sum": Regression(["a", "b"], level="atom", sum_to="charge"),
    "atoms": Regression(["a", "b"], level="atom"),
    "bonds": Regression(["a", "b"], level="bond"),
}
THREE = ("a", "b", "c")
CLASSES = {
    "two classes": BinaryClassification(["a", "b"], level="atom"),
    "several": MulticlassClassification(["a", "b"], level="atom", classes=(THREE, THREE[:2])),
    "of bonds": MulticlassClassification(["a", "b"], level="bond", classes=(THREE, THREE[:2])),
}


def store(task: NumericTask) -> MoleculeStore:
    """Molecules with two targets of their parts, some of them blank."""
    made, level = featurise(Featuriser(), SMILES, workers=0).store, task.objective.level
    rows, random = int(level.ptr(made)[-1]) // level.rows_each, torch.Generator().manual_seed(0)
    y = torch.randn(rows, 2, generator=random).double()
    if task.discrete:
        y = torch.stack([torch.randint(len(task.columns.labels(t)), (rows,), generator=random) for t in (0, 1)], 1)
    y = y.double().repeat_interleave(level.rows_each, 0)
    y[::3, 0] = torch.nan
    y[: 3 * level.rows_each] = torch.nan
    return level.with_targets(made, y)


ARGUMENTS = {"channels": 8, "layers": 1, "heads": 2, "dropout": 0.0}


def sizes(further: int = 0) -> dict[str, object]:
    return CODE_SIZES | {"num_descriptors": Featuriser().num_descriptors + further}


def network(task: NumericTask, further: int = 0, seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    made = standard(task.objective.out_channels, **sizes(further), **ARGUMENTS, per=task.level)
    molecules = store(task)
    made.observe(molecules.with_features(torch.randn(len(molecules), further)))
    return made.eval()


def predictor(task: NumericTask) -> Predictor:
    """A model as it is made, of targets of atoms."""
    spec = {"name": "standard", "arguments": ARGUMENTS | sizes() | {"out_channels": task.objective.out_channels}}
    spec["arguments"]["per"] = task.level
    return Predictor([network(task)], ModelFileHeader(task, Featuriser(), spec), "cpu")


def test_atoms_are_in_the_order_of_the_text() -> None:
    model = predictor(NUMBERS["atoms with a sum"].fit(store(NUMBERS["atoms with a sum"])))
    mol = Chem.MolFromSmiles("CC(=O)NCC#N")
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(mol.GetNumAtoms()).tolist()
        other = Chem.RenumberAtoms(mol, order)
        text = Chem.MolToSmiles(other, canonical=False)
        written = json.loads(other.GetProp("_smilesAtomOutputOrder"))
        found, expected = (np.array(json.loads(values)) for values in model.predict([text, "CC(=O)NCC#N"]).a_pred)
        np.testing.assert_allclose(found, expected[order][written], atol=1e-5)
        assert np.ptp(expected) > 1e-3


def test_a_file_whose_parts_contradict_each_other_is_refused(tmp_path) -> None:
    model = predictor(NUMBERS["atoms"].fit(store(NUMBERS["atoms"])))
    arguments = {**model.header.model["arguments"], "per": "bond"}
    header = replace(model.header, model={"name": "standard", "arguments": arguments})
    Predictor(model.members, header).save(tmp_path / "m.gtx")
    with pytest.raises(InputError, match=r"model\.arguments\.per: expected 'atom', got 'bond'"):
        gtx.load(tmp_path / "m.gtx")


def test_a_model_of_atoms_is_trained_further_on_molecules_or_bonds() -> None:
    model = predictor(Regression("a", level="atom", sum_to="charge"))
    further = PretrainedModel(model.header, [], model.header.featuriser, "m.gtx", "")
    assert further.spec(Regression("y"))["arguments"]["per"] == "molecule"
    assert further.spec(Regression("b", level="bond"))["arguments"]["per"] == "bond"
    own = build_model(further.spec(Regression("y"))).state_dict()
    kept = TRANSFER_MATCHING.transferable(own, model.members[0].state_dict())
    assert {name for name in own if name.startswith("layers.")} <= set(kept) and "head.0.weight" not in kept
    rates = {"all": 0.1, "readout.substructures": 1}
    tuned = replace(further, header=replace(model.header, settings={"tuning": {"rates": rates}}))
    bonds, both = Regression("b", level="bond"), TaskList(tasks=(Regression("y"), Regression("b", level="bond")))
    assert tuned.tuned(TrainSettings(), bonds).rates == {"all": 0.1}  # it has no counts of substructures
    assert tuned.tuned(TrainSettings(), both).rates == rates | {"also": 1}  # its head is new
    assert further.spec(both)["arguments"]["also"] == {"bond": 1}
    arguments = model.header.model["arguments"] | {"out_channels": 1}  # without a sum, no weights
    assert further.spec(Regression("a", level="atom")) == model.header.model | {"arguments": arguments}


def collected(task: NumericTask, model: nn.Module, batch: object) -> tuple[Tensor, Tensor, float]:
    ours, output = task.objective, task.objective.forward(model, batch)
    return ours.mean_loss(output, batch), ours.validation_outputs(output, batch), float(ours.share(batch))


@pytest.mark.parametrize("name", ["atoms with a sum", "bonds"])
def test_batches_of_constant_shape_are_worth_the_same(name: str) -> None:
    task = NUMBERS[name].fit(store(NUMBERS[name]))
    model, examples = network(task).train(), task.objective.examples(store(task))
    cutter = ConstantShapeStore(examples)
    (index, *_) = cutter.sampler(5).batches()
    values = (~task.objective.level.targets(examples).isnan()).sum()
    assert task.objective.share(examples) == values
    batch, plain = cutter.batch(index), examples.batch(index[index >= 0])
    loss, outputs, share = collected(task, model, batch)
    plain_loss, plain_outputs, plain_share = collected(task, model, plain)
    torch.testing.assert_close(loss, plain_loss, rtol=1e-5, atol=1e-6)
    level, count = task.objective.level, task.objective.level.count(examples)
    rows, plain_rows = level.rows(examples, batch), level.rows(examples, plain)
    assert torch.equal(level.targets(examples)[plain_rows].float().nan_to_num(), level.targets(plain).nan_to_num())
    assert torch.equal(rows[rows >= 0], plain_rows) and count == len(level.targets(examples)) > len(plain_rows)
    torch.testing.assert_close(outputs[rows >= 0], plain_outputs, rtol=1e-5, atol=1e-6)
    assert share == plain_share and model.constant_shapes


@pytest.mark.parametrize("task", [*NUMBERS.values(), *CLASSES.values()], ids=[*NUMBERS, *CLASSES])
def test_every_value_has_the_same_say_and_blanks_have_none(task: NumericTask) -> None:
    """What the loss of a value is: `tests/tasks/test_losses.py`."""
    task = task.fit(store(task))
    batch = task.objective.examples(store(task)).batch()
    y = task.objective.level.targets(batch)
    width = task.objective.out_channels if task.discrete else y.shape[1]
    output = torch.randn(len(y), width, requires_grad=True)
    loss = task.objective.mean_loss(output, batch)
    loss.backward()
    each = task.objective.elementwise(output.detach(), y.nan_to_num())
    torch.testing.assert_close(loss.detach(), each[~y.isnan()].mean(), check_dtype=False)
    blank = y.isnan().all(1)
    assert (output.grad[blank] == 0).all() and (output.grad[~blank] != 0).any(1).all() and blank.any()
    scores = task.objective.validation_scorer(store(task))(task.objective.validation_outputs(output.detach(), batch))
    assert scores["val_loss"] == pytest.approx(float(loss.detach()), rel=1e-6)
    unscaled = task.objective.unscale(output.detach()) if task.discrete else task.scaler.unscale(output.detach())
    found = task.objective.evaluate(task.objective.level.targets(store(task)).numpy(), unscaled.numpy())
    for name in task.metrics:
        assert scores[f"val_{name}"] == pytest.approx(found[name], rel=1e-5)


@pytest.mark.parametrize("name", ["two classes", "of bonds"])
def test_members_of_an_ensemble_are_averaged(name: str) -> None:
    task = CLASSES[name]
    molecules = store(task)
    batch = molecules.batch()

    def answers(*seeds: int) -> list[np.ndarray]:
        with torch.no_grad():
            outputs = task.objective.predict([network(task, seed=seed) for seed in seeds], batch)
            found = task.answers.decode(outputs, molecules)
        assert len(found.columns()) == len(task.answers.output_columns([], members=len(seeds)))
        return found.mean

    for both, one, other in zip(answers(0, 1), answers(0), answers(1), strict=True):
        np.testing.assert_allclose(both, (one + other) / 2)
    assert "a_std" in task.answers.output_columns([], members=2) and "a_std" not in task.answers.output_columns([])


def test_a_row_of_weight_two_counts_as_two() -> None:
    task = NUMBERS["atoms"].fit(store(NUMBERS["atoms"]))
    molecules = replace(task.objective.examples(store(task)), weights=torch.tensor([1.0, 1.0, 2.0, 1.0, 0.0]).double())
    weighed, twice = molecules.batch(), replace(molecules, weights=None).batch([0, 1, 2, 2, 3])
    model = network(task)
    share = task.objective.share(twice)
    assert task.objective.share(weighed) == share == task.objective.share(molecules)
    of = [task.objective.mean_loss(task.objective.forward(model, batch), batch) for batch in (weighed, twice)]
    torch.testing.assert_close(*of)
    assert len(task.drop_blanks(molecules)) == 3  # the first has no value, the last no weight


def test_scaled_outputs_of_a_molecule_sum_to_its_total() -> None:
    for total, equal in ("charge", None), (2.0, None), (2.0, 0.0):  # a value that all atoms have
        task = Regression(["a", "b"], level="atom", sum_to=total)
        molecules = store(task)
        if equal is not None:
            molecules = replace(molecules, atom_y=torch.full_like(molecules.atom_y, equal))
        task = task.fit(molecules)
        with torch.no_grad():
            outputs = task.objective.predict([network(task)], store(task).batch())
        lists = task.answers.decode(outputs, store(task)).mean
        for values, charge in zip(lists, CHARGES, strict=True):
            assert values.sum(0) == pytest.approx([charge if total == "charge" else total] * 2, abs=1e-12)
    charges = Regression(["a", "b"], level="atom", sum_to="charge")
    with pytest.raises(InputError, match=r"expected molecules with formal charges, got atoms with \['element'\]"):
        charges.fit(replace(store(charges), atom_columns=("element",)))


def test_a_column_beside_the_molecule_may_be_the_total(tmp_path) -> None:
    cells = [["CCO", "[1, 2, 3]", 6, "train"], ["CO", "[1, 2]", 3.5, "train"]]
    file = (tmp_path / "t.csv", cells, ["smiles", "q", "total", "split"])
    columns = FeatureColumns(("temperature", "total"), blanks=True)
    how = {"task": Regression("q", level="atom", sum_to="total"), "split_column": "split"}
    with pytest.raises(InputError, match="sum_to: expected charge, a number or one of `feature_columns`, got 'total'"):
        load(*file, **how)
    data = load(*file, **how, features=FeatureColumns(("total",)))
    task = data.task.fit(data.store)
    assert task.answers.notes()[0].endswith("sum to total; those of the training rows miss it by 0.25 on average")
    model, read = network(task, further=columns.width), Featuriser()
    spec = {"name": "standard", "arguments": ARGUMENTS | sizes(columns.width) | {"out_channels": 2, "per": "atom"}}
    header = ModelFileHeader(task.with_features(columns), read, spec, features=columns)
    Predictor([model], header).save(tmp_path / "m.gtx")
    given = pd.DataFrame({"smiles": ["CCO", "CC"], "temperature": [1, 2], "total": [4.5, None]})
    found = gtx.load(tmp_path / "m.gtx", "cpu").predict(given)
    assert sum(json.loads(found.q_pred[0])) == pytest.approx(4.5, abs=1e-7)
    assert found.warning[1].endswith("sum to no total: 'total' is blank")


# --- Several tasks: no task disturbs another.

Y, OF_ATOMS, OF_BONDS = Regression("y"), Regression("a", level="atom"), Regression("b", level="bond")
TOGETHER = TaskList(tasks=(OF_ATOMS, Y, OF_BONDS))


@pytest.fixture(scope="module")
def several() -> tuple[TaskList, MoleculeStore, MoleculeStore, standard]:
    """Task, molecules and examples of which each lacks something, and a model."""
    torch.manual_seed(0)
    made = featurise(Featuriser(), SMILES * 4, workers=0).store
    y, atom_y, bond_y = (torch.randn(n, 1).double() for n in (20, len(made.atoms), made.bonds.shape[1]))
    y[::3], atom_y[::4] = torch.nan, torch.nan
    made = replace(made, y=y.expand(-1, 3), atom_y=atom_y, bond_y=bond_y)
    model = standard(1, **sizes(), also={"atom": 1, "bond": 1}, **TINY["model_arguments"]).double().eval()
    task = TOGETHER.fit(made)
    return task, made, task.objective.examples(made), model


def test_batches_of_an_epoch_give_every_atom_and_bond_the_same_say(several: tuple) -> None:
    """The mean over steps is the loss of all molecules, though some batches have more bonds, and some more atoms."""
    together, molecules, examples, model = several
    task = TaskList(tasks=tuple(each for each in together.tasks if each.level != "molecule")).fit(molecules)

    def mean_loss(batch: object) -> Tensor:
        return task.objective.mean_loss(model(batch)[1:], batch)

    batches = [examples.batch(index) for index in torch.arange(len(examples)).split(7)]
    usual = task.objective.share(examples) / len(batches)
    steps = [mean_loss(batch) * (task.objective.share(batch) / usual) for batch in batches]
    torch.testing.assert_close(sum(steps) / len(steps), mean_loss(examples.batch()))


def test_a_molecule_teaches_only_what_is_known_of_it(several: tuple) -> None:
    task, _, examples, model = several
    batch = examples.batch(examples.y[:, 0].isnan().nonzero().flatten())
    model.zero_grad()
    task.objective.mean_loss(task.objective.forward(model, batch), batch).backward()
    heads = {"molecule": model.head, "atom": model.also["atom"], "bond": model.also["bond"]}
    sizes = {name: sum(float(p.grad.abs().sum()) for p in head.parameters()) for name, head in heads.items()}
    assert sizes["molecule"] == 0 and sizes["atom"] > 0 and sizes["bond"] > 0


def test_the_loss_is_the_sum_over_tasks_and_the_score_of_an_epoch_the_mean_over_targets(several: tuple) -> None:
    task, molecules, examples, model = several
    batch = examples.batch()
    with torch.no_grad():
        output = task.objective.forward(model, batch)
    logged = task.objective.validation_scorer(molecules)(*task.objective.validation_outputs(output, batch))
    alone, losses = [], []
    for each, own in zip(task.tasks, output, strict=True):
        scorer = each.objective.validation_scorer(store_of(each, molecules))
        alone.append(scorer(each.objective.validation_outputs(own, batch)))
        losses.append(each.objective.mean_loss(own, batch))
    assert logged["val_score"] == pytest.approx(np.mean([each["val_score"] for each in alone]))
    assert logged["val_loss"] == pytest.approx(sum(each["val_loss"] for each in alone))
    torch.testing.assert_close(task.objective.mean_loss(output, batch), sum(losses))


def test_scales_are_taken_over_level_by_level(several: tuple) -> None:
    task, molecules, *_ = several
    other = TOGETHER.fit(replace(molecules, y=2 * molecules.y, atom_y=3 * molecules.atom_y))
    joint = task, other, task.take_over(other), task.take_over(other.tasks[1])
    own, theirs, both, of_atoms = ([each.scaler.sd.item() for each in one.tasks] for one in joint)
    assert both == theirs != own and of_atoms == [own[0], theirs[1], own[2]]


def test_means_are_over_the_targets_that_have_a_score() -> None:
    one = {"rmse": 1.0, "per_target": {"a": {"rmse": 1.0, "bounds": 3, "bounds_kept": 0.5}}}
    other = {"rmse": 2.0, "accuracy": 0.5, "per_target": {"b": {"rmse": 2.0}, "c": {"accuracy": 0.5}}}
    found = join_scores([one, other], ["rmse", "accuracy"])
    assert (found["rmse"], found["accuracy"], list(found["per_target"])) == (1.5, 0.5, ["a", "b", "c"])
    assert "bounds" not in found


def test_what_does_not_go_together_is_refused() -> None:
    for tasks, words in (
        ((Y,), "together are two or three"),
        ((OF_ATOMS, Regression("b", level="atom")), "of molecules, one of atoms and one of bonds: got atoms, atoms"),
        ((OF_ATOMS, InferredTask("b", level="atom")), "one of atoms and one of bonds: got atoms, atom-classes"),
        ((BinaryClassification("y"), OF_ATOMS), "together are regression, atoms, .*; got classification"),
        ((Y, Regression("y", level="atom")), "'y' is named twice"),
        ((Regression("y", uncertainty="similarity"), OF_ATOMS), "similarity does not go together"),
    ):
        with pytest.raises(InputError, match=words):
            TaskList(tasks=tasks)
