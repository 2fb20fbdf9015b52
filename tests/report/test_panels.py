"""Panels of a report: comparisons, headlines, similarity, thresholds, galleries, and how good a model can get."""

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import f1_score

from gtx.data import similarity
from gtx.kernel import LearningCurve
from gtx.models import kernel_ridge
from gtx.molecules import murcko_scaffold
from gtx.report.comparison import MEAN, compare, comparison_figure, corrected_resampled_t, write_figure
from gtx.report.context import FACTOR, Attainable
from gtx.report.gallery import Gallery
from gtx.report.kinds import number, score
from gtx.report.page import write_report
from gtx.report.panels import value_histogram
from gtx.report.tables import group_scores, groups, headline, neighbours, scaffold_kinds, thresholds
from gtx.tasks import BinaryClassification, Regression
from gtx.tasks.closed_form import fit_closed_form
from gtx.training_data import (
    FEWEST_REPEATED,
    Dataset,
    DataSettings,
    MeasurementNoise,
    load_training_table,
    measure_noise,
)
from gtx.workflow.outputs import attainable_errors
from tests.molecules_for_tests import store

from .conftest import SMILES, SPLIT, additive

METRICS = ("rmse", "mae", "r2")


def test_the_equation() -> None:
    d = [0.2, 0.5, -0.1, 0.3, 0.4]
    found, spread = corrected_resampled_t(d, 0.25), np.sqrt((1 / 5 + 0.25) * np.var(d, ddof=1))
    half = stats.t.ppf(0.975, 4) * spread
    assert found == pytest.approx((0.26, 0.26 - half, 0.26 + half, 2 * (1 - stats.t.cdf(0.26 / spread, 4))))


def test_what_has_no_spread() -> None:
    assert corrected_resampled_t([0.0, 0.0], 0.25) == (0, 0, 0, 1)
    assert corrected_resampled_t([0.5, 0.5], 0.25) == (0.5, 0.5, 0.5, 0)
    assert corrected_resampled_t([0.5], 0.25) == (0.5, None, None, None)
    for nothing in ([], [np.nan, 1.0]):
        with pytest.raises(ValueError, match="finite difference"):
            corrected_resampled_t(nothing, 0.25)


@pytest.fixture
def scores() -> list[dict]:
    """Three splits, two targets; `b` is never measured in the last split."""
    random, splits = np.random.default_rng(0), []
    for split in range(3):
        y = random.normal(size=(20, 2))
        y[:, 1] = np.nan if split == 2 else y[:, 1]
        guesses = {"gtx": y + 0.1 * random.normal(size=y.shape), "ridge": y + random.normal(size=y.shape)}
        guesses["mean"] = np.zeros_like(y)
        splits.append({name: Regression(["a", "b"]).objective.evaluate(y, guess) for name, guess in guesses.items()})
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
    ratios = []
    for split, targets in zip(scores, ("ab", "ab", "a"), strict=True):
        mae = {name: np.array([held["per_target"][t]["mae"] for t in targets]) for name, held in split.items()}
        ratios.append(np.mean(mae["gtx"] / mae["mean"]))
    assert after[MEAN, "mae", "gtx"]["mean"] == pytest.approx(np.mean(ratios))


def test_nothing_measured_is_none_not_zero(scores: list[dict]) -> None:
    (row,) = (row for row in compare(scores[2:], 0.5, ["rmse"]) if (row["target"], row["method"]) == ("b", "ridge"))
    assert row["splits"] == 0 and all(row[name] is None for name in ("mean", "sd", "difference", "low", "high", "p"))


