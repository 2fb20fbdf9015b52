"""Uncertainty of numbers and classes, on data whose spread, errors or probabilities are known."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.distributions import Dirichlet, kl_divergence

import gtx
from gtx.base.errors import InputError
from gtx.prediction import Predictor
from gtx.tasks import BinaryClassification, MulticlassClassification, Regression
from gtx.tasks.classification import PENALTY, evidence_loss
from gtx.tasks.numeric import Predictions
from gtx.tasks.regression import TargetScaler
from gtx.tasks.uncertainty import (
    UNCERTAINTY_METHODS,
    apply_curves,
    apply_temperature,
    conformal_half_width,
    distance_slopes,
    evaluate_probabilities,
    evaluate_spread,
    fewest,
    fit_isotonic,
    fit_temperature,
    rank,
    std_factors,
    unlikeliness,
)
from tests.molecules_for_tests import store
from tests.tables import GOLDEN


def noisy(rows: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """A number x from 0 to 1 and y = sin 4x + (0.1 + 0.9 x) noise: what is read, the target and its true spread."""
    random = torch.Generator().manual_seed(seed)
    x = torch.rand(rows, 1, generator=random)
    spread = 0.1 + 0.9 * x
    return x, (4 * x).sin() + spread * torch.randn(rows, 1, generator=random), spread


def taught(x: Tensor, width: int, loss: Callable[[Tensor], Tensor], steps: int) -> nn.Module:
    """A small network that learned by a loss of its outputs for x."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, width))
    optimiser = torch.optim.Adam(network.parameters(), 0.02)
    for _ in range(steps):
        optimiser.zero_grad()
        loss(network(x)).mean().backward()
        optimiser.step()
    return network.requires_grad_(False)


@pytest.mark.parametrize("name", ["variance", "quantiles", "evidential"])
def test_the_true_mean_and_spread_are_found(name: str) -> None:
    """By a small network that learned by the loss of a method, for 4,000 new rows."""
    method, (x, y, _) = UNCERTAINTY_METHODS[name](), noisy(1_000, 0)
    network = taught(x, method.width, lambda output: method.loss(output.unflatten(1, (-1, 1)), y), steps=400)
    new, y, truth = noisy(4000, 1)
    outputs = network(new).unflatten(1, (-1, 1))[:, None]  # [m, 1, W, 1]
    std, _, _ = method.spread(outputs)
    assert (outputs[:, 0, 0] - (4 * new).sin()).square().mean().sqrt() < 0.12
    factor = torch.from_numpy(std_factors(y.numpy(), outputs[:, 0, 0].numpy(), std.numpy()))
    # the evidence's own size is off, see the class: validation rows correct it
    assert float(factor) == pytest.approx(1, abs=0.2 if name == "evidential" else 0.1)
    assert ((std * factor) / truth).log().square().mean().sqrt() < 0.15


def test_quantiles_are_those_at_which_an_interval_of_its_level_ends() -> None:
    wide = UNCERTAINTY_METHODS["quantiles"](0.5)
    y = torch.linspace(-1, 1, 2001)[:, None]
    for q, at in ((0.25, -0.5), (0.75, 0.5)):  # where the loss is least, shifted one at a time
        shifts = torch.linspace(0.2, 0.8, 61)
        raw = (shifts - 1e-3).expm1().log()  # of which the softplus is the shift
        half = torch.full_like(raw, 0.5 - 1e-3).expm1().log()
        down, up = (raw, half) if q < 0.5 else (half, raw)
        each = [wide.loss(torch.stack([0 * d, d, u])[None, :, None], y).mean() for d, u in zip(down, up, strict=True)]
        assert float(shifts[torch.stack(each).argmin()]) == pytest.approx(abs(at), abs=0.02)
    std, _, _ = wide.spread(torch.zeros(1, 1, 3, 1))  # a range of 2 softplus(0)
    assert float(std) == pytest.approx((np.log(2) + 1e-3) / 0.67449, rel=1e-4)
    assert UNCERTAINTY_METHODS["quantiles"](0.9).normal == pytest.approx(1.6448536269514722, rel=1e-12)
    assert Regression("y", uncertainty="quantiles", coverage=0.5).method.tail == 0.25


