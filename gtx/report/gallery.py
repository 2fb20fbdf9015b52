"""The pictures of a page. One that cannot be drawn is left out, and the page says so at its place."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from markupsafe import Markup
from matplotlib.figure import Figure

from gtx.errors import InputError
from gtx.report.drawing import inline
from gtx.report.words import count


class Panel(NamedTuple):
    """A picture to be drawn: what it shows, in a few words that no other panel of the page has, and how it is drawn."""

    label: str
    draw: Callable[[], Figure]


class Gallery:
    """Draws the pictures of one page.

    Attributes:
        missing: what could not be drawn, the labels by reason.
    """

    def __init__(self) -> None:
        self.missing: dict[str, list[str]] = {}

    def panel(self, panel: Panel) -> Markup:
        """The panel as an `<svg>` element, or a sentence in its place."""
        return self._attempt(panel.label, lambda: inline(panel.draw(), panel.label))

    def panels(self, panels: Iterable[Panel]) -> list[Markup]:
        """Every panel, in order."""
        return [self.panel(panel) for panel in panels]

    def molecule(self, smiles: str, label: str) -> Markup:
        """The molecule as an `<svg>` element, or a sentence in its place."""
        return self._attempt(label, lambda: _structure(smiles))

    def notes(self) -> list[str]:
        """A line for each reason: what is not drawn, and why."""
        return [
            f"{labels[0] if len(labels) == 1 else count(len(labels), 'picture')} could not be drawn: {reason}"
            for reason, labels in self.missing.items()
        ]

    def _attempt(self, label: str, draw: Callable[[], Markup]) -> Markup:
        try:
            return draw()
        except Exception as error:  # a finished training must not fail for a picture, whatever is wrong with it
            reason = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
            self.missing.setdefault(reason, []).append(label)
            return Markup('<p class="missing">{} could not be drawn.</p>').format(label)


def _structure(smiles: str) -> Markup:
    from gtx.molecules import draw_molecule

    svg = draw_molecule(smiles, size=(260, 180))
    return Markup(svg[svg.index("<svg") :])
