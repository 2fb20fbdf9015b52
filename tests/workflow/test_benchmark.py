"""Which molecules are test when in `gtx benchmark`, and what it sums up."""

from dataclasses import replace

import numpy as np
import pytest

from gtx.tasks import BinaryClassification, Regression
from gtx.training import TrainSettings
from gtx.training_data import Dataset, DataSettings, load_training_table
from gtx.workflow.benchmark import GTX, Fold, _summary, folds_of
from tests.tables import molecules, write


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> DataSettings:
    smiles = molecules(200)["smiles"].tolist()
    rows = [[text, int(i % 5 == 0), i] for i, text in enumerate(smiles + smiles[:40])]
    rows[9][1] = rows[9][2] = ""
    file = write(tmp_path_factory.mktemp("data") / "data.csv", rows, ["smiles", "y", "z"])
    return DataSettings(str(file), ("y",), workers=0)


@pytest.fixture(scope="module")
def dataset(data: DataSettings) -> Dataset:
    return load_training_table(data)


def test_a_molecule_measured_twice_is_on_one_side(data: DataSettings, dataset: Dataset) -> None:
    assert isinstance(dataset.task, BinaryClassification)
    splits, other = folds_of(dataset, data, 5, 2)
    tested = np.sort(np.concatenate([split["test"] for split in splits]))
    assert np.array_equal(tested, np.flatnonzero(~np.isnan(dataset.y[:, 0])))  # each once, the blank one never
    for split in splits:
        parts = [{dataset.smiles[i] for i in rows} for rows in split.values()]
        assert sum(map(len, parts)) == len(set.union(*parts))
    (again,) = folds_of(dataset, data, 5, 1)
    assert all(np.array_equal(a["test"], b["test"]) for a, b in zip(splits, again, strict=True))
    assert not any(np.array_equal(a["test"], b["test"]) for a, b in zip(splits, other, strict=True))


def test_a_fold_scores_calibrated_probabilities(data: DataSettings, dataset: Dataset, tmp_path) -> None:
    (split, *_), *_ = folds_of(dataset, data, 3, 1)
    task, settings = replace(dataset.task, calibration="isotonic"), TrainSettings(model="tanimoto", threads=1)
    molecules = Dataset(task, dataset.store, dataset.smiles, split, "a fold", "smiles")
    fold = Fold(molecules, data, settings, tmp_path, {})
    predicted = fold.run()["predictions"][GTX]
    assert len(np.unique(predicted)) < len(predicted) / 2  # they are steps


def test_the_model_of_a_test_fold_may_be_of_several_folds(data: DataSettings, dataset: Dataset, tmp_path) -> None:
    """Each fold is made of the rows that are not test, and the scores are those that a run has."""
    (split, *_), *_ = folds_of(dataset, data, 3, 1)
    settings = TrainSettings(model="tanimoto", folds=2, threads=1)
    fold = Fold(dataset.with_split(split, "a fold"), data, settings, tmp_path, {})
    result = fold.run()
    assert result["rows"] == {"train": len(dataset.with_labels) - len(split["test"]), "test": len(split["test"])}
    assert result["scores"][GTX]["per_target"].keys() == result["scores"]["mean"]["per_target"].keys()


def test_errors_in_different_units_are_summed_up_as_shares_of_those_of_the_mean() -> None:
    y, evaluate, found = np.random.default_rng(0).normal(size=(30, 2)), Regression(["a", "b"]).objective.evaluate, []
    guesses = {"gtx": y * [0.5, 0.9], "ridge": y * 0.6, "mean": np.zeros_like(y)}
    for unit in (1.0, np.array([1.0, 1000.0])):
        scores = {name: evaluate(y * unit, guess * unit) for name, guess in guesses.items()}
        found.append(_summary([{"scores": scores}, None], Regression(["a"])))
    assert found == ["1/2 splits; RMSE ÷ the mean's 0.300, best baseline 0.400"] * 2
