"""Classes of atoms and bonds: a rule is found, answers are lists in the order of the text, bad lists are errors."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import torch.nn.functional as F
from rdkit import Chem
from torch import nn

import gtx
from gtx.base.errors import InputError
from gtx.cli.printing import score_table
from gtx.data import MoleculeStore, featurise
from gtx.models import standard
from gtx.molecules import Featuriser
from gtx.prediction import Predictor
from gtx.tasks import BinaryClassification, InferredTask, MulticlassClassification, NumericTask, Regression, TaskList
from gtx.training import TrainSettings
from gtx.training_data import DataSettings, load_training_table
from gtx.workflow import train_model
from tests.tables import TINY, molecules, write

pytestmark = pytest.mark.usefixtures("written_pictures")

COLUMNS = ["smiles", "hetero", "near", "order"]


def near_oxygen(atom: Chem.Atom) -> str:
    return "yes" if any(other.GetAtomicNum() == 8 for other in atom.GetNeighbors()) else "no"


def cells(smiles: str) -> list:
    """What follows from a molecule: a number, a class that the atom's own codes do not tell, and one that they do."""
    mol = Chem.MolFromSmiles(smiles)
    near = [near_oxygen(atom) for atom in mol.GetAtoms()]
    orders = [str(bond.GetBondType()).lower() for bond in mol.GetBonds()]
    return [sum(atom.GetAtomicNum() != 6 for atom in mol.GetAtoms()), json.dumps(near), str(orders)]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A joint model; every fourth molecule lacks the classes of its atoms."""
    folder = tmp_path_factory.mktemp("classes")
    rows = [[smiles, *cells(smiles)] for smiles in molecules(120).smiles]
    for row in rows[1::4]:
        row[2] = ""
    task = TaskList(
        tasks=(Regression("hetero"), InferredTask("near", level="atom"), InferredTask("order", level="bond"))
    )
    arguments = TINY["model_arguments"] | {"dropout": 0.0}
    settings = TrainSettings(
        **TINY
        | {
            "kernel_parts": ["substructures", "descriptors"],
            "epochs": 12,
            "lr": 1e-2,
            "batch_molecules": 8,
            "model_arguments": arguments,
        }
    )
    outcome = train_model(
        DataSettings(str(write(folder / "t.csv", rows, COLUMNS)), task=task, workers=0), settings, folder / "run"
    )
    found, alike = outcome.metrics["test"]["per_target"], outcome.metrics["baseline"]["alike"]["test"]["per_target"]
    assert found["hetero"]["r2"] > 0.8
    assert found["near"]["roc_auc"] > 0.9 > alike["near"]["roc_auc"] + 0.1  # not of the atom alone
    assert found["order"]["accuracy"] > 0.97 and alike["order"]["accuracy"] > 0.97
    assert set(found["near"]) == {"roc_auc", "pr_auc", "accuracy"}
    assert set(found["order"]) == {"roc_auc", "accuracy", "f1", "mcc"}
    of_classes = [found["near"]["accuracy"], found["order"]["accuracy"]]
    assert outcome.metrics["test"]["accuracy"] == pytest.approx(np.mean(of_classes))
    assert "near: near_pred is the probability of the positive class, 'yes'; the other class is 'no'" in outcome.notes
    assert "order: classes 'aromatic', 'double', 'single', 'triple'" in outcome.notes
    score_table(outcome.metrics, outcome.task.metrics)  # though targets have unlike scores
    return folder / "run"


@pytest.fixture(scope="module")
def model(run: Path) -> Predictor:
    return gtx.load(run / "model.gtx", "cpu")


@pytest.mark.slow
def test_answers_are_lists_of_probabilities_and_of_classes(model: Predictor) -> None:
    answer = model.predict(["CC=O", "C", "CC#N"])
    assert json.loads(answer.near_class[0]) == ["no", "yes", "no"] and json.loads(answer.order_pred[1]) == []
    assert json.loads(answer.order_pred[0]) == ["single", "double"]
    p = np.array([json.loads(answer[f"order_{name}"][2]) for name in ("aromatic", "double", "single", "triple")])
    np.testing.assert_allclose(p.sum(0), 1, atol=1e-7)
    assert p.argmax(0).tolist() == [2, 3]


@pytest.mark.slow
def test_a_table_with_lists_is_scored(model: Predictor, tmp_path: Path) -> None:
    rows = [[smiles, *cells(smiles)] for smiles in molecules(8).smiles]
    rows += [["CCO", 1, '["no", "maybe", "no"]', ""], ["CCO", 1, '["no"]', ""]]
    outcome = model.predict_table(write(tmp_path / "t.csv", rows, COLUMNS), tmp_path / "p.csv")
    assert outcome.metrics["per_target"]["near"]["roc_auc"] > 0.9
    (note,) = outcome.notes
    assert note.startswith("near: scored on 8 of 10 rows; 1 has a label that the model does not know, first row 9: '")
    assert note.endswith("1 has a list of another length than one class for each atom, first row 10: '[\"no\"]'")


@pytest.mark.slow
def test_the_report_of_classes_has_their_pictures(run: Path) -> None:
    atoms, bonds = ((run / f"report-{part}-classes.html").read_text() for part in ("atom", "bond"))
    for words in (
        "ROC curves of near",
        "Confusion of near",
        "Atoms by measured class",
        "mean probability of the measured class",
    ):
        assert words in atoms
    assert "Confusion of order" in bonds and "ROC curves" not in bonds and "Bonds by measured class" in bonds
    assert "The loss is the cross-entropy, in nats" in atoms and "could not be drawn" not in atoms + bonds


# rows


def test_a_list_that_is_wrong_is_an_error_of_its_row(tmp_path: Path) -> None:
    cells = ["[0, 1, 0]", "[0, 1]", "", "[null, 1, null]", '[0, "1", [1]]', "['0, 1, 0]", "0 1 1"]
    one = write(tmp_path / "t.csv", [["CCO", cell] for cell in cells], ["smiles", "site"])
    two = write(tmp_path / "v.csv", [["CCO", "[0, 1, 0]"], ["CCO", "[0, 2, 0]"]], ["smiles", "site"])
    data = load_training_table(
        DataSettings(str(one), task=InferredTask("site", level="atom"), val=str(two), test=str(two), workers=0)
    )
    errors = data.files[0].row_log.errors
    assert sorted(errors) == [2, 5, 6]
    assert errors[2].endswith("has 2 classes; expected one for each of the molecule's 3 atoms")
    assert errors[5].endswith("item 3 is neither a word nor a number nor null")
    assert errors[6].endswith("item 1, '0, has a quote on one side")
    (other,) = data.files[1].row_log.errors.values()
    assert other.endswith("item 2, '2', is none of the classes '0', '1' of the training table, nor null")
    y = data.store.atom_y[:, 0].reshape(-1, 3)[:3]
    np.testing.assert_array_equal(y, [[0, 1, 0], [np.nan] * 3, [np.nan, 1, np.nan]])
    assert type(data.task) is BinaryClassification and data.task.columns.labels(0) == ("0", "1")


def test_list_columns_of_parquet_are_read(tmp_path: Path) -> None:
    lists = {
        "smiles": ["CCO", "CO"],
        "ring": [[True, False, None], [False, True]],
        "kind": [["a", "b", "c"], ["b", "a"]],
    }
    pd.DataFrame(lists | {"split": "train"}).to_parquet(tmp_path / "t.parquet")
    task = InferredTask(["ring", "kind"], level="atom")
    data = load_training_table(DataSettings(str(tmp_path / "t.parquet"), task=task, split_column="split", workers=0))
    assert data.task.classes == (("false", "true"), ("a", "b", "c")) and not data.files[0].row_log.errors
    np.testing.assert_array_equal(data.store.atom_y, [[1, 0], [0, 1], [np.nan, 2], [0, 1], [1, 0]])


def test_columns_that_are_no_classes_are_said(tmp_path: Path) -> None:
    cells = [json.dumps([round(x / 7, 3) for x in range(3 * i, 3 * i + 3)]) for i in range(40)]
    path = write(tmp_path / "t.csv", [["CCO", cell, "", "[1, 1, 1]"] for cell in cells], ["smiles", "q", "no", "one"])
    for name, reason in (
        ("q", "120 different values, .* atom-classes takes at most 100 classes; for numbers there is --task atoms"),
        ("no", "'no' holds no list of classes in any of the 40 rows; one class for each atom was expected"),
        ("one", "'one' holds only the class '1'; atom-classes needs two or more"),
    ):
        with pytest.raises(InputError, match=reason):
            load_training_table(DataSettings(str(path), task=InferredTask(name, level="atom")))


# the loss

SMILES = ["CCO", "C", "C[NH3+]", "c1ccccc1C(=O)[O-]", "CC#N"]
THREE = ("a", "b", "c")
NAMES = ["one", "other"]
TASKS = [
    BinaryClassification(NAMES, level="atom"),
    MulticlassClassification(NAMES, level="atom", classes=(THREE, THREE[:2])),
    MulticlassClassification(NAMES, level="bond", classes=(THREE, THREE[:2])),
]


def store(task: NumericTask) -> MoleculeStore:
    """Molecules with classes of their parts, some of them blank."""
    made = featurise(Featuriser(), SMILES, workers=0).store
    rows = int(task.objective.level.ptr(made)[-1]) // task.objective.level.rows_each
    random = torch.Generator().manual_seed(0)
    columns = [torch.randint(len(task.columns.labels(t)), (rows,), generator=random).double() for t in range(2)]
    y = torch.stack(columns, 1).repeat_interleave(task.objective.level.rows_each, 0)
    y[::3, 0] = torch.nan
    y[: 3 * task.objective.level.rows_each] = torch.nan
    return replace(made, **{task.objective.level.field: y})


def network(task: NumericTask, seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    read = Featuriser(descriptors=False)
    sizes = {"atom_sizes": read.atom_sizes, "bond_sizes": read.bond_sizes, "per": task.level}
    return standard(task.objective.out_channels, **sizes, channels=8, layers=1, heads=2, dropout=0.0).eval()


@pytest.mark.parametrize("task", TASKS, ids=["two classes", "several", "of bonds"])
def test_the_loss_is_the_cross_entropy_of_what_is_known(task: NumericTask) -> None:
    task = task.fitted(store(task))
    batch = task.objective.examples(store(task)).batch()
    y, output = (
        getattr(batch, task.objective.level.field),
        torch.randn(len(task.objective.level.targets(store(task))), task.objective.out_channels),
    )
    output.requires_grad_()
    loss = task.objective.mean_loss(output, batch)
    loss.backward()
    losses = []
    for t, place in enumerate(task.objective.places):
        own = output.detach()[:, place.columns]
        logits = torch.cat([torch.zeros_like(own), own], 1) if own.shape[1] == 1 else own
        losses.append(F.cross_entropy(logits, y[:, t].nan_to_num().long(), reduction="none")[~y[:, t].isnan()])
    torch.testing.assert_close(loss.detach(), torch.cat(losses).double().mean(), check_dtype=False)
    blank = y.isnan().all(1)
    assert (output.grad[blank] == 0).all() and (output.grad[~blank] != 0).any(1).all()
    scores = task.objective.validation.scorer(store(task))(task.objective.validation.outputs(output.detach(), batch))
    assert scores["val_loss"] == scores["val_score"] == pytest.approx(float(loss.detach()), rel=1e-6)
    found = task.objective.evaluate(y.numpy(), task.objective.unscaled(output.detach()).numpy())
    assert scores["val_accuracy"] == pytest.approx(found["accuracy"])


@pytest.mark.parametrize("task", TASKS, ids=["two classes", "several", "of bonds"])
def test_members_of_an_ensemble_are_averaged(task: NumericTask) -> None:
    molecules = store(task)
    batch = molecules.batch()

    def answers(*seeds: int) -> list[np.ndarray]:
        with torch.no_grad():
            found = task.answers.decode(
                task.objective.predict([network(task, seed) for seed in seeds], batch), molecules
            )
        assert len(found.columns()) == len(task.answers.output_columns([], members=len(seeds)))
        return found.mean

    for both, one, other in zip(answers(0, 1), answers(0), answers(1), strict=True):
        np.testing.assert_allclose(both, (one + other) / 2)
    assert "one_std" in task.answers.output_columns([], members=2) and "one_std" not in task.answers.output_columns([])
