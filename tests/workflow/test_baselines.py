import json
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

import gtx.workflow.baselines
from gtx.data import MoleculeStore, featurise
from gtx.molecules import Featuriser
from gtx.tasks import BinaryClassification, MulticlassClassification, NumericTask, Regression
from gtx.training_data import Dataset
from gtx.workflow.baselines import predict_baselines, score_baselines
from tests.report.conftest import SMILES, SPLIT, measured


@dataclass(frozen=True)
class Known(Regression):
    """Numbers of which a part is known."""

    known: np.ndarray | None = None

    def known_part(self, store: MoleculeStore) -> np.ndarray | None:
        return self.known


NUMBERS, CLASSES = (kind(("additive", "letters")) for kind in (Known, BinaryClassification))


STORE = featurise(Featuriser(descriptors=False), SMILES, workers=0).store


def labelled(
    y: np.ndarray, task: NumericTask = NUMBERS, descriptors: np.ndarray | None = None
) -> tuple[Dataset, NumericTask]:
    """Molecules with weights, which no kernel reads."""
    store = replace(STORE.with_targets(y), weights=torch.ones(len(y)))
    if descriptors is not None:
        store = replace(store, descriptors=torch.from_numpy(descriptors))
    return Dataset(task, store, SMILES, SPLIT, "", "smiles"), task


def baselines(y: np.ndarray, task: NumericTask = NUMBERS, descriptors: np.ndarray | None = None) -> dict[str, dict]:
    return score_baselines(*labelled(y, task, descriptors)).scores


def predictions(y: np.ndarray, task: NumericTask = NUMBERS, seed: int = 0) -> dict[str, np.ndarray]:
    return {name: prediction for name, prediction, _ in predict_baselines(*labelled(y, task), seed)}


@pytest.fixture
def y() -> np.ndarray:
    return measured()


@pytest.fixture
def classes(y: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(y), np.nan, y > np.nanmedian(y, 0))


def test_a_sum_of_contributions_is_what_ridge_learns_and_a_forest_nearly(y):
    found = baselines(y)
    assert list(found) == ["mean", "ridge", "random_forest"]
    rmse = {name: scores["test"]["per_target"]["additive"]["rmse"] for name, scores in found.items()}
    assert rmse["ridge"] < 0.1 * rmse["mean"]
    assert rmse["ridge"] < rmse["random_forest"] < 0.6 * rmse["mean"]
    assert found["ridge"]["settings"]["alpha"].keys() == set(NUMBERS.targets)
    assert json.loads(json.dumps(found)) == found
    mean = np.nanmean(y[SPLIT["train"]], axis=0)  # of measured training rows
    np.testing.assert_allclose(predictions(y)["mean"], np.tile(mean, (len(y), 1)))


def test_labels_of_test_rows_are_never_read_those_of_validation_choose_a_penalty_and_the_seed_decides_the_forest(y):
    untested, noisy, first, other = y.copy(), y.copy(), predictions(y), predictions(y, seed=1)
    untested[SPLIT["test"]] = 1e3
    for name, prediction in predictions(untested).items():
        np.testing.assert_array_equal(prediction, first[name])  # of one seed to the last bit
    noisy[SPLIT["val"]] = np.random.default_rng(0).normal(size=(len(SPLIT["val"]), 2))
    after = predictions(noisy)
    np.testing.assert_array_equal(first["random_forest"], after["random_forest"])
    assert not np.allclose(first["ridge"], after["ridge"])  # noise asks for a larger penalty
    assert (first["random_forest"] != other["random_forest"]).any()
    np.testing.assert_array_equal(first["ridge"], other["ridge"])


def test_classes_get_probabilities(classes):
    found = predictions(classes, task=CLASSES)
    assert list(found) == ["mean", "logistic", "random_forest"]
    for prediction in found.values():
        assert prediction.min() >= 0 and prediction.max() <= 1
    scores = baselines(classes, CLASSES)
    assert scores["mean"]["test"]["roc_auc"] == 0.5
    assert scores["logistic"]["test"]["roc_auc"] > 0.95


@pytest.mark.parametrize("task", [NUMBERS, CLASSES], ids=["numbers", "classes"])
def test_a_target_without_contrast_gets_its_mean(task, classes):
    classes[SPLIT["train"], 0] = 1.0
    for prediction in predictions(classes, task=task).values():
        np.testing.assert_array_equal(prediction[:, 0], 1.0)