def test_a_factor_makes_standard_deviations_of_the_right_size() -> None:
    random = np.random.default_rng(0)
    std = random.uniform(0.5, 2, (5000, 1))
    y = 3 * std * random.standard_normal(std.shape)
    assert std_factors(y, 0 * y, std) == pytest.approx([3], rel=0.03)
    assert std_factors(y[:9], 0 * y[:9], std[:9]).tolist() == [1.0]
    assert std_factors(y, y, std).tolist() == [1.0] and std_factors(y, 0 * y, 0 * std).tolist() == [1.0]


def test_scores_are_best_where_the_spread_is_true() -> None:
    random = np.random.default_rng(0)
    std = random.uniform(0.2, 2, (4000, 1))
    y, mean = std * random.standard_normal(std.shape), np.zeros_like(std)
    y[:7] = np.nan
    true = evaluate_spread(["y"], y, mean, std, -1.645 * std, 1.645 * std)
    assert true["coverage"] == pytest.approx(0.9, abs=0.015)
    assert true["width"] == pytest.approx(3.29 * std[7:].mean())
    assert true["ence"] < 0.06 and true["miscalibration_area"] < 0.02
    assert true["spearman"] > 0.35 and true["auroc"] > 0.75
    expected = np.log(std[7:] ** 2 * 2 * np.pi).mean() / 2 + 0.5
    assert true["nll"] == pytest.approx(expected, abs=0.03)
    for wrong in (0.4 * std, 2.5 * std, std[::-1], np.full_like(std, 1.2)):
        found = evaluate_spread(["y"], y, mean, wrong, None, None)
        assert found["nll"] > true["nll"] + 0.05 and "coverage" not in found
    assert found["spearman"] is None  # of one size for all, it ranks nothing
    assert evaluate_spread(["y"], y, mean, 2.5 * std, None, None)["ence"] == pytest.approx(0.6, abs=0.02)
    assert evaluate_spread(["y"], y, mean, None, None, None) == {}


def test_members_that_disagree_add_to_what_each_says() -> None:
    output = torch.tensor([[[[1.0], [0.5]], [[3.0], [0.5]]]])  # [m, K, W, T]
    own = float(UNCERTAINTY_METHODS["variance"]().variance(output)[0, 0])
    assert float(UNCERTAINTY_METHODS["variance"]().spread(output)[0]) == pytest.approx((own + 2) ** 0.5)


def test_what_a_method_needs_is_said_before_training() -> None:
    with pytest.raises(InputError, match="learned by gradients"):
        Regression("y", uncertainty="variance").objective.check(nn.Identity())


def test_options_that_contradict_are_refused() -> None:
    for kind, options, words in (
        (Regression, {"uncertainty": "variance", "loss": "mae"}, "loss: .* has a loss of its own"),
        (Regression, {"uncertainty": "variance", "censored": True}, "censored: .* which knows no bounds"),
        (Regression, {"uncertainty": "sure"}, "uncertainty: expected one of 'none', 'variance'"),
        (Regression, {"loss": "mape", "level": "bond"}, "loss: expected one of mse, mae, huber for bonds, got mape"),
        (Regression, {"sum_to": "inf", "level": "atom"}, "sum_to: expected a finite number, got 'inf'"),
        (Regression, {"relation_column": "y"}, "'y' is a target; it cannot have the relations too"),
        (Regression, {"targets": ["y", "z"], "relation_column": "r"}, "relation_column: expected one target, whose "),
        (Regression, {"level": "part"}, "level: expected one of molecule, atom, bond for regression, got 'part'"),
        *((Regression, {"coverage": x}, "coverage: expected a .*number.*, got") for x in (0, 1, float("nan"), "much")),
        (BinaryClassification, {"sets": True, "coverage": 1}, "coverage: expected a number above 0 and below 1, got 1"),
        (BinaryClassification, {"coverage": 0.8}, "coverage: 0.8 needs sets"),
        (BinaryClassification, {"set_kind": "adaptive"}, "set_kind: adaptive needs sets"),
        (BinaryClassification, {"classes": (("a", "b", "c"),)}, r"classes\[0\]: expected at most 2 values, got 3"),
        (MulticlassClassification, {"classes": (("a", "b"),) * 2}, "classes: expected at most 1 values, got 2"),
    ):
        with pytest.raises(InputError, match=words):
            kind(**{"targets": "y"} | options)


