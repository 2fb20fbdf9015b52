"""Rows, differences and the page made of results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import r2_score, roc_auc_score

from experiments import archive, forest_average, model_comparison, results
from experiments.archive import KeptPredictions
from experiments.paired import SCORES, Split, difference
from experiments.summary import ModelRuns, rows
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


def test_a_model_does_not_differ_from_itself() -> None:
    split = made(0, 1.0)
    assert difference([split._replace(other=split.one)], "mae") == (0.0, 0.0, 0.0)


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


def test_a_score_has_no_more_decimals_than_it_is_worth() -> None:
    for values, text in (((0.7, 0.8), "0.750 ± 0.071"), ((222.0, 221.0), "221.5 ± 0.7"), ((9.9994,), "9.999")):
        row = ModelRuns("toy", "gtx", [result("gtx", value, seed=seed) for seed, value in enumerate(values)])
        assert results.score_text(row) == text


def put(folder: Path, name: str, **values: object) -> None:
    known = dict(zip(("recipe", "folder", "name"), ("benchmark", *name.split("/")), strict=True))
    archive.put(folder, result(known["name"].rsplit("-", 1)[0], **values) | known)


def test_the_page_holds_whatever_there_is(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    assert "## Aims and results" in results.results_page(folder, data=False)
    command = "python -m experiments.scaffold --sets esol --models {} --seeds {}"
    for seed, value in enumerate((0.70, 0.80)):
        put(folder, f"scaffold-esol/gtx-{seed}", value=value, seed=seed, command=command.format("gtx", seed))
    put(folder, "scaffold-esol/mean-0", value=2.0, command=command.format("mean", 0), parameters=1234)
    put(folder, "scaffold-esol/gtx-without-local-0", value=0.9, command=command.format("gtx-without-local", 0))
    archive.put(folder, {"recipe": "tuning", "folder": "mat-freesolv", "name": "gine-0", "val": {"loss": 0.1}})
    (folder / "test_evaluations.csv").write_text("folder,model\n" + "scaffold-esol,gtx\n" * 3 + "scaffold-esol,mean\n")
    page = results.results_page(folder, data=False)
    lines = page.splitlines()
    first = next(line for line in lines if line.startswith("| ESOL, scaffold split"))
    assert "| 0.750 ± 0.071 | 0.78 | reached |  | 0.75 |  | mean of the training rows: 2.000 |" in first
    assert "Test rows were scored 4 times, 3 of them for gtx" in page
    row = next(line for line in lines if line.startswith("| gtx, the network alone"))
    assert "| 2 seeds |" in row
    assert "`python -m experiments.scaffold --sets esol --models gtx --seeds 0 1`" in row
    assert "1,234" in next(line for line in lines if line.startswith("| mean of the training rows"))
    part = next(line for line in lines if line.startswith("| without message passing over bonds"))
    assert part.startswith("| without message passing over bonds | 0.900 | 1 run | 0.900 | 0.700 | 0.700 |")  # seed 0's
    assert (folder / "figures" / "scaffold-esol.svg").read_text().count("<svg") == 1


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
    assert results.into(readme, table) == f"before\n{results.BEGIN}\n{table}\n{results.END}\nafter\n"


def test_more_is_better_for_some_metrics() -> None:
    def row(model: str, value: float) -> ModelRuns:
        return ModelRuns("toy", model, [result(model, value) | {"metric": "roc_auc", "test": {"roc_auc": value}}])

    assert results.verdict(row("gtx", 0.9), 0.8) == "reached"
    assert results.verdict(row("gtx", 0.7), 0.8) == "missed"
    assert [one.model for one in results.ranked([row("a", 0.6), row("b", 0.9)])] == ["b", "a"]


def test_the_same_results_give_the_same_picture(tmp_path: Path) -> None:
    put(tmp_path / "results", "scaffold-esol/gtx-0", value=0.7)
    pictures = []
    for _ in range(2):
        results.results_page(tmp_path / "results", data=False)
        pictures.append((tmp_path / "results" / "figures" / "scaffold-esol.svg").read_bytes())
    assert pictures[0] == pictures[1]


def predicted(model: str, rows_: str, values: str, seed: int = 0) -> dict:
    at, found = np.array(rows_.split(), int), np.array(values.split(), float)[:, None]
    return result(model, 1.0, seed=seed) | {"predictions": KeptPredictions(at, ("y",), found)}


def test_models_are_compared_on_the_rows_they_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_comparison, "truth", lambda name, targets: np.array([[9.0], [1.0], [2.0], [3.0]]))
    ours = ModelRuns("toy", "gtx", [predicted("gtx", "1 2 3", "1 2 3"), predicted("gtx", "1 2 3", "2 3 4", 1)])
    theirs = ModelRuns("toy", "mean", [predicted("mean", "1 2 3", "2 3 4")])
    assert model_comparison.difference_text(theirs, ours) == "+0.500 [+0.500, +0.500]"
    early = ModelRuns("toy", "old", [result("old", 1.0)])
    assert model_comparison.difference_text(early, ours) == ""
    others = ModelRuns("toy", "mean", [predicted("mean", "0 2 3", "2 3 4")])
    with pytest.raises(ValueError, match="mean and gtx were tested on different rows"):
        model_comparison.difference_text(others, ours)


def test_the_mean_with_a_forest_is_scored_on_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_comparison, "truth", lambda name, targets: np.array([[1.0], [2.0], [3.0]]))
    ours = [predicted("gtx", "0 1 2", values, seed) for seed, values in enumerate(("1 2 4", "1 2 7", "1 2 3"))]
    forests = {
        name: [predicted(name, "0 1 2", values, seed) for seed, values in enumerate(("1 2 2", "1 2 -1"))]
        for name in forest_average.FORESTS
    }
    each = {"gtx": ours, **forests}
    found = {"scaffold-esol": [ModelRuns("scaffold-esol", model, [*runs]) for model, runs in each.items()]}
    # of the means the first two hit every value; the third (of the third run and the first forest) is half off
    errors = (1 + 4 + 0) / 3**0.5 / 3, 0.5 / 3**0.5 / 3
    gap = errors[1] - errors[0]
    line = forest_average.forest_average_section(found).splitlines()[-1]
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[:4] == [
        "ESOL, scaffold split",
        "1.000",
        "1.000",
        f"{1 + gap:.3f}",
    ]  # 1 is what the runs say of themselves
    assert cells[4].startswith(f"{gap:+.3f} [") and cells[5:] == cells[2:5]
    assert forest_average.forest_average_section({"scaffold-esol": found["scaffold-esol"][:2]}) == ""


def test_what_is_there_is_read_by_set_and_model(tmp_path: Path) -> None:
    for number in range(3):
        put(tmp_path, f"toy/gtx-{number}", value=float(number), seed=2 - number)
    (row,) = rows(archive.runs(tmp_path))
    assert [one["seed"] for one in row.results] == [0, 1, 2]


def test_the_best_other_was_run_on_every_split_that_gtx_was() -> None:
    ours = ModelRuns("toy", "gtx", [result("gtx", 1.0, "a"), result("gtx", 1.0, "b")])
    half = ModelRuns("toy", "gine", [result("gine", 0.5, "a")])
    whole = ModelRuns("toy", "mean", [result("mean", 2.0, "a"), result("mean", 2.0, "b")])
    assert results.rivals({row.model: row for row in (ours, half, whole)}) == [whole]
    assert results.rivals({"gine": half}) == [half]


@pytest.mark.parametrize("file", [*archive.RESULTS.glob(archive.RUNS)], ids=lambda file: file.name)  # not in an sdist
def test_the_page_at_hand_was_made_of_the_tables_at_hand(file: Path) -> None:
    found = results.gather(file.parent)
    written = (archive.ROOT / "experiments" / "RESULTS.md").read_text()
    assert results.overview(found) in written and results.INTRODUCTION in written
    for row in (row for rows_ in found.values() for row in rows_ if row.model not in results.PARTS):
        assert f"| {results.title(row)} | {results.score_text(row)} | {row.counted} |" in written
