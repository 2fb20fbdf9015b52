"""Tables of results, kept and printed."""

import os
import signal
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from experiments import reactions, results, summary, tables
from experiments.foundation import table
from experiments.summary import ModelRuns, Models, Split, difference, gather
from experiments.tables import RESULTS, Predictions
from gtx.report.comparison import corrected_resampled_t


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
    names = {"folder": "toy", "set": "toy", "split": split, "model": model, "seed": seed, "metric": "rmse"}
    return names | scores | more


def test_seeds_are_averaged_before_splits() -> None:
    row = ModelRuns("toy", "gtx", [result("gtx", 1.0, "a"), result("gtx", 3.0, "a", 1), result("gtx", 5.0, "b")])
    assert (row.scores(), row.mean(), row.counted) == ([2.0, 5.0], 3.5, "2 splits × 1 to 2 seeds")
    assert row.sd() == pytest.approx(4.5**0.5)
    seeds = ModelRuns("toy", "gtx", [result("gtx", 1.0), result("gtx", 2.0, seed=1), result("gtx", 3.0, seed=2)])
    assert (seeds.scores(), seeds.sd(), seeds.counted) == ([1.0, 2.0, 3.0], 1.0, "3 seeds")
    assert ModelRuns("toy", "gtx", [result("gtx", 1.0)]).sd() is None


def predicted(model: str, rows_: str, values: str, seed: int = 0) -> dict:
    at, found = np.array(rows_.split(), int), np.array(values.split(), float)[:, None]
    return result(model, 1.0, seed=seed) | {"predictions": Predictions(at, ("y",), found)}


def test_models_are_compared_on_the_rows_they_share(monkeypatch) -> None:
    monkeypatch.setattr(summary, "measured_values", lambda name, targets: np.array([[9.0], [1.0], [2.0], [3.0]]))
    ours = ModelRuns("toy", "gtx", [predicted("gtx", "1 2 3", "1 2 3"), predicted("gtx", "1 2 3", "2 3 4", 1)])
    theirs = ModelRuns("toy", "mean", [predicted("mean", "1 2 3", "2 3 4")])
    assert summary.difference_text(theirs, ours) == "+0.500 [+0.500, +0.500]"
    early = ModelRuns("toy", "old", [result("old", 1.0)])
    assert summary.difference_text(early, ours) == ""
    rows, targets = predicted("mean", "0 2 3", "2 3 4"), predicted("mean", "1 2 3", "2 3 4")
    targets["predictions"] = targets["predictions"]._replace(names=("z",))
    for other in (rows, targets):
        with pytest.raises(ValueError, match="mean and gtx were tested on different rows or targets"):
            summary.difference_text(ModelRuns("toy", "mean", [other]), ours)


def test_the_best_other_was_run_on_every_split_that_gtx_was() -> None:
    ours = ModelRuns("toy", "gtx", [result("gtx", 1.0, "a"), result("gtx", 1.0, "b")])
    half = ModelRuns("toy", "gine", [result("gine", 0.5, "a")])
    whole = ModelRuns("toy", "mean", [result("mean", 2.0, "a"), result("mean", 2.0, "b")])
    assert results.rivals({row.model: row for row in (ours, half, whole)}) == [whole]
    assert results.rivals({"gine": half}) == [half]


@pytest.mark.parametrize("file", [*tables.RESULTS.glob(tables.RUNS)], ids=lambda file: file.name)  # not in an sdist
def test_the_page_at_hand_was_made_of_the_tables_at_hand(file: Path) -> None:
    runs = tables.predicted_runs(file.parent)
    found = gather(run for run in runs if not reactions.is_run(run))
    written = (tables.ROOT / "experiments" / "RESULTS.md").read_text()
    assert results.overview(found) in written
    assert reactions.page(runs) in written
    for row in (row for models in found.values() for row in models.values() if row.model not in results.PARTS):
        assert f"| {results.title(row)} | {summary.score_text(row)} | {row.counted} |" in written


# --- Runs as tables: what went in comes out, from several processes at once, and from those that were killed.


def run(name: str, **more: object) -> dict:
    return {"recipe": "benchmark", "folder": "toy", "name": name, "model": "gtx", "seed": 0, **more}


def test_a_run_comes_back_as_it_was(tmp_path) -> None:
    key = {"recipe": "benchmark", "folder": "toy"}
    runs = [
        key | {"name": "a", "machine": {"system": "Linux, x86"}, "seed": 0, "resumed": False},
        key | {"name": "b", "test": {"rmse": 0.1 + 0.2, "other": [1, None]}, "settings": {}, "more": 'a "word"\nand'},
        key | {"name": "c", "test": {"rmse": None}, "machine": {"cores": 2}},
    ]
    tables.write(tmp_path / "runs.csv", runs)
    assert tables.read(tmp_path / "runs.csv") == runs
    assert tables.read(tmp_path / "none.csv") == []
    assert (tmp_path / "runs.csv").read_text().startswith("recipe,folder,name,set,split,model,")


