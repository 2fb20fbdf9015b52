"""Weights of rows and targets: 0 is left out, 2 is twice, in every task of numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from gtx.data import ConstantShapeStore
from gtx.dataset import DataSettings, load_dataset
from gtx.errors import InputError
from gtx.tasks import BinaryClassification, CountRegression, MulticlassClassification, Regression, ShareRegression
from gtx.training import TrainSettings
from gtx.workflow import train_model
from tests.molecules_for_tests import SMILES, store
from tests.tables import ALONE, TINY, molecules, write

NAMES = ("a", "b", "c")
TASKS = {
    "mse": Regression(NAMES),
    "mae": Regression(NAMES, loss="mae"),
    "censored": Regression(NAMES, censored=True),
    "classes": BinaryClassification(NAMES),
    "several": replace(MulticlassClassification(NAMES), classes=[("0", "1")] * 3),
    "counts": CountRegression(NAMES),
    "shares": ShareRegression(NAMES),
}
WEIGHTS = torch.tensor([1.0, 0, 2, 1, 3, 0, 1])


def examples(task: object) -> SimpleNamespace:
    generator = torch.Generator().manual_seed(0)
    y = torch.rand(7, 3, generator=generator)
    y = y / y.sum(1, keepdim=True) if isinstance(task, ShareRegression) else y.round()
    if not isinstance(task, ShareRegression):
        y[3, 1] = torch.nan
    output = torch.randn(7, task.out_channels, generator=generator)
    made = SimpleNamespace(y=y, output=output, weights=WEIGHTS)
    if getattr(task, "censored", False):
        made.bounds = torch.full((7, 6), torch.nan)
        made.bounds[3, 1], made.bounds[4, 5], made.y[4, 2] = 0.5, 0.2, torch.nan
    return made


def cut(given: SimpleNamespace, rows: torch.Tensor) -> SimpleNamespace:
    return SimpleNamespace(**{name: value[rows] for name, value in vars(given).items() if name != "weights"})


@pytest.mark.parametrize("name", TASKS)
def test_a_row_of_weight_0_is_left_out_and_one_of_2_is_there_twice(name: str) -> None:
    task = TASKS[name]
    given = examples(task)
    repeated = cut(given, torch.repeat_interleave(torch.arange(7), WEIGHTS.long()))
    torch.testing.assert_close(task.mean_loss(given.output, given), task.mean_loss(repeated.output, repeated))
    plain = cut(given, torch.arange(7))
    assert not torch.allclose(task.mean_loss(given.output, given), task.mean_loss(given.output, plain))
    given.weights = torch.ones(7)
    torch.testing.assert_close(task.mean_loss(given.output, given), task.mean_loss(given.output, plain))


@pytest.mark.parametrize("name", TASKS)
def test_a_target_of_weight_0_is_left_out_and_one_of_2_is_there_twice(name: str) -> None:
    task = replace(TASKS[name], target_weights={"a": 2, "c": 0})
    given = cut(examples(task), torch.tensor([0, 1, 2, 5, 6]))  # without blanks
    each = task.elementwise(given.output, given.y).mean(0)
    torch.testing.assert_close(task.mean_loss(given.output, given), (2 * each[0] + each[1]) / 3)
    assert task.config()["target_weights"] == {"a": 2, "c": 0} and "target_weights" not in task.to_dict()


def test_weights_of_targets_that_are_none_are_refused() -> None:
    with pytest.raises(InputError, match=r"no target 'aa'.*did you mean 'a'"):
        Regression(["a", "b"], target_weights={"aa": 1})
    for wrong in (-1, "much", float("inf"), None):
        with pytest.raises(InputError, match="expected a number of 0 or more for 'b', got"):
            CountRegression(["a", "b"], target_weights={"b": wrong})


def test_batches_carry_weights_and_bounds_and_those_of_constant_shape_nothing_for_nobody() -> None:
    count = len(SMILES)
    task = Regression("y", censored=True)
    y = torch.randn(count, 1, dtype=torch.float64)
    y[2] = torch.nan
    bounds = torch.full((count, 2), torch.nan, dtype=torch.float64)
    bounds[2, 0] = 0.3
    held = replace(store().with_targets(y), bounds=bounds, weights=torch.arange(count, dtype=torch.float64))
    index = torch.tensor([4, 2, 0])
    for batch in (held.batch(index), held.subset(index).batch()):
        assert batch.weights.tolist() == [4, 2, 0] and batch.bounds[1, 0].item() == pytest.approx(0.3)
    assert held.batch(index).to_data_list()[1].weights.tolist() == [2]
    assert task.share(held) == sum(range(count)) and task.share(held.batch(index)) == 6

    constant = ConstantShapeStore(held)
    output = torch.randn(count)
    share = 0.0
    for rows in constant.sampler(4).batches():
        batch = constant.batch(rows)
        said = torch.where(batch.row >= 0, output[batch.row], 1e3)[:, None]
        assert batch.weights[batch.row < 0].eq(0).all() and batch.bounds[batch.row < 0].isnan().all()
        plain = held.batch(batch.row[batch.row >= 0])
        expected = task.mean_loss(output[plain.row][:, None], plain)
        torch.testing.assert_close(task.mean_loss(said, batch), expected)
        share += float(task.share(batch))
    assert share == sum(range(count)) == task.share(constant)


@pytest.fixture(scope="module")
def weighted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table in which wild rows weigh nothing, and one without them."""
    folder = tmp_path_factory.mktemp("weights")
    frame = molecules(60)
    parts = ["train"] * 44 + ["val"] * 8 + ["test"] * 8
    rows = [list(row) for row in zip(frame.smiles, frame.gap, parts, [1.5] * 60, strict=True)]
    wild = [[smiles, 1e4, "train", 0] for smiles in ("C", "CC", "CCC")]
    write(folder / "all.csv", [*rows[:20], *wild, *rows[20:]], ["smiles", "gap", "part", "w"])
    write(folder / "few.csv", rows, ["smiles", "gap", "part", "w"])
    return folder