# --- Intervals: their width is a residual of validation rows, and they hold the share of new rows that was asked for.


def test_it_is_the_residual_of_the_corrected_rank_and_blanks_do_not_count() -> None:
    y = np.array([[float(i), np.nan if i > 9 else -i] for i in range(1, 20)])
    assert conformal_half_width(y, np.zeros_like(y)).tolist() == [18.0, 9.0]


@pytest.mark.parametrize("level", [0.55, 0.9, 0.999])
def test_a_level_takes_as_many_values_as_it_says(level: float) -> None:
    needed = fewest(level)
    assert rank(needed, level) <= needed and rank(needed - 1, level) > needed - 1
    for values, enough in ((needed, True), (needed - 1, False)):
        half = conformal_half_width(np.arange(1.0, values + 1)[:, None], np.zeros((values, 1)), level)
        assert math.isfinite(half[0]) == enough
    assert [fewest(x) for x in (0.9, 0.95, 0.99)] == [9, 19, 99] and rank(24, 0.56) == 14  # 25 * 0.56 > 14 in floats


@pytest.mark.parametrize("coverage", [0.8, 0.95])
@pytest.mark.parametrize("uncertainty", ["none", "variance"])
def test_intervals_of_new_rows_hold_the_share_that_was_asked_for(uncertainty: str, coverage: float) -> None:
    random = np.random.default_rng(0)
    spread = random.uniform(0.2, 2, (8000, 1))
    y, mean = 5 + spread * random.standard_normal((8000, 1)), np.full((8000, 1), 5.0)
    reach = None if uncertainty == "none" else (3 * spread, 3 * spread)
    std = None if reach is None else 3 * spread
    scaler = TargetScaler.fit(torch.tensor([[4.0], [6.0]]))
    task = Regression("y", uncertainty=uncertainty, coverage=coverage, scaler=scaler)
    told = Predictions(mean=mean, std=std, warnings=[[]] * 8000, reach=reach)
    half = np.arange(8000) < 4000
    fitted = task.calibrate(told.subset(np.flatnonzero(half)), y[half])
    corrected = None if reach is None else tuple(each[~half] * fitted.std_factor for each in reach)
    low, high = fitted.answers.bounds(mean[~half], corrected)
    inside = (low <= y[~half]) & (y[~half] <= high)
    assert inside.mean() == pytest.approx(coverage, abs=0.02)
    assert f"intervals of {100 * coverage:g}%: y ±" in fitted.answers.notes()[0]
    again = Regression.from_dict(fitted.to_dict())
    assert again.coverage == coverage and again.interval == fitted.interval


def test_a_target_without_spread_in_training_has_no_interval_of_width_0() -> None:
    y = np.stack([np.arange(18.0), np.arange(18.0), np.zeros(18)], axis=1)
    told = Predictions(mean=np.zeros((18, 3)), std=(std := np.array([[1.0, 0, 0]] * 18)), reach=(std, std), warnings=[])
    scaler = TargetScaler.fit(torch.tensor([[4.0, 4, 0], [6.0, 4, 0]]))
    fitted = Regression(["a", "b", "c"], uncertainty="variance", scaler=scaler).calibrate(told, y)
    assert fitted.interval["half_width"][1:] == [None, 0.0]
    assert fitted.answers.notes()[0].endswith(
        "b none, c ±0 standard deviations; none with fewer than 9 validation values or with standard deviations of 0"
    )