def test_of_several_classes_each_has_a_probability(y):
    letters = np.digitize(y[:, 1], np.quantile(y[:, 1], [0.3, 0.6])).astype(float)[:, None]
    letters[::11] = np.nan
    task = replace(MulticlassClassification("letters"), classes=(("short", "middle", "long"),))
    for name, found in predictions(letters, task).items():
        np.testing.assert_allclose(found.sum(1), 1, rtol=1e-6)
        score = task.objective.evaluate(letters[SPLIT["test"]], found[SPLIT["test"]])["roc_auc"]
        assert score == 0.5 if name == "mean" else score > 0.9, name
    letters[SPLIT["train"]] = np.where(letters[SPLIT["train"]] == 2, 0, letters[SPLIT["train"]])  # none is long there
    assert predictions(letters, task)["random_forest"][:, 2].max() == 0


def test_a_target_never_measured_in_training_has_no_prediction(y):
    y[SPLIT["train"], 0] = np.nan
    scores = baselines(y)
    for name in scores:
        assert scores[name]["test"]["per_target"]["additive"]["rmse"] is None
        assert scores[name]["test"]["per_target"]["letters"]["rmse"] > 0


def test_of_many_rows_some_are_drawn(y, monkeypatch):
    monkeypatch.setattr(gtx.workflow.baselines, "MAX_ROWS", 40)
    monkeypatch.setattr(gtx.workflow.baselines, "MAX_ROWS_OF_A_TREE", 30)
    found = baselines(y)
    assert found["ridge"]["settings"]["training_rows"] == 40
    assert found["random_forest"]["settings"]["rows_per_tree"] == 30
    assert found["ridge"]["test"]["per_target"]["letters"]["r2"] > 0.5


@pytest.mark.parametrize("task", [Known("y"), BinaryClassification("y")], ids=["numbers", "classes"])
def test_descriptors_are_read_beside_the_counts(y, classes, task):
    noise = np.random.default_rng(0).normal(size=len(SMILES))
    hidden = (noise > 0 if task.discrete else noise).astype(float)[:, None]  # no matter of structure
    told = np.stack([1e6 + 1e4 * noise, np.full(len(noise), 7.0)], 1)
    told[SPLIT["test"][0], 0], told[SPLIT["train"][0], 0], told[SPLIT["train"][1], 0] = np.nan, np.inf, np.nan
    without = baselines(hidden, task)
    found = baselines(hidden, task, told)
    metric, least = ("roc_auc", 0.8) if task.discrete else ("r2", 0.5)
    for name in [name for name in found if name != "mean"]:
        assert without[name]["test"][metric] < least < found[name]["test"][metric], name
        assert without[name]["settings"]["inputs"] == "Morgan counts, radius 2, 2048 bits"
        assert found[name]["settings"]["inputs"] == "Morgan counts, radius 2, 2048 bits, and 2 descriptors"


def test_what_a_reference_says_is_no_matter_of_learning(y):
    y = np.round(1024 * y) / 1024  # what is added to it and taken off leaves it to the last bit
    known = np.round(1e5 * np.random.default_rng(0).normal(size=y.shape))
    task = Known(NUMBERS.targets, known=known)
    plain, beside = predictions(y), predictions(y + known, task)
    for name in ("ridge", "random_forest"):
        np.testing.assert_allclose(beside[name], plain[name] + known, rtol=1e-6, atol=1e-4)
    told = baselines(y + known, task)["ridge"]["settings"]["inputs"]
    assert told.endswith("; extensive targets minus the model's reference per element")
    assert np.ptp(beside["mean"], axis=0).max() == 0  # the mean of what was measured, as ever


@pytest.mark.slow
@pytest.mark.parametrize("task", [NUMBERS, CLASSES], ids=["numbers", "classes"])
def test_the_kernel_reads_what_the_model_reads_and_no_labels_but_those_of_training(y, classes, task):
    y = (classes if task.discrete else y).copy()
    store = featurise(Featuriser(), SMILES, workers=0).store.with_targets(y)
    task = (task if task.discrete else Regression(task.targets)).fit(store.subset(SPLIT["train"]))

    def kernel(y: np.ndarray) -> np.ndarray:
        molecules = Dataset(task, store.with_targets(y), SMILES, SPLIT, "", "smiles")
        return score_baselines(molecules, task).predictions["kernel"]

    found = kernel(y)
    scores = task.objective.evaluate(y[SPLIT["test"]], found[SPLIT["test"]])["per_target"]["additive"]
    assert scores["roc_auc"] > 0.9 if task.discrete else scores["r2"] > 0.9
    changed = y.copy()
    changed[SPLIT["test"]] = changed[SPLIT["val"]] = 0.0
    np.testing.assert_array_equal(kernel(changed), found)
