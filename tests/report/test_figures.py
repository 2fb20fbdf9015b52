from __future__ import annotations

import warnings
from xml.etree import ElementTree

import numpy as np
import pytest

from gtx.report import figures
from gtx.report.molecules import COLOURS, inline
from gtx.tasks.calibration import conformal_half_width


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
