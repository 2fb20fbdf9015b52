import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.axes import Axes

from gtx.report import panels
from gtx.report.gallery import COLOURS, Gallery
from gtx.report.panels import TargetPredictions
from gtx.tasks.uncertainty import conformal_half_width

pytestmark = pytest.mark.usefixtures("written_pictures")


def parse(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(str(svg).replace("<svg ", '<svg xmlns:xlink="http://www.w3.org/1999/xlink" ', 1))


def random(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=n)


def predictions(y: np.ndarray, prediction: np.ndarray, **more: Any) -> TargetPredictions:
    """Predictions of the target y for test molecules."""
    return TargetPredictions(**{"name": "y", "y": {"test": y}, "prediction": {"test": prediction}} | more)


class AxesGallery(Gallery):
    """Keeps the axes of its panels, beside what becomes of them."""

    def __init__(self) -> None:
        super().__init__()
        self.axes: list[Axes] = []

    @contextmanager
    def panel(self, *words: str, **shape: Any) -> Iterator[Axes]:
        with super().panel(*words, **shape) as axes:
            self.axes.append(axes)
            yield axes


def draw(function: Callable[..., None], *arguments: object) -> tuple[Axes, str]:
    """The axes of one panel, and its SVG."""
    gallery = AxesGallery()
    function(gallery, *arguments)
    assert gallery.notes() == []
    (axes,), (panel,) = gallery.axes, gallery.take_panels()
    return axes, re.search("<svg.*</svg>", panel, re.DOTALL)[0]


def lines(axes: Axes) -> list[np.ndarray]:
    return [line.get_xydata() for line in axes.lines]


def test_pictures_take_the_colours_and_the_font_of_the_page():
    svg = draw(panels.parity, predictions(random(20), random(20, 1), unit="eV"), "test")[1]
    assert "var(--test)" in svg and "var(--ink)" in svg
    assert not any(colour in svg for colour in COLOURS.values())
    assert "font-family" not in svg and "<style" not in svg
    texts = [text.text for text in parse(svg).iter("text")]
    assert "measured y (eV)" in texts and "predicted y (eV)" in texts


@pytest.mark.parametrize("name", ["$x_y$", "<b>&", "溶解度"])
def test_any_name_is_shown_as_it_is(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tree = parse(draw(panels.parity, predictions(random(9), random(9, 1), name=name), "test")[1])
    assert tree.get("aria-label") == f"Predicted against measured {name}, test"
    assert f"measured {name}" in [text.text for text in tree.iter("text")]


@pytest.mark.parametrize("n", [1, 30_000])
def test_a_parity_plot_stays_small_and_has_every_point_in_sight(n):
    y, prediction = random(n), random(n, 1)
    intervals = {"low": {"test": prediction - 1}, "high": {"test": prediction + 1}}
    axes, svg = draw(panels.parity, predictions(y, prediction, **intervals), "test")
    assert len(svg) < 200_000
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    assert (left, right) == (bottom, top)
    assert left < min(y.min(), prediction.min()) and right > max(y.max(), prediction.max())


def test_coverage_agrees_with_split_conformal_intervals():
    errors = {"val": random(200), "test": 1.5 * random(300, 1)}
    zeros, ones = ({part: np.full(len(error), x) for part, error in errors.items()} for x in (0.0, 0.7))
    low, high = ({part: errors[part] + sign * ones[part] for part in errors} for sign in (-1, 1))
    target = TargetPredictions(name="y", y=zeros, prediction=errors, low=low, high=high)
    curve = lines(draw(panels.coverage, target)[0])[0]
    for level in (0.1, 0.5, 0.9, 0.95):
        width = conformal_half_width(errors["val"][:, None], np.zeros((200, 1)), level)[0]
        found = curve[np.isclose(curve[:, 0], level), 1]
        assert found == pytest.approx([np.mean(np.abs(errors["test"]) <= width)])
    assert tuple(curve[0]) == (0, 0) and tuple(curve[-1]) == (1, 1)


def test_curves_of_classes_and_none_for_a_part_of_one_class():
    y = {"val": np.ones(30), "test": (random(60) > 0).astype(float)}
    probability = {"val": np.full(30, 0.5), "test": np.clip(0.5 + random(60) / 4, 0, 1)}
    scores = {"val": {"roc_auc": None, "pr_auc": None}, "test": {"roc_auc": 1.0, "pr_auc": 1.0}}
    gallery = AxesGallery()
    target = TargetPredictions(name="y", y=y, prediction=probability, scores=scores)
    panels.curve_panels(gallery, target)
    roc, *_ = gallery.axes
    assert roc.get_legend_handles_labels()[1] == ["test 1.000"]
    x, up = lines(roc)[0].T
    assert np.trapezoid(up, x) == pytest.approx(1.0)  # the probabilities follow what made the classes
    assert len(gallery.take_panels()) == 3 and gallery.notes() == []
    panels.curve_panels(gallery, replace(target, y={"val": y["val"]}))
    assert gallery.notes() == [] and gallery.axes[3].get_legend() is None


def test_a_confusion_matrix_counts_true_classes_in_rows():
    y, predicted = np.array([0, 0, 0, 0, 1, 1]), np.array([0, 0, 0, 1, 1, 1])
    svg = draw(panels.confusion, predictions(y, predicted), "test", predicted, ["inactive", "active"])[1]
    texts = [text.text for text in parse(svg).iter("text")]
    cells = [words for words in texts if words and words[0].isdigit()]
    assert cells == ["3", "75%", "1", "25%", "0", "0%", "2", "100%"] and texts.count("inactive") == 2


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("classes", [False, True])
def test_the_error_by_similarity_is_a_mean_in_bins_of_as_many(classes):
    similarity, errors = np.linspace(0.2, 1, 60), np.abs(random(60))
    errors = (errors > 1).astype(float) if classes else errors
    outline = draw(panels.by_similarity, "y", similarity, errors, "error", "test", "")[0].patches[0].get_data()
    assert outline.values == pytest.approx(errors.reshape(3, 20).mean(axis=1))
    assert outline.edges[[0, -1]] == pytest.approx([0.2, 1])
    for same in (similarity[:1], np.ones(60)):
        parse(draw(panels.by_similarity, "y", same, np.zeros(len(same)), "error", "test", "")[1])


def test_histograms_are_shares_of_their_part():
    values = {"train": random(900), "val": random(50, 1), "test": np.array([0.0])}
    zeros = {part: np.zeros(len(column)) for part, column in values.items()}
    errors = TargetPredictions(name="y", y=zeros, prediction=values)
    for function, words in ((panels.value_histogram, (values, "y")), (panels.error_histogram, (errors,))):
        axes, svg = draw(function, *words)
        outlines = [patch for patch in axes.patches if not patch.get_fill()]
        assert [patch.get_data().values.sum() for patch in outlines] == pytest.approx([1, 1, 1])
        parse(svg)


@pytest.mark.parametrize(("sign", "scale"), [(1, "log"), (-1, "linear")])
def test_a_loss_below_zero_stays_in_sight(sign: int, scale: str) -> None:
    rows = [{"epoch": epoch, "train_loss": sign * (1 + epoch)} for epoch in range(3)]
    axes, _ = draw(panels.learning_curves, SimpleNamespace(histories=[rows], best_epochs=[1]), panels.LOSS)
    assert axes.get_yscale() == scale


VALUES = {
    "1e15 and noise": 1e15 + random(60),
    "constant": np.full(60, 3.25),
    "one row": np.array([1e-300]),
    "one far away": np.concatenate([np.zeros(50), [1e150]]),
    "two neighbours": np.nextafter(1.0, [1, 2] * 30),
}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.filterwarnings("error")
def test_any_finite_values_are_drawn(name: str) -> None:
    values = VALUES[name]
    parts = {"train": values, "test": values[:1]}
    gallery = Gallery()
    panels.value_histogram(gallery, parts, "y")
    target = predictions(values, np.full_like(values, values.mean()))
    panels.parity(gallery, target, "test")
    panels.error_histogram(gallery, target)
    assert gallery.notes() == []
