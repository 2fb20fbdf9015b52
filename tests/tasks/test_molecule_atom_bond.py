"""Targets of molecules, atoms and bonds in one model: each task learns, and none disturbs another."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from rdkit import Chem
from torch import Tensor

import gtx
from gtx.base.errors import InputError
from gtx.models import standard
from gtx.molecules import Featuriser
from gtx.tasks import BinaryClassification, InferredTask, Regression, TaskList
from gtx.tasks.several import join_scores, store_of
from gtx.training import MoleculeDataModule, TrainSettings
from gtx.training_data import DataSettings, load_training_table
from gtx.workflow import train_model
from tests.tables import TINY, molecules, write

pytestmark = pytest.mark.usefixtures("written_pictures")

TASK = TaskList(tasks=(Regression("degree", level="atom"), Regression("hetero"), Regression("order", level="bond")))
COLUMNS = ["smiles", "hetero", "degree", "order"]


def cells(smiles: str) -> list:
    mol = Chem.MolFromSmiles(smiles)
    return [
        sum(atom.GetAtomicNum() != 6 for atom in mol.GetAtoms()),
        json.dumps([atom.GetDegree() for atom in mol.GetAtoms()]),
        json.dumps([bond.GetBondTypeAsDouble() for bond in mol.GetBonds()]),
    ]


def table(path: Path, rows: int = 120) -> DataSettings:
    """Every third molecule lacks its own target, every fourth its atoms', every fifth its bonds'."""
    made = [[smiles, *cells(smiles)] for smiles in molecules(rows).smiles]
    for column, every in ((1, 3), (2, 4), (3, 5)):
        for row in made[1::every]:
            row[column] = ""
    return DataSettings(str(write(path, made, COLUMNS)), task=TASK, workers=0)


@pytest.mark.slow
def test_one_model_finds_three_rules(tmp_path: Path) -> None:
    settings = TrainSettings(**TINY | {"epochs": 15, "lr": 1e-2, "batch_molecules": 8})
    outcome = train_model(table(tmp_path / "t.csv"), settings, tmp_path / "run")
    found = outcome.metrics["test"]["per_target"]
    assert list(found) == ["hetero", "degree", "order"] and all(scores["r2"] > 0.8 for scores in found.values())
    assert outcome.metrics["test"]["rmse"] == pytest.approx(np.mean([scores["rmse"] for scores in found.values()]))
    baselines = outcome.metrics["baseline"]
    assert baselines["ridge"]["test"]["per_target"]["degree"]["rmse"] is None
    assert baselines["alike"]["test"]["per_target"]["hetero"]["rmse"] is None
    pages = {page: (tmp_path / "run" / page).read_text() for page in ("report.html", "report-atoms.html")}
    assert "degree" in pages["report-atoms.html"] and "share of atoms" in pages["report-atoms.html"]
    assert all("report-atoms.html" in text for text in (pages["report.html"], " ".join(outcome.notes)))
    model = gtx.load(tmp_path / "run" / "model.gtx", "cpu")
    answer = model.predict(["CCO", "c1ccccc1N"])
    assert [len(json.loads(text)) for text in answer.degree_pred] == [3, 7]
    assert [len(json.loads(text)) for text in answer.order_pred] == [2, 7]
    scored = model.predict_table(tmp_path / "t.csv", tmp_path / "p.csv").metrics
    assert list(scored["per_target"]) == ["hetero", "degree", "order"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> MoleculeDataModule:
    dataset = load_training_table(table(tmp_path_factory.mktemp("data") / "t.csv", 60))
    store = dataset.task.labelled(dataset.store)
    return MoleculeDataModule(dataset.task.fitted(store), store, store)


@pytest.fixture(scope="module")
def model() -> standard:
    torch.manual_seed(0)
    read = Featuriser(descriptors=False)
    sizes = {"atom_sizes": read.atom_sizes, "bond_sizes": read.bond_sizes, "also": {"atom": 1, "bond": 1}}
    return standard(1, **sizes, **TINY["model_arguments"]).double().eval()


def losses(task: TaskList, model: standard, examples: object) -> list[Tensor]:
    """Losses of the tasks, each as if it were alone."""
    batch = examples.batch()
    outputs = task.objective.forward(model, batch)
    return [each.objective.mean_loss(own, batch) for each, own in zip(task.tasks, outputs, strict=True)]


def test_the_loss_is_the_sum_of_the_losses_of_the_tasks(data: MoleculeDataModule, model: standard) -> None:
    task, batch = data.task, data.examples["train"].batch()
    wanted = sum(losses(task, model, data.examples["train"]))
    torch.testing.assert_close(task.objective.mean_loss(task.objective.forward(model, batch), batch), wanted)


def test_batches_of_an_epoch_give_every_atom_and_bond_the_same_say(data: MoleculeDataModule, model: standard) -> None:
    """The mean over steps is the loss of all molecules, though some batches have more bonds, and some more atoms."""
    tasks = tuple(each for each in data.task.tasks if each.level != "molecule")
    task = TaskList(tasks=tasks).fitted(data.val)
    examples, names = data.examples["train"], [each.level for each in tasks]

    def said(batch: object) -> list[Tensor]:
        return [model(batch)[1:][names.index(each.level)] for each in task.tasks]

    numbers = torch.arange(len(examples)).split(7)
    usual = task.objective.share(examples) / len(numbers)
    batches = [examples.batch(index) for index in numbers]
    steps = [task.objective.mean_loss(said(batch), batch) * (task.objective.share(batch) / usual) for batch in batches]
    whole = task.objective.mean_loss(said(examples.batch()), examples.batch())
    torch.testing.assert_close(sum(steps) / len(steps), whole)


def test_a_molecule_teaches_only_what_is_known_of_it(data: MoleculeDataModule, model: standard) -> None:
    examples = data.examples["train"]
    batch = examples.batch(examples.y[:, 0].isnan().nonzero().flatten())
    model.zero_grad()
    data.task.objective.mean_loss(data.task.objective.forward(model, batch), batch).backward()
    of_heads = {"molecule": model.head, "atom": model.also["atom"], "bond": model.also["bond"]}
    sizes = {name: sum(float(p.grad.abs().sum()) for p in head.parameters()) for name, head in of_heads.items()}
    assert sizes["molecule"] == 0 and sizes["atom"] > 0 and sizes["bond"] > 0


def test_the_score_of_an_epoch_is_the_mean_over_targets(data: MoleculeDataModule, model: standard) -> None:
    task, batch = data.task, data.examples["val"].batch()
    with torch.no_grad():
        output = task.objective.forward(model, batch)
    logged = task.objective.validation.scorer(data.val)(task.objective.validation.outputs(output, batch))
    alone = [
        each.objective.validation.scorer(store_of(each, data.val))(each.objective.validation.outputs(own, batch))
        for each, own in zip(task.tasks, output, strict=True)
    ]
    assert logged["val_score"] == pytest.approx(np.mean([each["val_score"] for each in alone]))
    assert logged["val_loss"] == pytest.approx(sum(each["val_loss"] for each in alone))


def test_means_are_over_the_targets_that_have_a_score() -> None:
    one = {"rmse": 1.0, "per_target": {"a": {"rmse": 1.0, "bounds": 3, "bounds_kept": 0.5}}}
    other = {"rmse": 2.0, "accuracy": 0.5, "per_target": {"b": {"rmse": 2.0}, "c": {"accuracy": 0.5}}}
    found = join_scores([one, other], ["rmse", "accuracy"])
    assert (found["rmse"], found["accuracy"], list(found["per_target"])) == (1.5, 0.5, ["a", "b", "c"])
    assert "bounds" not in found


ATOMS = Regression("a", level="atom")


@pytest.mark.parametrize(
    ("tasks", "words"),
    [
        ((Regression("y"),), "together are two or three"),
        (
            (Regression("a", level="atom"), Regression("b", level="atom")),
            "one of molecules, one of atoms and one of bonds: got atoms, atoms",
        ),
        (
            (Regression("a", level="atom"), InferredTask("b", level="atom")),
            "one of atoms and one of bonds: got atoms, atom-classes",
        ),
        (
            (BinaryClassification("y"), Regression("a", level="atom")),
            "together are regression, atoms, .*; got classification",
        ),
        ((Regression("y"), Regression("y", level="atom")), "'y' is named twice"),
        ((Regression("y", uncertainty="similarity"), Regression("a", level="atom")), "similarity does not go together"),
    ],
)
def test_what_does_not_go_together_is_refused(tasks: tuple, words: str) -> None:
    with pytest.raises(InputError, match=words):
        TaskList(tasks=tasks)
