"""Intervals that widen for a molecule unlike the training molecules, on errors whose growth is known."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import gtx
from gtx.base.errors import InputError
from gtx.prediction import Predictor
from gtx.tasks import Regression
from gtx.tasks.numeric import Predictions
from gtx.tasks.regression import TargetScaler
from gtx.tasks.uncertainty import distance_slopes
from tests.molecules_for_tests import store
from tests.tables import GOLDEN


def drawn(rows: int, slope: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Errors `[rows, 1]` of the scale 0.2 exp(slope d), and distances d."""
    random = np.random.default_rng(seed)
    distance = random.uniform(0, 1, rows)
    return random.normal(0, 0.2 * np.exp(slope * distance))[:, None], distance


def answers(task: Regression, distance: np.ndarray) -> Predictions:
    outputs = torch.stack([torch.zeros(len(distance)), torch.from_numpy(distance)], 1)[:, None].double()
    return task.answers.decode(outputs, store(["C"] * len(distance)))


def test_the_slope_is_found_and_few_rows_have_none() -> None:
    error, distance = drawn(2000, 2.5)
    assert distance_slopes(error, distance)[0] == pytest.approx(2.5, abs=0.15)
    assert distance_slopes(*drawn(2000, 0))[0] < 0.2
    assert distance_slopes(-error, 1 - distance)[0] < 1e-3  # no error that falls with the distance
    blank = np.where(np.arange(2000)[:, None] < 49, error, np.nan)
    both = np.concatenate([error, blank], 1)
    assert distance_slopes(both, distance)[1] == 0 == distance_slopes(np.zeros((60, 1)), distance[:60])[0]
    far = np.concatenate([error[:60], [[50.0]]])  # a single large error nearby leads nothing astray
    assert distance_slopes(far, np.append(distance[:60], 0.5))[0] == pytest.approx(2.5, abs=1)


def test_intervals_hold_their_share_in_every_third_where_those_of_one_width_do_not() -> None:
    scaler = TargetScaler(torch.zeros(1).double(), torch.ones(1).double())
    scores = {}
    for kind in ("none", "similarity"):
        task = Regression("y", uncertainty=kind, scaler=scaler)
        (error, distance), (new, further) = drawn(2000, 2.5), drawn(4000, 2.5, seed=1)
        fitted = task.calibrate(answers(task, distance), error)
        told = replace(answers(fitted, further), distance=further)
        scores[kind] = fitted.answers.evaluate_uncertainty(new, told)
        assert scores[kind]["coverage"] == pytest.approx(0.9, abs=0.02)
    thirds = [[scores[kind][f"coverage_{third}"] for third in ("far", "middle", "near")] for kind in scores]
    assert thirds[0][0] < 0.8 and thirds[0][2] > 0.98 and np.abs(np.array(thirds[1]) - 0.9).max() < 0.03
    assert scores["similarity"]["width"] < scores["none"]["width"]
    assert scores["similarity"]["width_far"] > 3 * scores["similarity"]["width_near"]
    assert scores["similarity"]["ence"] < 0.1


def test_a_molecule_unlike_the_training_molecules_has_a_wide_interval(tmp_path) -> None:
    golden = gtx.load(GOLDEN / "neighbours.gtx", device="cpu")
    learned = {
        "scaler": golden.task.scaler,
        "std_slope": (2.0,),
        "std_factor": (0.5,),
        "interval": golden.task.interval,
    }
    task = Regression("solvation_water", uncertainty="similarity", **learned)
    Predictor(golden.members, replace(golden.header, task=task), "cpu").save(tmp_path / "model.gtx")
    model = gtx.load(tmp_path / "model.gtx", device="cpu")
    asked = [golden.header.training.smiles[0], "CCO", "FC(F)(F)S(=O)(=O)c1ccccc1"]
    told, near = model.predict(asked), model.neighbours(asked, 1)
    expected = 0.5 * float(task.scaler.sd[0]) * np.exp(2 * (1 - near.similarity.to_numpy()))
    np.testing.assert_allclose(told.solvation_water_std, expected)
    width = told.solvation_water_high - told.solvation_water_low
    np.testing.assert_allclose(width, 2 * expected * task.interval["half_width"][0])
    np.testing.assert_allclose(told.solvation_water_pred, golden.predict(asked).solvation_water_pred)


def test_without_training_rows_there_is_none(tmp_path) -> None:
    golden = gtx.load(GOLDEN / "neighbours.gtx", device="cpu")
    header = replace(golden.header, task=replace(golden.task, uncertainty="similarity"), training=None)
    Predictor(golden.members, header, "cpu").save(tmp_path / "model.gtx")
    with pytest.raises(InputError, match="training: expected rows"):
        gtx.load(tmp_path / "model.gtx")
