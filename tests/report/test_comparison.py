from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from gtx.report.comparison import MEAN, compare, comparison_figure, corrected_resampled_t, write_figure
from gtx.tasks import Regression

METRICS = ("rmse", "mae", "r2")


def test_the_equation() -> None:
    d = [0.2, 0.5, -0.1, 0.3, 0.4]
    found = corrected_resampled_t(d, 0.25)
    spread = np.sqrt((1 / 5 + 0.25) * np.var(d, ddof=1))
    assert found.difference == pytest.approx(0.26)
    assert found.p == pytest.approx(2 * (1 - stats.t.cdf(0.26 / spread, 4)))
    assert (found.low + found.high) / 2 == pytest.approx(0.26)
    assert (found.high - found.low) / 2 == pytest.approx(stats.t.ppf(0.975, 4) * spread)


def test_independent_splits_are_the_usual_t_test() -> None:
    d = np.random.default_rng(0).normal(0.3, 1, 12)
    usual = stats.ttest_1samp(d, 0)
    found = corrected_resampled_t(d, 0.0)
    assert found.p == pytest.approx(usual.pvalue)
    assert (found.low, found.high) == pytest.approx(usual.confidence_interval(0.95))


def test_what_has_no_spread() -> None:
    assert corrected_resampled_t([0.0, 0.0], 0.25) == (0, 0, 0, 1)
    assert corrected_resampled_t([0.5, 0.5], 0.25) == (0.5, 0.5, 0.5, 0)
    assert corrected_resampled_t([0.5], 0.25) == (0.5, None, None, None)
    with pytest.raises(ValueError, match="finite difference"):
        corrected_resampled_t([], 0.25)
    with pytest.raises(ValueError, match="finite difference"):
        corrected_resampled_t([np.nan, 1.0], 0.25)


def test_it_allows_for_training_sets_that_overlap() -> None:
    """Two learners that are equally good: the plain t-test finds one better far too often, this one does not."""
    random, folds, repeats, trials = np.random.default_rng(0), 5, 3, 300
    false = {"corrected": 0, "plain": 0}
    for _ in range(trials):
        x = random.normal(size=(60, 2))
        y = x.sum(1) + random.normal(size=60)  # either feature is worth as much
        differences = []
        for _ in range(repeats):
            for test in np.array_split(random.permutation(60), folds):
                train = np.setdiff1d(np.arange(60), test)
                slope = (x[train] * y[train, None]).sum(0) / (x[train] ** 2).sum(0)
                one, other = np.sqrt(((y[test, None] - x[test] * slope) ** 2).mean(0))
                differences.append(one - other)
        false["corrected"] += corrected_resampled_t(differences, 1 / (folds - 1)).p < 0.05
        false["plain"] += stats.ttest_1samp(differences, 0).pvalue < 0.05
    assert false["corrected"] < 0.08 * trials < 0.25 * trials < false["plain"]


@pytest.fixture
def scores() -> list[dict]:
    """Three splits, two targets; `b` is never measured in the last split."""
    random, splits = np.random.default_rng(0), []
    for number in range(3):
        y = random.normal(size=(20, 2))
        y[:, 1] = np.nan if number == 2 else y[:, 1]
        guesses = {"gtx": y + 0.1 * random.normal(size=y.shape), "ridge": y + random.normal(size=y.shape)}
        guesses["mean"] = np.zeros_like(y)
        splits.append({name: Regression(["a", "b"]).evaluate(y, guess) for name, guess in guesses.items()})
    return splits


def test_the_table_has_every_target_metric_and_method(scores: list[dict]) -> None:
    table = compare(scores, 0.5, METRICS)
    assert len(table) == 3 * 3 * 3 and [row["method"] for row in table[:3]] == ["gtx", "ridge", "mean"]
    rows = {(row["target"], row["metric"], row["method"]): row for row in table}
    own, ridge = rows["a", "rmse", "gtx"], rows["a", "rmse", "ridge"]
    assert own["difference"] is None and own["splits"] == 3
    values = np.array([[s[m]["per_target"]["a"]["rmse"] for m in ("gtx", "ridge")] for s in scores])
    assert [own["mean"], ridge["mean"]] == pytest.approx(values.mean(0))
    assert ridge["sd"] == pytest.approx(values[:, 1].std(ddof=1))
    paired = corrected_resampled_t(values[:, 0] - values[:, 1], 0.5)
    assert [ridge[name] for name in paired._fields] == pytest.approx(list(paired)) and ridge["difference"] < 0
    assert rows["b", "rmse", "ridge"]["splits"] == 2  # the others are not defined
    assert rows[MEAN, "rmse", "gtx"]["splits"] == 3
    assert rows["a", "r2", "mean"]["mean"] is not None


def test_errors_in_different_units_are_averaged_as_shares_of_the_mean_predictors(scores: list[dict]) -> None:
    def table(factor: float) -> dict[tuple, dict]:
        """The same with the second target in a unit `factor` times smaller."""
        for split in scores:
            for held in split.values():
                b = held["per_target"]["b"]
                b.update({name: None if b[name] is None else b[name] * factor for name in ("rmse", "mae")})
        return {(r["target"], r["metric"], r["method"]): r for r in compare(scores, 0.5, METRICS)}

    before, after = table(1.0), table(1000.0)
    for key in [key for key in before if key[0] == MEAN]:
        for name in ("mean", "sd", "difference", "p"):
            assert after[key][name] == pytest.approx(before[key][name])
    assert before[MEAN, "rmse", "mean"]["mean"] == pytest.approx(1) and before[MEAN, "rmse", "gtx"]["mean"] < 0.2
    ratios = [
        [s["gtx"]["per_target"][t]["mae"] / s["mean"]["per_target"][t]["mae"] for t in "ab"[: 2 - (n == 2)]]
        for n, s in enumerate(scores)
    ]
    assert after[MEAN, "mae", "gtx"]["mean"] == pytest.approx(np.mean([np.mean(each) for each in ratios]))


def test_nothing_measured_is_none_not_zero(scores: list[dict]) -> None:
    (row,) = [
        row
        for row in compare(scores[2:], 0.5, ["rmse"])
        if (row["target"], row["metric"], row["method"]) == ("b", "rmse", "ridge")
    ]
    assert row["splits"] == 0 and all(row[name] is None for name in ("mean", "sd", "difference", "low", "high", "p"))


def test_the_picture_shows_what_is_in_the_table(scores: list[dict], tmp_path) -> None:
    table = compare(scores, 0.5, METRICS)
    figure = comparison_figure(scores, table, "rmse", {"ridge": "Ridge"}, "RMSE", {"a": "kcal/mol"})
    (left, right), (sparse, _) = np.array(figure.axes).reshape(2, 2)
    assert [label.get_text() for label in left.get_yticklabels()] == ["gtx", "Ridge"]
    assert left.get_xlabel() == "test RMSE (kcal/mol)" and "below 0 gtx is better" in right.get_xlabel()
    points = [line for line in left.lines if line.get_linestyle() == "None"]
    assert [len(line.get_xdata()) for line in points] == [3, 3]
    assert [len(line.get_xdata()) for line in sparse.lines if line.get_linestyle() == "None"] == [2, 2]
    ridge = next(row for row in table if row["method"] == "ridge")
    assert points[1].get_xdata().mean() == pytest.approx(ridge["mean"])
    assert list(right.lines[0].get_xdata()) == pytest.approx([ridge["low"], ridge["high"]])
    write_figure(figure, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG") and len(list(tmp_path.iterdir())) == 1