def test_training_with_weights_of_0_is_training_without_these_rows(weighted: Path) -> None:
    settings = TrainSettings(**TINY | {"epochs": 1, "blend": "no"})
    found = {}
    for name, column in (("all", "w"), ("few", None)):
        data = DataSettings(
            str(weighted / f"{name}.csv"), ("gap",), split_column="part", weight_column=column, workers=0
        )
        found[name] = train_model(data, settings, weighted / name, **ALONE)
    for part in ("train", "val", "test"):
        assert found["all"].metrics[part]["rmse"] == pytest.approx(found["few"].metrics[part]["rmse"], rel=1e-4)
    assert "weight_column: w" in (weighted / "all" / "config.yaml").read_text()
    assert "weight_column" not in (weighted / "few" / "config.yaml").read_text()


def test_cells_that_are_no_weights_are_errors_of_their_rows(tmp_path: Path) -> None:
    cells = ["1", "", "-1", "0", "heavy", "2.5", *["1"] * 14]
    rows = [["C" * (i + 1), i, cell] for i, cell in enumerate(cells)]
    path = str(write(tmp_path / "t.csv", rows, ["smiles", "y", "w"]))
    data = load_dataset(DataSettings(path, ("y",), weight_column="w", workers=0))
    errors = data.files[0].ledger.errors
    assert sorted(errors) == [2, 3, 5] and "expected" in errors[2] and 'column "w"' in errors[2]
    assert data.store.weights.tolist()[:3] == [1, 0, 2.5]
    assert 1 not in data.split["train"]  # the row of weight 0
    with pytest.raises(InputError, match="'y' is a target"):
        load_dataset(DataSettings(path, ("y",), weight_column="y", workers=0))
    with pytest.raises(InputError, match="v"):
        load_dataset(DataSettings(path, ("y",), weight_column="v", workers=0))


def test_an_estimator_takes_them(weighted: Path) -> None:
    from gtx import MoleculeRegressor

    smiles, y = ["C", "CC", "CCC", "CCO", "CO"], np.array([1.0, 2, 3, 4, 1e6])
    settings = {"threads": 1, "accelerator": "cpu"}
    model = MoleculeRegressor(
        epochs=1, model_arguments=TINY["model_arguments"], settings=settings, validation_fraction=0, workers=0
    )
    model.fit(smiles, y, sample_weight=[1, 1, 1, 1, 0])
    assert abs(model.predict(["CCC"])[0]) < 100  # the scale is of those that weigh something
    with pytest.raises(InputError, match=r"of shape \[5\]"):
        model.fit(smiles, y, sample_weight=[1, 2])
    with pytest.raises(InputError, match="number 4 is -1"):
        model.fit(smiles, y, sample_weight=[1, 1, 1, 1, -1])