def test_where_values_are_too_few_it_is_said_how_many_a_level_takes() -> None:
    y = np.stack([np.arange(18.0), np.arange(18.0)], axis=1)
    y[0, 1] = np.nan
    told = Predictions(mean=np.zeros((18, 2)), warnings=[[]] * 18)
    scaler = TargetScaler.fit(torch.tensor([[4.0, 4.0], [6.0, 6.0]]))
    for coverage, words in (
        (0.9, "intervals of 90%: a ±17, b ±17"),
        (0.945, "intervals of 94.5%: a ±17, b none; none with fewer than 18 validation values"),
        (0.95, "intervals of 95%: a none, b none; none with fewer than 19 validation values"),
    ):
        fitted = Regression(["a", "b"], coverage=coverage, scaler=scaler).calibrate(told, y)
        assert fitted.answers.notes() == [words]
        second = "b_pred" if coverage == 0.95 else "a_low"
        assert list(fitted.answers.output_columns([]))[:2] == ["a_pred", second]
        assert (fitted.answers.bounds(told.mean, None)[0] is None) == (coverage == 0.95)
    task = BinaryClassification("y", sets=True, coverage=0.95, classes=(("a", "b"),))
    fitted = task.calibrate(Predictions(mean=np.full((18, 1), 0.4), warnings=[[]] * 18), np.ones((18, 1)))
    note = fitted.answers.notes()[0]
    assert "sets of 95%: " in note and "any with fewer than 19 validation values" in note


# --- Intervals that widen for a molecule unlike the training molecules, on errors whose growth is known.


