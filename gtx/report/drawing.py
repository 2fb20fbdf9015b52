"""Panels: small matplotlib figures that become part of the page, and follow its colours, light or dark."""

from __future__ import annotations

import io
import re
import textwrap
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import matplotlib
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

INK, FAINT = "#27303b", "#d9dee5"
SMALL = 9  # font size of words inside the axes; three panels fill a page's width, which makes it 13 pixels
COLOURS = {"train": "#7b8794", "val": "#c9780f", "test": "#2f6fd6"}

# every colour of a panel is a variable of the page's style sheet
_VARIABLES = {INK: "ink", FAINT: "rule", **{colour: part for part, colour in COLOURS.items()}}

STYLE = {
    "font.family": "sans-serif",
    "font.size": 9.5,
    "text.parse_math": False,  # a target may be called "$x$"
    "axes.linewidth": 0.8,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": SMALL,
    "svg.fonttype": "none",  # text stays text: the reader's own fonts, searchable
    "savefig.transparent": True,
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK),
    "grid.color": FAINT,
}


LETTERS = 34  # of a label, that fit beside a panel in one line


@contextmanager
def panel(title: str, x: str, y: str, square: bool = False, height: float = 2.5) -> Iterator[Axes]:
    """New axes in a figure of their own, `axes.figure`, to be drawn on inside the `with` block.

    Args:
        title: above the axes, at the left.
        x, y: labels.
        square: whether both axes have one scale.
        height: of a panel that is not square, in units of which a square one has 3.
    """
    with matplotlib.rc_context(STYLE):
        axes = Figure(figsize=(3.1, 3.0 if square else height), layout="constrained").add_subplot()
        axes.set(
            title=title, xlabel=_lines(x, LETTERS), ylabel=_lines(y, LETTERS if square else height * LETTERS / 3.6)
        )
        if square:
            axes.set_aspect("equal", adjustable="box")
        yield axes


def _lines(label: str, letters: float) -> str:
    """A long label in two lines; what does not fit into these is cut off."""
    return "\n".join(textwrap.wrap(label, int(letters), max_lines=2, placeholder=" …"))


def inline(figure: Figure, label: str) -> Markup:
    """The figure as an `<svg>` element for a page.

    Args:
        figure: of a panel.
        label: what screen readers say; different for every figure of a page, since it makes the ids different.
    """
    opened = io.StringIO()
    with matplotlib.rc_context({**STYLE, "svg.hashsalt": label}), warnings.catch_warnings():
        # of a letter that matplotlib's font lacks, only the width is guessed; the browser draws it
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        # `savefig` would draw the figure twice
        figure.set_dpi(200)
        for part in (figure, *figure.axes):
            part.patch.set_visible(False)
        FigureCanvasSVG(figure).print_svg(opened, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    svg = re.sub(
        r"<style.*?</style>|<g id=[^>]*>|font-family: [^;]*; |\n *", _shorter, opened.getvalue(), flags=re.DOTALL
    )
    for colour, variable in _VARIABLES.items():
        svg = svg.replace(colour, f"var(--{variable})")
    box, body = re.search(r"<svg [^>]*viewBox=\"([^\"]*)\"[^>]*>(.*)", svg, flags=re.DOTALL).groups()
    return Markup('<svg viewBox="{}" role="img" aria-label="{}">').format(box, label) + Markup(body)


def _shorter(match: re.Match) -> str:
    """The page has the style and the font; ids of groups serve nobody and would be found twice."""
    return "<g>" if match[0].startswith("<g") else " " if match[0].isspace() else ""
