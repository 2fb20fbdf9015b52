"""Pictures of a page: small matplotlib figures and drawings of molecules, as SVG in the colours of the page."""

from __future__ import annotations

import io
import re
import textwrap
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from gtx.base.errors import InputError
from gtx.data.rows import plural

# --- Style, and one small figure.

INK, FAINT = "#27303b", "#d9dee5"
SMALL = 9  # font size of words inside the axes; three panels fill a page's width, which makes it 13 pixels
COLOURS = {"train": "#7b8794", "val": "#c9780f", "folds": "#c9780f", "test": "#2f6fd6"}

# every colour of a panel is a variable of the page's style sheet
_VARIABLES = {INK: "ink", FAINT: "rule", **{COLOURS[part]: part for part in ("train", "val", "test")}}

STYLE: dict[Any, Any] = {
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
    """Make axes in a figure of their own, see `figure_of`, to draw on inside the `with` block.

    Both axes of a `square` one have one scale; the height of others is in units of which a square one has 3.
    """

    def wrapped(label: str, letters: float) -> str:
        return "\n".join(textwrap.wrap(label, int(letters), max_lines=2, placeholder=" …"))

    with matplotlib.rc_context(STYLE):
        axes = Figure(figsize=(3.1, 3.0 if square else height), layout="constrained").add_subplot()
        labels = wrapped(x, LETTERS), wrapped(y, LETTERS if square else height * LETTERS / 3.6)
        axes.set(title=title, xlabel=labels[0], ylabel=labels[1])
        if square:
            axes.set_aspect("equal", adjustable="box")
        yield axes


def figure_of(axes: Axes) -> Figure:
    """Return the figure of some axes."""
    figure = axes.get_figure(root=True)
    if figure is None:
        raise ValueError("expected axes in a figure")
    return figure


# --- A figure as an SVG element.


def svg_content(figure: Figure, salt: str) -> tuple[str, str]:
    """Write a figure as SVG: its `viewBox`, and what stands inside the `<svg>` element, without style and group ids.

    `salt` decides the other ids. Each marker of dots with the group id `points KEY KEY ...` gets its key, in order, as
    the attribute `data-molecule`.
    """

    def marked(match: re.Match[str]) -> str:
        keys = iter(match[1].split())
        return "<g>" + re.sub(r"<use ", lambda use: f'{use[0]}data-molecule="{next(keys)}" ', match[2]) + "</g>"

    opened = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": salt}), warnings.catch_warnings():
        # of a letter that matplotlib's font lacks, only the width is guessed; the browser draws it
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        figure.set_dpi(200)
        # `savefig` would draw the figure twice
        FigureCanvasSVG(figure).print_svg(opened, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    svg = re.search(r'<svg [^>]*viewBox="([^"]*)"[^>]*>(.*)</svg>', opened.getvalue(), re.DOTALL)
    if svg is None:
        raise ValueError("expected an SVG element with a viewBox")
    body = re.sub(r'<g id="points ([^"]*)">(.*?)</g>', marked, svg[2], flags=re.DOTALL)
    # the style would apply to the whole page, and ids may repeat
    return svg[1], re.sub(r'<style.*?</style>|(?<=<g) id="[^"]*"| id="image[^"]*"', "", body, flags=re.DOTALL)


def inline(figure: Figure, label: str) -> Markup:
    """Write a panel's figure as an `<svg>` element in the page's font and colours, light or dark.

    The label, a text for screen readers, differs for every figure of a page, as ids depend on it.
    """
    with matplotlib.rc_context(STYLE):
        figure.patch.set_visible(False)
        for axes in figure.axes:
            axes.patch.set_visible(False)
        viewbox, body = svg_content(figure, label)
    body = re.sub(r"\n *", " ", re.sub("font-family: [^;]*; ", "", body))
    for colour, variable in _VARIABLES.items():
        body = body.replace(colour, f"var(--{variable})")
    return Markup('<svg viewBox="{}" role="img" aria-label="{}">{}</svg>').format(viewbox, label, Markup(body))


# --- The pictures of a page. One that cannot be drawn is left out, and the page says so at its place.


class Gallery:
    """Drawer of the pictures of one page."""

    def __init__(self) -> None:
        self.missing: dict[str, list[str]] = {}  # labels of pictures that could not be drawn, by reason
        self._panels: list[Markup] = []

    @contextmanager
    def panel(
        self, label: str, caption: str, title: str, x: str, y: str, square: bool = False, height: float = 2.5
    ) -> Iterator[Axes]:
        """Add a `panel` with a caption to the page, drawn inside the `with` block; its label is unique on the page."""
        try:
            with panel(title, x, y, square, height) as axes:
                yield axes
                picture = inline(figure_of(axes), label)
        except Exception as error:  # a finished training must not fail for a picture, whatever is wrong with it
            picture = self._left_out(label, error)
        self._panels.append(Markup("<figure>{}<figcaption>{}</figcaption></figure>").format(picture, caption))

    def take_panels(self) -> list[Markup]:
        """Return the panels that were added since the last call, as `<figure>` elements."""
        panels, self._panels = self._panels, []
        return panels

    def molecule(self, smiles: str, label: str) -> Markup:
        """Draw the molecule as an `<svg>` element, or a sentence in its place."""
        from gtx.molecules import draw_molecule

        try:
            svg = draw_molecule(smiles, size=(260, 180))
        except Exception as error:  # as of a panel
            return self._left_out(label, error)
        return Markup(svg[svg.index("<svg") :])

    def notes(self) -> list[str]:
        """List the reasons for missing pictures, a line for each."""
        return [
            f"{labels[0] if len(labels) == 1 else plural(len(labels), 'picture')} could not be drawn: {reason}"
            for reason, labels in self.missing.items()
        ]

    def _left_out(self, label: str, error: Exception) -> Markup:
        reason = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
        self.missing.setdefault(reason, []).append(label)
        return Markup('<p class="missing">{} could not be drawn.</p>').format(label)
