"""The models that gtx is measured against: what they may see, and what they make of odd columns."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch_geometric.transforms import AddRandomWalkPE

from experiments.rivals import chemprop, classical, pyg
from experiments.runs import Run
from gtx.data import public_datasets
from gtx.tasks import BinaryClassification, Regression, Task
from tests.experiments.test_recipe import SETS, known, write_toy

pytestmark = pytest.mark.slow

SIMPLE = ["ridge-counts", "boosting-descriptors", "ridge-counts-whole", "forest-descriptors-whole"]


@pytest.fixture(scope="module")
def regression(tmp_path_factory) -> Run:
    folder = tmp_path_factory.mktemp("rivals")
    file = write_toy(folder / "toy.csv", 90)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(public_datasets.PUBLIC_DATASETS, "toy", known(file))
        run = Run(SETS["toy"], "mean", runs=folder)
        assert len(run.dataset.y) == 90
    return run


def with_targets(run: Run, y: np.ndarray, kind: type[Task]) -> Run:
    names = tuple(f"y{t}" for t in range(y.shape[1]))
    other = named(run, run.model)
    other.dataset = replace(run.dataset, task=kind(names), store=run.dataset.store.with_targets(y))
    other.data = replace(run.data, target_columns=names)
    return other


@pytest.fixture(scope="module")
def classes(regression: Run) -> Run:
    """Three tasks: one with blanks, one that training rows know one class of alone, one without a gap."""
    y = (regression.dataset.y > np.median(regression.dataset.y)).astype(float).repeat(3, 1)
    y[::7, 0] = np.nan
    y[regression.dataset.split["train"], 1] = 1.0
    return with_targets(regression, y, BinaryClassification)


def named(run: Run, model: str) -> Run:
    other = Run(run.public_set, model, runs=run.runs)
    other.data, other.dataset = run.data, run.dataset
    return other


def rmse(run: Run, prediction: np.ndarray, part: str) -> float:
    rows = run.dataset.split[part]
    return float(np.sqrt(((prediction - run.dataset.y)[rows] ** 2).mean()))


@pytest.mark.parametrize("model", SIMPLE)
def test_simple_models_learn_and_never_see_test_targets(regression: Run, model: str, monkeypatch) -> None:
    monkeypatch.setattr(classical, "TREES", 20)
    found, mean = (classical.fit_predict(named(regression, name))[0] for name in (model, "mean"))
    assert rmse(regression, found, "train") < 0.8 * rmse(regression, mean, "train")
    y = regression.dataset.y.copy()
    y[regression.dataset.split["test"]] += 100.0
    other = named(with_targets(regression, y, Regression), model)
    np.testing.assert_array_equal(classical.fit_predict(other)[0], found)
    if model.endswith("-whole"):  # it learns from validation rows too, once they have chosen
        split, before = regression.dataset.split, classical.fit_predict(named(regression, model[:-6]))[0]
        np.testing.assert_array_equal(found[split["val"]], before[split["val"]])
        assert not np.allclose(found[split["test"]], before[split["test"]])


@pytest.mark.parametrize("kind", pyg.BEST)
def test_a_network_keeps_its_best_epoch_and_ignores_blanks(classes: Run, kind: str, monkeypatch) -> None:
    data, how = classes.dataset, pyg.Configuration(2, 0.1, True, channels=16)
    molecules = data.store.batch(torch.arange(len(data.store))).to_data_list()
    molecules = list(map(AddRandomWalkPE(pyg.STEPS), molecules))
    featuriser = classes.data.featuriser
    u, _ = pyg.scaled(data.store.descriptors, data.split["train"])
    for number, molecule in enumerate(molecules):
        molecule.u = u[number : number + 1]
    train, val = ([molecules[i] for i in data.split[part]] for part in ("train", "val"))
    y = torch.cat([molecule.y for molecule in val])
    assert y.isnan().any()
    outputs, seen = pyg.network_outputs, []

    def best_at_epoch_1(*given: object) -> torch.Tensor:
        seen.append(outputs(*given) + 50.0 * (len(seen) != 1))
        return seen[-1]

    monkeypatch.setattr(pyg, "network_outputs", best_at_epoch_1)
    network = pyg.Network(kind, how, featuriser.atom_sizes, featuriser.bond_sizes, u.shape[1], 3)
    best, seconds = pyg.train_network(network, train, val, "bce", 0, epochs=3)
    assert len(seconds) == len(seen) == 3
    assert best == pytest.approx(float(pyg.loss(outputs(network, val), y, "bce")), rel=1e-6)


def test_pyg_answers_in_the_targets_units(regression: Run, monkeypatch) -> None:
    monkeypatch.setattr(pyg, "train_network", lambda network, *rest: (0.0, [float(network.eval().training)]))
    shifted = with_targets(regression, regression.dataset.y * 1000 + 1e6, Regression)
    how = pyg.Configuration(2, 0.0, False, channels=16)
    one, other = (pyg.train_and_predict(named(run, "gine"), how).prediction for run in (regression, shifted))
    np.testing.assert_allclose(other, one * 1000 + 1e6, rtol=1e-6)


def test_chemprop_reads_the_same_rows_and_blanks_stay_blank(classes: Run, tmp_path) -> None:
    chemprop.write_table(classes, tmp_path / "data.csv")
    again = chemprop.read_table(tmp_path / "data.csv", classes.targets)
    np.testing.assert_array_equal(again, classes.dataset.y)
    lines = (tmp_path / "data.csv").read_text().splitlines()
    assert lines[0] == "smiles,y0,y1,y2,split"
    assert [line.rsplit(",", 1)[1] for line in lines[1:]].count("test") == len(classes.dataset.split["test"])
