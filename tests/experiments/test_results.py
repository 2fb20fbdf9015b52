"""Rows, differences and the page made of results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import r2_score, roc_auc_score

from experiments import results, summary, tables
from experiments.summary import SCORES, ModelRuns, Split, difference
from experiments.tables import Predictions
from gtx.report.comparison import corrected_resampled_t


def test_weighted_scores_are_those_of_repeated_molecules() -> None:
    random = np.random.default_rng(0)
    y, p = random.integers(0, 2, 40).astype(float), random.integers(0, 9, 40) / 8  # many ties
    weights = random.multinomial(40, np.full(40, 1 / 40), 20)
    for weight, auc, r2, mae in zip(
        weights, *(SCORES[name](y, p, weights) for name in ("roc_auc", "r2", "mae")), strict=True
    ):
        again, told = y.repeat(weight), p.repeat(weight)
        assert auc == pytest.approx(roc_auc_score(again, told))
        assert r2 == pytest.approx(r2_score(again, told))
        assert mae == pytest.approx(np.abs(again - told).mean())
    assert np.isnan(SCORES["roc_auc"](np.ones(3), np.arange(3.0), np.ones((1, 3)))).all()


def made(seed: int, noise: float, n: int = 200) -> Split:
    random = np.random.default_rng(seed)
    y = random.normal(size=(n, 2))
    y[::9, 0] = np.nan
    return Split(y, y + random.normal(size=(2, n, 2)), y + noise * random.normal(size=(3, n, 2)))


def test_a_difference_is_that_of_mean_scores_and_its_interval_knows_what_is_noise() -> None:
    worse, alike = difference([made(0, 0.5)], "rmse"), difference([made(0, 1.0)], "rmse")
    assert 0.3 < worse.low < worse.value < worse.high < 0.7
    assert alike.low < 0 < alike.high
    split = made(0, 0.5)
    clean = np.nan_to_num(split.y - split.one)
    first = np.sqrt((clean**2).sum(1) / (~np.isnan(split.y)).sum(0)).mean()
    other = np.sqrt((np.nan_to_num(split.y - split.other) ** 2).sum(1) / (~np.isnan(split.y)).sum(0)).mean()
    assert difference([split], "rmse").value == pytest.approx(first - other)


def test_splits_that_share_molecules_widen_the_interval() -> None:
    splits = [made(seed, 0.9) for seed in range(6)]
    gaps = [difference([split], "rmse").value for split in splits]
    found = difference(splits, "rmse", 1 / 9)
    expected = corrected_resampled_t(gaps, 1 / 9)
    assert found == pytest.approx((np.mean(gaps), expected.low, expected.high))
    assert found.high - found.low > difference(splits, "rmse", 0.0).high - difference(splits, "rmse", 0.0).low
    with pytest.raises(ValueError, match="expected the ratio of test rows to others for 6 splits"):
        difference(splits, "rmse")


def result(model: str, value: float, split: str = "split", seed: int = 0, **more: object) -> dict:
    scores = {part: {"rmse": value} for part in ("train", "val", "test")}
    return {
        "folder": "toy",
        "set": "toy",
        "split": split,
        "model": model,
        "seed": seed,
        "metric": "rmse",
        **scores,
        **more,
    }


def test_seeds_are_averaged_before_splits() -> None:
    row = ModelRuns("toy", "gtx", [result("gtx", 1.0, "a"), result("gtx", 3.0, "a", 1), result("gtx", 5.0, "b")])
    assert (row.scores(), row.mean(), row.counted) == ([2.0, 5.0], 3.5, "2 splits × 1 to 2 seeds")
    assert row.sd() == pytest.approx(4.5**0.5)
    seeds = ModelRuns("toy", "gtx", [result("gtx", 1.0), result("gtx", 2.0, seed=1), result("gtx", 3.0, seed=2)])
    assert (seeds.scores(), seeds.sd(), seeds.counted) == ([1.0, 2.0, 3.0], 1.0, "3 seeds")
    assert ModelRuns("toy", "gtx", [result("gtx", 1.0)]).sd() is None


def put(folder: Path, name: str, **values: object) -> None:
    known = dict(zip(("recipe", "folder", "name"), ("benchmark", *name.split("/")), strict=True))
    tables.put(folder, result(known["name"].rsplit("-", 1)[0], **values) | known)


def test_the_page_holds_whatever_there_is(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    assert "## Aims and results" in results.results_page(folder, data=False)
    command = "python -m experiments.scaffold --sets esol --models {} --seeds {}"
    for seed, value in enumerate((0.70, 0.80)):
        put(folder, f"scaffold-esol/gtx-{seed}", value=value, seed=seed, command=command.format("gtx", seed))
    put(folder, "scaffold-esol/gtx-0", value=0.70, seed=0, command=command.format("gtx", 0))  # made again
    put(folder, "scaffold-esol/mean-0", value=2.0, command=command.format("mean", 0), parameters=1234)
    put(folder, "scaffold-esol/gtx-without-local-0", value=0.9, command=command.format("gtx-without-local", 0))
    tables.put(folder, {"recipe": "tuning", "folder": "mat-freesolv", "name": "gine-0", "val": {"loss": 0.1}})
    page = results.results_page(folder, data=False)
    lines = page.splitlines()
    first = next(line for line in lines if line.startswith("| ESOL, scaffold split"))
    assert "| 0.750 ± 0.071 | 0.78 | reached |  | 0.75 |  | mean of the training rows: 2.000 |" in first
    assert "Test rows were scored 5 times, 4 of them for gtx" in page
    row = next(line for line in lines if line.startswith("| gtx, the network alone"))
    assert "| 2 seeds |" in row
    assert "`python -m experiments.scaffold --sets esol --models gtx --seeds 0 1`" in row
    assert "1,234" in next(line for line in lines if line.startswith("| mean of the training rows"))
    part = next(line for line in lines if line.startswith("| without message passing over bonds"))
    assert part.startswith("| without message passing over bonds | 0.900 | 1 run | 0.900 | 0.700 | 0.700 |")  # seed 0's


def test_an_aim_may_be_a_share_of_another_models_score(tmp_path: Path) -> None:
    command = "python -m experiments.qm --sets qm9-u0 --models {} --splits {}"
    for split, value in ((0, 0.7), (2, 0.9)):
        more = {"split": f"random {split}", "seed": split, "command": command.format("gtx", split)}
        put(tmp_path / "results", f"qm9-u0/gtx-{split}", value=value, **more)
    page = results.results_page(tmp_path / "results", data=False)
    title = results.AIMS["qm9-u0"].title
    assert f"| {title} | MAE, kcal/mol | 0.800 ± 0.141 |  |  |" in page  # SchNet was not measured
    assert f"`{command.format('gtx', '0 2')}`" in page
    for split in (0, 2):
        put(tmp_path / "results", f"qm9-u0/schnet-{split}", value=2.0, split=f"random {split}", title="SchNet")
    assert f"| {title} | MAE, kcal/mol | 0.800 ± 0.141 | 1.6 | reached |" in results.results_page(
        tmp_path / "results", False
    )


def test_the_readme_has_the_short_form(tmp_path: Path) -> None:
    put(tmp_path, "scaffold-esol/gtx-0", value=0.70)
    put(tmp_path, "scaffold-esol/mean-0", value=2.0)
    put(tmp_path, "scaffold-bbbp/mean-0", value=2.0)  # gtx was not run there
    table = results.short(results.gather(tmp_path))
    line = "| ESOL, scaffold split | RMSE, log mol/L, lower is better |  | 0.700 (1 run) |  | mean of"
    assert line in table and "BBBP" not in table
    readme = f"before\n{results.BEGIN}\nold\n{results.END}\nafter\n"
    assert results.into(readme, results.BEGIN, table) == f"before\n{results.BEGIN}\n{table}\n{results.END}\nafter\n"


def test_more_is_better_for_some_metrics() -> None:
    def row(model: str, value: float) -> ModelRuns:
        return ModelRuns("toy", model, [result(model, value) | {"metric": "roc_auc", "test": {"roc_auc": value}}])

    assert summary.verdict(row("gtx", 0.9), 0.8) == "reached"
    assert summary.verdict(row("gtx", 0.7), 0.8) == "missed"
    assert [one.model for one in summary.ranked([row("a", 0.6), row("b", 0.9)])] == ["b", "a"]


def predicted(model: str, rows_: str, values: str, seed: int = 0) -> dict:
    at, found = np.array(rows_.split(), int), np.array(values.split(), float)[:, None]
    return result(model, 1.0, seed=seed) | {"predictions": Predictions(at, ("y",), found)}


def test_models_are_compared_on_the_rows_they_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary, "measured_values", lambda name, targets: np.array([[9.0], [1.0], [2.0], [3.0]]))
    ours = ModelRuns("toy", "gtx", [predicted("gtx", "1 2 3", "1 2 3"), predicted("gtx", "1 2 3", "2 3 4", 1)])
    theirs = ModelRuns("toy", "mean", [predicted("mean", "1 2 3", "2 3 4")])
    assert summary.difference_text(theirs, ours) == "+0.500 [+0.500, +0.500]"
    early = ModelRuns("toy", "old", [result("old", 1.0)])
    assert summary.difference_text(early, ours) == ""
    others = ModelRuns("toy", "mean", [predicted("mean", "0 2 3", "2 3 4")])
    with pytest.raises(ValueError, match="mean and gtx were tested on different rows"):
        summary.difference_text(others, ours)


def test_the_best_other_was_run_on_every_split_that_gtx_was() -> None:
    ours = ModelRuns("toy", "gtx", [result("gtx", 1.0, "a"), result("gtx", 1.0, "b")])
    half = ModelRuns("toy", "gine", [result("gine", 0.5, "a")])
    whole = ModelRuns("toy", "mean", [result("mean", 2.0, "a"), result("mean", 2.0, "b")])
    assert results.rivals({row.model: row for row in (ours, half, whole)}) == [whole]
    assert results.rivals({"gine": half}) == [half]


@pytest.mark.parametrize("file", [*tables.RESULTS.glob(tables.RUNS)], ids=lambda file: file.name)  # not in an sdist
def test_the_page_at_hand_was_made_of_the_tables_at_hand(file: Path) -> None:
    found = results.gather(file.parent)
    written = (tables.ROOT / "experiments" / "RESULTS.md").read_text()
    assert results.overview(found) in written and results.INTRODUCTION in written
    for row in (row for rows_ in found.values() for row in rows_ if row.model not in results.PARTS):
        assert f"| {results.title(row)} | {summary.score_text(row)} | {row.counted} |" in written
