from __future__ import annotations

import itertools
import re
import warnings
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from gtx.report import figures
from gtx.report import figures as spread_figures
from gtx.report.molecules import COLOURS, inline
from gtx.tasks.calibration import conformal_half_width

STYLE_SHEET = Path(figures.__file__).with_name("style.css")


def parse(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(str(svg).replace("<svg ", '<svg xmlns:xlink="http://www.w3.org/1999/xlink" ', 1))


def random(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=n)


def lines(figure) -> list[np.ndarray]:
    return [line.get_xydata() for line in figure.axes[0].lines]


def test_pictures_take_the_colours_and_the_font_of_the_page():
    svg = inline(figures.parity(random(20), random(20, 1), "test", "y (eV)"), "parity")
    assert "var(--test)" in svg and "var(--ink)" in svg
    assert not any(colour in svg for colour in COLOURS.values())
    assert "font-family" not in svg and "<style" not in svg
    texts = [text.text for text in parse(svg).iter("text")]
    assert "measured y (eV)" in texts and "predicted y (eV)" in texts


def test_words_can_be_read_at_the_width_of_a_page_and_long_names_take_two_lines():
    name = "measured log solubility in mols per litre"
    svg = inline(figures.parity(random(20), random(20, 1), "test", name, ["RMSE 1.41"], ["20 molecules"]), "parity")
    narrowest = float(re.search(r"\.panels \{.*min\(100%, (\d+)rem\)", STYLE_SHEET.read_text())[1]) * 16  # pixels
    sizes = [float(size) for size in re.findall(r"font(?:-size)?: (?:bold )?([\d.]+)px", svg)]
    width = float(parse(svg).get("viewBox").split()[2])
    assert len(sizes) > 10 and min(sizes) * narrowest / width >= 12
    texts = [text.text for text in parse(svg).iter("text")]
    assert "predicted measured log solubility" in texts and "in mols per litre" in texts


def test_pictures_of_one_page_do_not_share_ids_they_refer_to():
    pictures = [inline(figures.parity(random(9), random(9, seed), "test", "y"), f"no {seed}") for seed in (1, 2)]
    first, second = ({element.get("id") for element in parse(svg).iter()} - {None} for svg in pictures)
    assert first and not first & second


@pytest.mark.parametrize("name", ["$x_y$", "<b>&", "溶解度"])
def test_any_name_is_shown_as_it_is(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        svg = inline(figures.parity(random(9), random(9, 1), "test", name), f"of {name}")
    tree = parse(svg)
    assert tree.get("aria-label") == f"of {name}"
    assert f"measured {name}" in [text.text for text in tree.iter("text")]


@pytest.mark.parametrize("n", [1, 30_000])
def test_a_parity_plot_stays_small_and_has_every_point_in_sight(n):
    y, prediction = random(n), random(n, 1)
    figure = figures.parity(y, prediction, "test", "y", ["RMSE 1.41"], low=prediction - 1, high=prediction + 1)
    assert len(inline(figure, "parity")) < 200_000
    (left, right), (bottom, top) = figure.axes[0].get_xlim(), figure.axes[0].get_ylim()
    assert (left, right) == (bottom, top)
    assert left < min(y.min(), prediction.min()) and right > max(y.max(), prediction.max())


def test_coverage_agrees_with_split_conformal_intervals():
    errors = {"val": random(200), "test": 1.5 * random(300, 1)}
    ones = {part: np.full(len(error), 0.7) for part, error in errors.items()}
    curve = lines(figures.coverage(ones, errors, 0.9))[0]
    for level in (0.1, 0.5, 0.9, 0.95):
        width = conformal_half_width(errors["val"][:, None], np.zeros((200, 1)), level)[0]
        found = curve[np.isclose(curve[:, 0], level), 1]
        assert found == pytest.approx([np.mean(np.abs(errors["test"]) <= width)])
    assert tuple(curve[0]) == (0, 0) and tuple(curve[-1]) == (1, 1)


def test_coverage_marks_the_models_own_intervals():
    errors = {"val": random(200), "test": random(300, 1)}
    halfwidths = {part: np.linspace(0.5, 2, len(error)) for part, error in errors.items()}
    mark = lines(figures.coverage(halfwidths, errors, 0.8))[1]
    assert mark[0] == pytest.approx([0.8, np.mean(np.abs(errors["test"]) <= halfwidths["test"])])


def test_curves_of_classes_and_none_for_a_part_of_one_class():
    y = {"val": np.ones(30), "test": (random(60) > 0).astype(float)}
    probability = {"val": np.full(30, 0.5), "test": np.clip(0.5 + random(60) / 4, 0, 1)}
    notes = {"val": "–", "test": "1.000"}
    roc = figures.roc(y, probability, notes)
    assert roc.axes[0].get_legend_handles_labels()[1] == ["test 1.000"]
    x, up = lines(roc)[0].T
    assert np.trapezoid(up, x) == pytest.approx(1.0)  # the probabilities follow what made the classes
    for draw in (lambda: figures.precision_recall(y, probability, notes), lambda: figures.reliability(y, probability)):
        assert parse(inline(draw(), "classes")) is not None
    nothing = figures.roc({"val": y["val"]}, probability, notes)
    assert nothing.axes[0].get_legend() is None


def test_a_confusion_matrix_counts_true_classes_in_rows():
    figure = figures.confusion(np.array([0, 0, 0, 0, 1, 1]), np.array([0, 0, 0, 1, 1, 1]), ["inactive", "active"])
    texts = [text.text for text in parse(inline(figure, "confusion")).iter("text")]
    cells = [words for words in texts if words and words[0].isdigit()]
    assert cells == ["3", "75%", "1", "25%", "0", "0%", "2", "100%"] and texts.count("inactive") == 2


@pytest.mark.parametrize("count", [6, 100])
def test_names_and_counts_of_many_classes_do_not_overlap(count):
    y = np.arange(4 * count) % count
    figure = figures.confusion(y, np.roll(y, 1), [f"a class with a long name, {i}" for i in range(count)])
    assert len(inline(figure, "confusion")) < 60_000
    boxes = [
        [text.get_window_extent() for text in texts]
        for texts in (figure.axes[0].get_yticklabels(), figure.axes[0].get_xticklabels(), figure.axes[0].texts)
    ]
    for box in boxes:
        assert not any(one.overlaps(other) for one, other in itertools.combinations(box, 2))
    assert len(boxes[2]) == (count**2 if count <= 6 else 0)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("classes", [False, True])
def test_the_error_by_similarity_is_a_mean_in_bins_of_as_many(classes):
    similarity, errors = np.linspace(0.2, 1, 60), np.abs(random(60))
    errors = (errors > 1).astype(float) if classes else errors
    outline = figures.by_similarity(similarity, errors, "error", "test").axes[0].patches[0].get_data()
    assert outline.values == pytest.approx(errors.reshape(3, 20).mean(axis=1))
    assert outline.edges[[0, -1]] == pytest.approx([0.2, 1])
    for same in (similarity[:1], np.ones(60)):
        zero = figures.by_similarity(same, np.zeros(len(same)), "error", "test")
        parse(inline(zero, "similarity"))


def test_learning_curves_leave_out_what_was_not_logged():
    histories = [[{"epoch": e, "train_loss": 1.0 / (e + 1)} for e in range(4)] for _ in range(2)]
    histories[0][2]["val_loss"] = 0.7
    histories[0][3]["val_loss"] = np.nan
    figure = figures.learning_curve(histories, {"train_loss": "train", "val_loss": "val"}, "Loss", [2], log=True)
    assert [len(line) for line in lines(figure)] == [4, 4, 1, 2]  # two members, one value, the mark
    assert "0.5" in [text.text for text in parse(inline(figure, "loss")).iter("text")]


def test_histograms_are_shares_of_their_part():
    values = {"train": random(900), "val": random(50, 1), "test": np.array([0.0])}
    for figure in (
        figures.value_histogram(values, "y"),
        figures.error_histogram(values, "eV"),
        figures.size_histogram({part: np.round(10 * np.abs(column)) for part, column in values.items()}),
    ):
        outlines = [patch for patch in figure.axes[0].patches if not patch.get_fill()]
        assert [patch.get_data().values.sum() for patch in outlines] == pytest.approx([1, 1, 1])
        parse(inline(figure, "histogram"))


def test_a_spread_that_is_true_lies_on_the_diagonal():
    std = {part: np.random.default_rng(0).uniform(0.2, 2, 2000) for part in ("val", "test")}
    errors = {part: one * random(2000, k) for k, (part, one) in enumerate(std.items())}
    drawn = lines(spread_figures.spread_reliability(std, errors, "eV"))
    for points in drawn[:2]:
        np.testing.assert_allclose(points[:, 1], points[:, 0], rtol=0.2)
    assert not np.allclose(lines(spread_figures.spread_reliability(std, std, ""))[0][:, 1], drawn[0][:, 1], rtol=0.001)


def test_coverage_by_similarity_is_the_share_inside():
    similarity = np.linspace(0, 1, 100)
    figure = spread_figures.coverage_by_similarity(similarity, similarity > 0.5, 2 - similarity, 0.9, "test", "eV")
    points = next(points for points in lines(figure) if len(points) == 5)
    np.testing.assert_allclose(points[:, 1], [0, 0, 0.5, 1, 1], atol=0.01)
    assert next(text.get_text() for text in figure.axes[0].texts) == "1.90"
    spread_figures.coverage_by_similarity(np.ones(1), np.ones(1, bool), np.ones(1), 0.9, "val", "")
