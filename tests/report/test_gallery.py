"""A picture that cannot be drawn is left out and said to be; nothing else of the page is lost."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from gtx.report import figures
from gtx.report.molecules import Gallery, Panel


def fail(message: str) -> None:
    raise ValueError(message)


def test_a_picture_that_fails_leaves_a_sentence_and_the_others() -> None:
    gallery = Gallery()
    good = partial(figures.value_histogram, {"test": np.arange(9.0)}, "y")
    first, second, third = gallery.panels(
        [Panel("One", good), Panel("Two of <y>", partial(fail, "too many bins")), Panel("Three", good)]
    )
    assert first.startswith("<figure><svg") and third.startswith("<figure><svg")
    assert second == '<figure><p class="missing">Two of &lt;y&gt; could not be drawn.</p></figure>'
    assert gallery.notes() == ["Two of <y> could not be drawn: ValueError: too many bins"]


def test_one_reason_is_said_once(undrawable: None) -> None:
    gallery = Gallery()
    for row in (1, 2):
        assert gallery.molecule("CCO", f"The molecule of row {row}").startswith('<p class="missing">')
    (note,) = gallery.notes()
    assert note.startswith("2 pictures could not be drawn: RDKit cannot draw molecules on this machine: ")
    assert "apt-get install libxrender1 libxext6 libx11-6" in note


@pytest.mark.parametrize(
    "values",
    [
        1e15 + np.random.default_rng(0).normal(size=60),
        np.full(60, 3.25),
        np.array([1e-300]),
        np.concatenate([np.zeros(50), [1e150]]),
        np.nextafter(1.0, [1, 2] * 30),
    ],
    ids=["1e15 and noise", "constant", "one row", "one far away", "two neighbours"],
)
@pytest.mark.filterwarnings("error")
def test_any_finite_values_are_drawn(values: np.ndarray) -> None:
    parts = {"train": values, "test": values[:1]}
    gallery = Gallery()
    gallery.panels(
        [
            Panel("Values", partial(figures.value_histogram, parts, "y")),
            Panel("Parity", partial(figures.parity, values, np.full_like(values, values.mean()), "test", "y")),
            Panel("Errors", partial(figures.error_histogram, {"test": values - values.mean()}, "")),
        ]
    )
    assert gallery.notes() == []