def test_the_picture_shows_what_is_in_the_table(scores: list[dict], tmp_path) -> None:
    table = compare(scores, 0.5, METRICS)
    figure = comparison_figure(scores, table, "rmse", {"ridge": "Ridge"}, "RMSE", {"a": "kcal/mol"})
    (left, right), (sparse, _) = np.array(figure.axes).reshape(2, 2)
    assert [label.get_text() for label in left.get_yticklabels()] == ["gtx", "Ridge"]
    assert left.get_xlabel() == "test RMSE (kcal/mol)" and "below 0 gtx is better" in right.get_xlabel()
    points = [line for line in left.lines if line.get_linestyle() == "None"]
    assert [np.isfinite(line.get_xdata()).sum() for line in points] == [3, 3]
    assert [np.isfinite(line.get_xdata()).sum() for line in sparse.lines if line.get_linestyle() == "None"] == [2, 2]
    ridge = next(row for row in table if row["method"] == "ridge")
    assert points[1].get_xdata().mean() == pytest.approx(ridge["mean"])
    (interval,) = right.collections[0].get_segments()
    assert list(interval[:, 0]) == pytest.approx([ridge["low"], ridge["high"]])
    write_figure(figure, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG") and len(list(tmp_path.iterdir())) == 1


# --- Context.


def test_atoms_and_elements_are_counted(make_report):
    report = replace(make_report(), store=store(["CCO", "[Na+].[Cl-]", "c1ccccc1Cl", "CC"]))
    np.testing.assert_array_equal(report.num_atoms, [3, 2, 7, 2])
    assert report.elements == {"C": 3, "Cl": 2, "O": 1, "Na": 1}
    assert list(report.elements)[:2] == ["C", "Cl"]


# --- A picture that cannot be drawn is left out and said to be; nothing else of the page is lost.


def test_a_picture_that_fails_leaves_a_sentence_and_the_others() -> None:
    gallery = Gallery()
    value_histogram(gallery, {"test": np.arange(9.0)}, "one")
    with gallery.panel("Two of <y>", "Why.", "", "", ""):
        raise ValueError("too many bins")
    value_histogram(gallery, {"test": np.arange(9.0)}, "three")
    first, second, third = gallery.take_panels()
    assert first.startswith("<figure><svg") and third.startswith("<figure><svg")
    missing = '<p class="missing">Two of &lt;y&gt; could not be drawn.</p>'
    assert second == f"<figure>{missing}<figcaption>Why.</figcaption></figure>" and gallery.take_panels() == []
    assert gallery.notes() == ["Two of <y> could not be drawn: ValueError: too many bins"]


def test_one_reason_is_said_once(undrawable: None) -> None:
    gallery = Gallery()
    for row in (1, 2):
        assert gallery.molecule("CCO", f"The molecule of row {row}").startswith('<p class="missing">')
    (note,) = gallery.notes()
    assert note.startswith("2 pictures could not be drawn: RDKit cannot draw molecules on this machine: ")
    assert "apt-get install libxrender1 libxext6 libx11-6" in note


# --- Headline.


def test_one_target_leads_with_its_rmse(make_report):
    report = make_report(targets=("additive",), units={"additive": "eV"})
    found = headline(report)
    assert found.label == "RMSE in eV"
    assert found.text == f"{report.scores['test']['rmse']:#.3g}"
    assert [bar.name for bar in found.bars] == ["This model", "Ridge regression", "Random forest", "Training mean"]
    assert found.bars[0].ours and found.bars[-1].length == 1
    ratio = report.scores["test"]["rmse"] / report.baselines["ridge"]["test"]["rmse"]
    less = f"its RMSE is {number(100 * (1 - ratio))}% lower"
    assert found.verdict == f"This model is better than the best baseline (ridge regression): {less}."


def ends(difference: str) -> list[float]:
    found = re.fullmatch(r"(\S+) to ridge regression, 95% interval (\S+) to (\S+)", difference).groups()
    return [float(number.replace("−", "-")) for number in found]


def test_the_interval_is_of_the_difference_to_the_best_baseline_molecule_by_molecule(make_report):
    """Both make the same large errors, and the model one of its own beside each: the scores are rough, not their
    difference."""
    report = make_report()
    shared = np.random.default_rng(5).normal(size=report.y.shape)
    rivals = {"mean": report.rivals["mean"], "ridge": np.nan_to_num(report.y + shared)}
    for share, verdict in ((0.997, "0.300% lower"), (1.03, "is worse than"), (1.0, "are equally good")):
        found = headline(make_report(rivals=rivals, prediction=np.nan_to_num(report.y + share * shared)))
        assert verdict in found.verdict
        middle, low, high = ends(found.difference)
        assert low <= middle <= high and np.sign(low) == np.sign(high) == np.sign(share - 1)
    other = np.random.default_rng(6).normal(size=report.y.shape)
    found = headline(make_report(rivals=rivals, prediction=np.nan_to_num(report.y + other)))
    middle, low, high = ends(found.difference)
    assert low < 0 < high and "cannot be distinguished" in found.verdict


@pytest.mark.parametrize(("kind", "count"), [(Regression, 9), (BinaryClassification, 1)])
def test_a_few_molecules_have_no_verdict(make_report, kind, count):
    split = {**SPLIT, "test": SPLIT["test"][:count]}
    found = headline(make_report(kind, targets=("letters",), split=split))
    assert found.verdict.startswith("No verdict: ") and found.difference == ""
    assert "10 or more" in found.verdict and f"{count} test" in found.verdict


def test_a_class_that_is_hardly_there_has_no_verdict(make_report):
    report = make_report(BinaryClassification, targets=("letters",))
    report.y[report.split["test"], 0] = np.arange(20) < 3
    found = headline(make_report(BinaryClassification, targets=("letters",), y=report.y))
    assert found.verdict.startswith("No verdict: ") and "of each class 5" in found.verdict


def test_targets_of_several_units_are_compared_with_the_mean_predictor(make_report):
    report = make_report()
    found = headline(report)
    scores, plain = report.scores["test"]["per_target"], report.baselines["mean"]["test"]["per_target"]
    expected = np.mean([scores[name]["rmse"] / plain[name]["rmse"] for name in report.targets])
    assert found.text == f"{expected:#.3g}"
    assert found.bars[-1].length == pytest.approx(1) and found.bars[-1].name == "Training mean"
    assert found.verdict.endswith("Target by target, it scores better than the best baseline for 2 of 2.")
    atoms = headline(replace(report, task=Regression(report.targets, level="atom")))
    assert atoms.label == "R², mean of 2 targets" and atoms.text == f"{report.scores['test']['r2']:.3f}"


def test_what_is_not_defined_is_not_compared(make_report):
    report = make_report(BinaryClassification, targets=("additive",))
    report.y[report.split["test"]] = 1.0
    undefined = {"roc_auc": None, "pr_auc": None, "accuracy": 1.0}
    scores = dict.fromkeys(("train", "val", "test"), undefined | {"per_target": {"additive": undefined}})
    settings = {"targets": ("additive",), "scores": scores, "baselines": {"mean": scores}}
    found = headline(make_report(BinaryClassification, **settings))
    assert found.text == "–" and found.bars == () and found.verdict.startswith("No verdict: ")


def test_a_baseline_may_make_no_error(make_report):
    def scored(rmse):
        return {p: {"rmse": rmse, "per_target": {"additive": {"rmse": rmse}}} for p in ("train", "val", "test")}

    rivals = {"mean": scored(0.0), "ridge": scored(1e-16)}  # a target that is the same everywhere
    for ours, verdict in ((0.0, "equally good"), (0.2, "cannot be distinguished")):
        found = headline(make_report(targets=("additive",), scores=scored(ours), baselines=rivals))
        assert verdict in found.verdict


# --- Similarity.


def test_molecules_are_parted_by_scaffold_and_by_similarity_without_loss(make_report) -> None:
    report = make_report()
    near, kinds = report.nearest, scaffold_kinds(report)
    assert near.rows.tolist() == sorted(SPLIT["test"]) and np.isin(near.neighbour, SPLIT["train"]).all()
    assert (near.similarity > 0).all() and (near.similarity <= 1).all()
    known = {murcko_scaffold(SMILES[row]) for row in SPLIT["train"]}
    for row, kind in zip(near.rows, kinds, strict=True):
        own = murcko_scaffold(SMILES[row])
        assert kind == ("no ring" if not own else "known scaffold" if own in known else "new scaffold")
    scored = group_scores(report, kinds, "ridge")
    assert sum(group["molecules"] for group in scored) == 2 * len(near.rows)
    train = np.nanmean(report.y[SPLIT["train"]], 0)
    for (name, rows), group in zip(groups(near, kinds), scored, strict=True):
        assert group["name"] == name and group["molecules"] == len(rows)
        own = report.task.objective.evaluate(report.y[rows], report.prediction[rows])
        mean = report.task.objective.evaluate(report.y[rows], np.tile(train, (len(rows), 1)))
        shares = [own["per_target"][name]["rmse"] / mean["per_target"][name]["rmse"] for name in report.targets]
        share, r2, *rival = group["scores"].values()  # no mean of RMSE or MAE in two units
        assert share == number(np.mean(shares)) and r2 == score(own["r2"], "r2") and len(rival) == 1
    fresh = make_report(smiles=[*SMILES[:-1], "c1ccc2ccccc2c1"], split={**SPLIT, "test": np.array([len(SMILES) - 1])})
    assert scaffold_kinds(fresh).tolist() == ["new scaffold"]


def test_a_molecule_that_was_not_drawn_has_a_neighbour_too(make_report, monkeypatch) -> None:
    whole, rows = neighbours(make_report(), []), SPLIT["test"].tolist()
    monkeypatch.setattr(similarity, "MOST_SCORED", 5)
    report = make_report()
    assert len(report.nearest.rows) == 5 and neighbours(report, rows) == whole


def test_without_judged_molecules_nothing_is_compared(make_report) -> None:
    report = make_report(split={"train": np.arange(len(SMILES)), "val": np.arange(0), "test": np.arange(0)})
    assert not len(report.nearest.rows) and not list(groups(report.nearest, scaffold_kinds(report)))


# --- Thresholds.


@pytest.fixture
def report(make_report):
    found = make_report(BinaryClassification, targets=("additive",))
    found.prediction[:, 0] = np.random.default_rng(3).beta(2, 2, len(found.prediction)) * 0.7 + 0.3 * found.y[:, 0]
    np.nan_to_num(found.prediction, copy=False)
    return found


def counts(y: np.ndarray, predicted: np.ndarray) -> tuple[int, int, int, int]:
    return tuple(int(((y == i) & (predicted == j)).sum()) for i in (0, 1) for j in (0, 1))


def test_scores_at_a_threshold_are_those_of_its_classes(report) -> None:
    rows = report.measured("test", 0)
    for found in thresholds(report, 0):
        tn, fp, fn, tp = counts(report.y[rows, 0], report.prediction[rows, 0] > found.value)
        recall, precision = tp / (tp + fn), tp / (tp + fp)
        expected = [precision, recall, 2 * tp / (2 * tp + fp + fn), (recall + tn / (tn + fp)) / 2]
        assert list(found.scores.values()) == pytest.approx(expected)
    assert [found.value for found in thresholds(report, 0)][:3] == [0.3, 0.5, 0.7]


def test_two_thresholds_are_the_best_in_validation_and_do_not_look_at_the_test_molecules(report) -> None:
    rows = report.measured("val", 0)
    y, probability = report.y[rows, 0], report.prediction[rows, 0]
    *_, f1, youden = thresholds(report, 0)
    assert (f1.why, youden.why) == ("highest F1", "highest Youden index")
    every = np.concatenate([[0], np.sort(probability)])
    assert f1_score(y, probability > f1.value) == max(f1_score(y, probability > value) for value in every)

    def index(value: float) -> float:
        tn, fp, fn, tp = counts(y, probability > value)
        return tp / (tp + fn) + tn / (tn + fp) - 1

    assert index(youden.value) == pytest.approx(max(map(index, every)))
    report.prediction[SPLIT["test"]] = 0.9
    assert [found.value for found in thresholds(report, 0)][3:] == [f1.value, youden.value]


def test_precision_of_nothing_is_not_defined_and_one_class_has_no_table_and_chooses_nothing(report) -> None:
    report.prediction[SPLIT["test"]] = 0.1
    assert np.isnan(thresholds(report, 0)[1].scores["precision"])
    report.y[SPLIT["val"]] = 1
    assert len(thresholds(report, 0)) == 3
    report.y[SPLIT["test"]] = 1
    assert thresholds(report, 0) == []


# --- Words.


def test_numbers():
    texts = {None: "–", float("nan"): "–", 0: "0", -2.2e-16: "0", 0.29: "0.290", -1.2: "−1.20", 12.34: "12.3"}
    texts |= {345.6: "346", 12345.6: "12,346", 0.00012: "1.2e−04"}
    assert {value: number(value) for value in texts} == texts


# --- How good a model can get: noise of repeats, a forecast not below it, and nothing where nothing is known.


LAW = LearningCurve((200, 400, 800), (0.8, 0.6, 0.4))  # half the error with four times the rows


def test_the_noise_of_pairs_is_their_difference_over_the_root_of_two() -> None:
    random = np.random.default_rng(0)
    true, noise = random.normal(0, 5, 3000), random.normal(0, 0.4, (2, 3000))
    smiles, y = [f"m{i}" for i in range(3000)], true + noise
    found = measure_noise([*smiles, *smiles, "once", None, None, "m0"], np.array([*y[0], *y[1], 3.0, 1.0, 9.0, np.nan]))
    assert found is not None and found.molecules == 3000
    assert found.sd == pytest.approx(np.sqrt(np.mean((y[0] - y[1]) ** 2) / 2))
    assert found.sd == pytest.approx(0.4, rel=0.05)
    copies = measure_noise(smiles[:20] * 3, np.tile(true[:20], 3))
    assert copies == (pytest.approx(0), 20, 20)
    few = smiles[: FEWEST_REPEATED - 1] * 2
    assert measure_noise(few, random.normal(size=len(few))) is None


def test_a_forecast_is_that_of_the_law_but_not_below_the_noise() -> None:
    law = 0.7 / 2**0.5
    assert Attainable(curve=LAW).forecast(0.7, 2) == pytest.approx((800, law / FACTOR, law, law * FACTOR))
    assert Attainable(curve=LAW).forecast(0.7, 1) == (0, 0.7, 0.7, 0.7)
    noisy = Attainable(MeasurementNoise(0.5, 30, 0), LAW).forecast(0.7, 2)
    assert noisy == pytest.approx((800, 0.5, 0.5, law * FACTOR))
    assert Attainable(MeasurementNoise(0.9, 30, 0), LAW).forecast(0.7, 2).error == 0.7  # better than the noise already


def test_the_words_say_what_is_known_and_no_more() -> None:
    words = Attainable(MeasurementNoise(0.3, 30, 4), LAW).describe(0.61, "kcal/mol")
    assert words.startswith("RMSE 0.610 kcal/mol; repeated measurements have a standard deviation of 0.300 (30 mol")
    assert "4 of them with identical values" in words
    more = "800 more training molecules like these (twice as many) would give about 0.431"
    assert f"{more} (90% interval: 0.372 to 0.500)" in words
    assert "more" not in Attainable(MeasurementNoise(0.3, 30, 0)).describe(0.61)
    assert "repeated" not in Attainable(curve=LAW).describe(0.61)
    assert "hardly" in Attainable(curve=LAW._replace(errors=(0.4, 0.4, 0.4))).describe(0.61)
    assert not Attainable()


def test_the_page_shows_it_beside_the_score_and_in_a_picture(make_report, tmp_path) -> None:
    def page(**changes: object) -> str:
        assert write_report(tmp_path / "report.html", make_report(**changes)) == []
        return (tmp_path / "report.html").read_text()

    limits = {"letters": Attainable(MeasurementNoise(0.1, 30, 0), LAW)}
    html = page(attainable=limits)
    assert html.count("How good can it get?") == html.count("RMSE of letters by training rows") == 1
    assert "RMSE of additive by training rows" not in html
    assert "How good can it get?" not in page()


@pytest.fixture(scope="module")
def dataset(tmp_path_factory) -> Dataset:
    """130 molecules, of which 110 train."""
    part = np.full(len(SMILES), "train", dtype=object)
    part[SPLIT["test"][:10]] = "test"
    lines = [f"{smiles},{additive(smiles) + len(smiles) % 3},{k}" for smiles, k in zip(SMILES, part, strict=True)]
    table = tmp_path_factory.mktemp("table") / "chains.csv"
    table.write_text("\n".join(["smiles,y,split", *lines]))
    return load_training_table(DataSettings(str(table), ("y",), split_column="split"))


def test_test_rows_have_no_part_in_the_curve(dataset: Dataset) -> None:
    def curve(dataset: Dataset) -> LearningCurve | None:
        task = Regression(("y",)).fit(dataset.train)
        model = kernel_ridge(1, num_descriptors=dataset.store.descriptors.shape[1])
        fit_closed_form(model, task, dataset.train)
        limits = attainable_errors(task, dataset, model)
        assert attainable_errors(task, replace(dataset, split=dataset.split | {"train": np.arange(3)}), model) == {}
        assert attainable_errors(BinaryClassification(("y",)), dataset, model) == {}
        assert attainable_errors(task, dataset, None) == {}
        return limits["y"].curve

    found = curve(dataset)
    assert found is not None
    assert found.rows[-1] == len(dataset.split["train"])
    y = dataset.store.y.clone()
    y[dataset.split["test"]] = 1000.0
    assert curve(replace(dataset, store=dataset.store.with_targets(y))) == found
    y[dataset.split["train"][0]] += 3
    assert curve(replace(dataset, store=dataset.store.with_targets(y))) != found