def growing(rows: int, slope: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Errors `[rows, 1]` of the scale 0.2 exp(slope d), and distances d."""
    random = np.random.default_rng(seed)
    distance = random.uniform(0, 1, rows)
    return random.normal(0, 0.2 * np.exp(slope * distance))[:, None], distance


def answers(task: Regression, distance: np.ndarray) -> Predictions:
    outputs = torch.stack([torch.zeros(len(distance)), torch.from_numpy(distance)], 1)[:, None].double()
    return task.answers.decode(outputs, store(["C"] * len(distance)))


def test_the_slope_is_found_and_few_rows_have_none() -> None:
    error, distance = growing(2000, 2.5)
    assert distance_slopes(error, distance)[0] == pytest.approx(2.5, abs=0.15)
    assert distance_slopes(*growing(2000, 0))[0] < 0.2
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
        (error, distance), (new, further) = growing(2000, 2.5), growing(4000, 2.5, seed=1)
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
    learned = {"scaler": golden.task.scaler, "std_slope": (2.0,), "std_factor": (0.5,)}
    task = Regression("solvation_water", uncertainty="similarity", interval=golden.task.interval, **learned)
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


# --- Probabilities and sets of classes, on data whose probabilities are known.


def classified(rows: int, classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """True probabilities `[rows, classes]`, and classes that follow them."""
    random = np.random.default_rng(seed)
    p = random.dirichlet(np.ones(classes), rows)
    return p, (random.random((rows, 1)) > p.cumsum(1)).sum(1)


@pytest.mark.parametrize("classes", [2, 4])
def test_a_temperature_undoes_a_temperature(classes: int) -> None:
    p, y = classified(5000, classes)
    too_sure = apply_temperature(p, 0.4)
    assert fit_temperature(y, too_sure) == pytest.approx(2.5, rel=0.06)
    assert fit_temperature(y, p) == pytest.approx(1, rel=0.06)
    np.testing.assert_allclose(apply_temperature(too_sure, 2.5), p, atol=1e-6)
    assert fit_temperature(y[:9], too_sure[:9]) == 1


@pytest.mark.parametrize("classes", [2, 3])
def test_steps_undo_any_ascending_distortion(classes: int) -> None:
    p, y = classified(20_000, classes)
    wrong = p**2 / (p**2).sum(1, keepdims=True) if classes > 2 else np.stack([1 - p[:, 1] ** 3, p[:, 1] ** 3], 1)
    found = apply_curves(wrong, fit_isotonic(y, wrong))
    before, after, best = (evaluate_probabilities(y, each) for each in (wrong, found, p))
    assert after["ece"] < 0.02 < 0.05 < before["ece"]
    assert best["nll"] - 0.02 < after["nll"] < before["nll"] and found.min() > 0
    np.testing.assert_allclose(found.sum(1), 1)
    assert fit_isotonic(y[:9], p[:9]) is None


def test_scores_of_probabilities_are_what_they_say() -> None:
    found = evaluate_probabilities(np.array([0, 1]), np.array([[0.8, 0.2], [0.6, 0.4]]))
    assert found["nll"] == pytest.approx(-np.log([0.8, 0.4]).mean())
    assert found["brier"] == pytest.approx((2 * 0.04 + 2 * 0.36) / 2)
    assert found["ece"] == pytest.approx((0.2 + 0.6) / 2) and found["auroc"] == 1
    assert evaluate_probabilities(np.array([0]), np.array([[0.8, 0.2]]))["auroc"] is None


@pytest.mark.parametrize("kind, classes", [(BinaryClassification, 2), (MulticlassClassification, 4)])
@pytest.mark.parametrize(
    ("calibration", "sets", "coverage"),
    [("none", "smallest", 0.9), ("temperature", "adaptive", 0.8), ("isotonic", "smallest", 0.8)],
)
def test_sets_of_new_rows_hold_the_true_class(kind, classes, calibration, sets, coverage) -> None:
    labels = tuple("abcd"[:classes])
    task = kind("y", calibration=calibration, sets=True, set_kind=sets, coverage=coverage, classes=(labels,))
    p, y = classified(8000, classes)
    mean = apply_temperature(p, 0.5)[:, 1:] if classes == 2 else apply_temperature(p, 0.5)
    told = Predictions(mean=mean[:4000], warnings=[[]] * 4000)
    fitted = task.calibrate(told, y[:4000, None].astype(float))
    assert type(task).from_dict(fitted.to_dict()).to_dict() == fitted.to_dict()
    new = fitted.answers.calibrate(mean[4000:])
    found = fitted.answers.evaluate_uncertainty(y[4000:, None], Predictions(mean=new, warnings=[]))
    assert found["coverage"] == pytest.approx(coverage, abs=0.02) and found["size"] < classes
    assert any(note.startswith(f"sets of {100 * coverage:g}%: ") for note in fitted.answers.notes())
    assert (found["ece"] > 0.05) == (calibration == "none")
    texts = fitted.answers.set_texts(new, 0)
    assert all("|".join(label for label in labels if label in text.split("|")) == text for text in texts)  # in order
    held = [labels[k] in text.split("|") for k, text in zip(y[4000:], texts, strict=True)]
    assert all(texts) and np.mean(held) > coverage - 0.02


def test_adaptive_sets_hold_it_for_hard_rows_as_for_easy_ones() -> None:
    random = np.random.default_rng(1)
    hard = np.arange(20_000) % 2 == 0
    p = np.where(hard[:, None], random.dirichlet(np.full(10, 2.0), 20_000), random.dirichlet(np.full(10, 0.15), 20_000))
    y = (random.random((20_000, 1)) > p.cumsum(1)).sum(1).clip(max=9)
    gaps, sizes = {}, {}
    for kind in ("smallest", "adaptive"):
        task = MulticlassClassification("y", sets=True, set_kind=kind, classes=(tuple("abcdefghij"),))
        told = Predictions(mean=p[:10_000], warnings=[[]] * 10_000)
        fitted = task.calibrate(told, y[:10_000, None].astype(float))
        held = fitted.answers.members_of_sets(p[10_000:], 0)
        inside = np.take_along_axis(held, y[10_000:, None], 1)[:, 0]
        assert inside.mean() == pytest.approx(0.9, abs=0.015)
        shares = [inside[rows].mean() for rows in (hard[10_000:], ~hard[10_000:])]
        gaps[kind], sizes[kind] = abs(shares[0] - shares[1]), held.sum(1).mean()
    assert gaps["adaptive"] < 0.03 < 0.05 < gaps["smallest"]
    assert sizes["smallest"] < sizes["adaptive"]


def test_adaptive_scores_are_those_of_the_likelier_classes_and_half_of_the_own() -> None:
    p = np.array([[0.2, 0.5, 0.3], [0.0, 1.0, 0.0]])
    np.testing.assert_allclose(unlikeliness(p, "adaptive"), [[0.9, 0.25, 0.65], [1, 0.5, 1]])
    np.testing.assert_array_equal(unlikeliness(p, "smallest"), 1 - p)


# --- Evidence for classes, on data of which it is known where rows are.


def waves(classes: int) -> tuple[Tensor, Tensor, Tensor]:
    """A number x from -1 to 1, the true probabilities of its class, and the class."""
    random = torch.Generator().manual_seed(0)
    x = 2 * torch.rand(500, 1, generator=random) - 1
    logits = [0 * x, 6 * (3 * x).sin()] if classes == 2 else [4 * (3 * x).sin(), 4 * (5 * x).cos(), -2 * x]
    p = torch.cat(logits, 1).softmax(1)
    return x, p, torch.multinomial(p, 1, generator=random)


@pytest.mark.parametrize("count", [2, 3])
def test_the_true_probabilities_are_found(count: int) -> None:
    kind, labels = BinaryClassification if count == 2 else MulticlassClassification, tuple("abc"[:count])
    task = kind("y", classes=(labels,), uncertainty="evidential")
    x, p, y = waves(count)
    loss = task.objective.elementwise
    network = taught(x, task.objective.out_channels, lambda output: loss(output, y.float()), steps=300)
    found = task.objective.unscale(network(x), None)
    assert (found - p[:, -found.shape[1] :]).abs().mean() < 0.1
    assert found.min() > 0 and found.max() < 1


def test_the_loss_is_the_cross_entropy_of_what_is_drawn_and_the_divergence() -> None:
    torch.manual_seed(0)
    alpha = torch.tensor([[1.5, 3.0, 1.0], [4.0, 1.0, 2.0]], dtype=torch.float64)
    y = torch.tensor([1, 2])
    true = torch.eye(3, dtype=torch.float64)[y]
    surprise = -(Dirichlet(alpha).sample((200_000,)).log() * true).sum(-1).mean(0)
    others = torch.where(true == 1, 1.0, alpha)
    flat = kl_divergence(Dirichlet(others), Dirichlet(torch.ones_like(others)))
    torch.testing.assert_close(evidence_loss(alpha, y), surprise + PENALTY * flat, atol=0.02, rtol=0)
    alpha.requires_grad_()
    assert torch.autograd.gradcheck(evidence_loss, (alpha, y))


def test_without_evidence_all_classes_are_as_likely_and_nothing_is_known() -> None:
    task = MulticlassClassification("y", classes=(("a", "b", "c"),), uncertainty="evidential")
    shares = torch.tensor([[0.7, 0.2, 0.1]])
    outputs = torch.cat([shares.log().expand(2, -1), torch.tensor([[-50.0], [1e4]])], 1)
    torch.testing.assert_close(task.objective.unscale(outputs)[0], torch.full((3,), 1 / 3).double(), atol=1e-4, rtol=0)
    torch.testing.assert_close(task.objective.unscale(outputs)[1:], shares.double(), atol=1e-3, rtol=0)
    nothing, much = task.answers.vacuity(outputs[:, None])[:, 0]
    assert nothing == pytest.approx(1, abs=1e-4) and much < 1e-3


def test_logits_alone_are_plain_probabilities_and_members_are_averaged() -> None:
    task = MulticlassClassification(("a", "b"), classes=(("x", "y"), ("p", "q", "r")), uncertainty="evidential")
    assert task.objective.out_channels == 7 and task.objective.point.out_channels == 5
    torch.manual_seed(0)
    outputs = torch.randn(4, 2, 7, dtype=torch.float64)  # [m, members, C]
    each = [task.answers.vacuity(outputs[:, [k]]) for k in (0, 1)]
    assert task.answers.vacuity(outputs) == pytest.approx((each[0] + each[1]) / 2)
    assert task.objective.unscale(outputs, None).split([2, 3], -1)[1].sum(-1).numpy() == pytest.approx(1)
    logits = outputs[..., :5]
    torch.testing.assert_close(task.objective.point.unscale(logits, None), task.objective.softmaxes(logits))