def test_predictions_come_back_to_six_digits_in_the_order_they_were_given(tmp_path) -> None:
    random = np.random.default_rng(0)
    rows = random.permutation(50)
    values = random.normal(size=(50, 2)) * 10.0 ** random.integers(-8, 8, (50, 2))
    values[3, 1] = np.nan
    tables.put(tmp_path, run("gtx-0"), Predictions(rows, ("z", "a"), values))
    tables.put(tmp_path, run("gtx-1"), Predictions(rows[:2], ("z",), values[:2, :1], measured=values[:2, :1] / 3))
    one, other = (found["predictions"] for found in tables.predicted_runs(tmp_path))
    assert one.names == ("z", "a") and one.measured is None
    np.testing.assert_array_equal(one.rows, rows)
    np.testing.assert_array_equal(one.values, [[float(f"{value:.6g}") for value in row] for row in values])
    np.testing.assert_array_equal(other.measured, values[:2, :1] / 3)
    frame = pd.read_parquet(tmp_path / tables.PREDICTIONS)
    assert list(frame.columns) == ["folder", "name", "target", "row", "prediction", "measured"] and len(frame) == 102


def test_a_run_made_again_stands_in_the_place_of_the_first(tmp_path) -> None:
    for value in (1.0, 2.0):
        for name in ("gtx-0", "gtx-1"):
            tables.put(tmp_path, run(name, seconds=value), Predictions(np.arange(3), ("y",), np.full((3, 1), value)))
    tables.put(tmp_path, run("gtx-0") | {"recipe": "tuning"})
    found = tables.predicted_runs(tmp_path)
    assert [(one["name"], one["seconds"], one["predictions"].values.sum()) for one in found] == [
        ("gtx-0", 2.0, 6.0),
        ("gtx-1", 2.0, 6.0),
    ]
    assert len(pd.read_parquet(tmp_path / tables.PREDICTIONS)) == 6
    assert [one["name"] for one in tables.runs(tmp_path, "tuning", "toy")] == ["gtx-0"]


def put_until_killed(folder: Path) -> None:
    """Write the predictions of a run, but not its line."""
    tables.write = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    tables.put(folder, run("gtx-1"), Predictions(np.arange(2), ("y",), np.zeros((2, 1))))


def test_a_killed_process_loses_no_other_run(tmp_path) -> None:
    tables.put(tmp_path, run("gtx-0"), Predictions(np.arange(2), ("y",), np.ones((2, 1))))
    process = get_context("fork").Process(target=put_until_killed, args=(tmp_path,))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    (only,) = tables.predicted_runs(tmp_path)
    assert only["name"] == "gtx-0" and only["predictions"].values.sum() == 2
    tables.put(tmp_path, run("gtx-1"), Predictions(np.arange(2), ("y",), np.full((2, 1), 3.0)))  # nobody is locked out
    assert [one["predictions"].values.sum() for one in tables.predicted_runs(tmp_path)] == [2, 6]


@pytest.mark.parametrize("file", [*RESULTS.glob(tables.RUNS)], ids=lambda file: file.name)
def test_the_projects_own_results_are_whole(file: Path, tmp_path) -> None:
    records = tables.read(file)
    tables.write(tmp_path / "again.csv", records)
    assert (tmp_path / "again.csv").read_bytes() == file.read_bytes()
    frame = pd.read_parquet(RESULTS / tables.PREDICTIONS)
    counts = frame.groupby(["folder", "name", "target"], observed=True).size().unstack()
    for one in (record for record in records if record["recipe"] == "benchmark"):
        assert set(counts.loc[one["folder"], one["name"]].dropna()) == {one["rows"]["test"]}, one["name"]
        assert one["test"][one["metric"]] is not None and one["command"].startswith("python -m experiments.")
    assert len({tables._key(one) for one in records}) == len(records)


# --- The page that sets a start from the foundation beside one from scratch.


def models(folder: str, **errors: tuple[float, float]) -> Models:
    """Two runs of each model, by test and validation error; `gtx_default` is gtx-default."""
    y, found = np.linspace(-1, 1, 60)[:, None], {}
    for name, (test, val) in errors.items():
        model = name.replace("_", "-")
        given = Predictions(np.arange(60), ("y",), y + test * np.where(np.arange(60) % 2, 1, -1)[:, None], y)
        each = [result(model, test, seed=seed, val={"rmse": val}, predictions=given) for seed in range(2)]
        found[model] = ModelRuns(folder, model, each)
    return found


def test_validation_rows_choose_and_the_aim_is_that_of_the_chosen() -> None:
    found = {folder: models(folder, gtx=(1.0, 1.0)) for folder in table.AIMS}
    found["scaffold-esol"] = models("scaffold-esol", gtx_default=(0.70, 0.9), gtx_from_foundation=(0.80, 0.8))
    found["moleculeace-a"] = models("moleculeace-a", gtx_default=(0.7, 0.7), gtx_from_foundation=(0.5, 0.5))
    found["moleculeace-b"] = models("moleculeace-b", gtx_default=(0.9, 0.9))
    page = table.page(found)
    line = next(line for line in page.splitlines() if line.startswith("| scaffold-esol | RMSE"))
    # though the other start is below the aim of 0.75 on test rows
    assert "| missed (`gtx train --from foundation`) |" in line and "+0.100 [" in line and "| 0.75 |" in line
    assert f"| test | {np.mean(np.log([0.8 / 0.7, 0.5 / 0.7])):+.1%} [" in page and "| 1 of 2 |" in page
