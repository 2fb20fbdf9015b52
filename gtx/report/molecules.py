"""Molecules in a report: drawings, galleries, similarity to the training rows."""

from __future__ import annotations

import io
import re
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from gtx.base.errors import InputError
from gtx.data import similarity
from gtx.data.similarity import NearestTrainingMolecules
from gtx.report.context import NumericReport, RunReport
from gtx.report.kinds import PARTS, count

# --- Panels: small matplotlib figures that become part of the page, and follow its colours, light or dark.

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

    Args:
        title: title above the axes, at the left.
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


def figure_of(axes: Axes) -> Figure:
    """Return the figure of some axes."""
    figure = axes.get_figure(root=True)
    if figure is None:
        raise ValueError("expected axes in a figure")
    return figure


def _lines(label: str, letters: float) -> str:
    """Wrap a long label into two lines; the rest is cut off."""
    return "\n".join(textwrap.wrap(label, int(letters), max_lines=2, placeholder=" …"))


def pointed(keys: Iterable[str]) -> str:
    """Build the `gid` of markers from which `inline` gives each, in order, the attribute `data-molecule`."""
    return "points " + " ".join(keys)


def inline(figure: Figure, label: str) -> Markup:
    """Write the figure as an `<svg>` element for a page.

    Args:
        figure: figure of a panel.
        label: text for screen readers; different for every figure of a page, as ids depend on it.
    """
    opened = io.StringIO()
    with matplotlib.rc_context({**STYLE, "svg.hashsalt": label}), warnings.catch_warnings():
        # of a letter that matplotlib's font lacks, only the width is guessed; the browser draws it
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        # `savefig` would draw the figure twice
        figure.set_dpi(200)
        figure.patch.set_visible(False)
        for axes in figure.axes:
            axes.patch.set_visible(False)
        FigureCanvasSVG(figure).print_svg(opened, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    svg = re.sub(r'<g id="points ([^"]*)">(.*?)</g>', _keyed, opened.getvalue(), flags=re.DOTALL)
    svg = re.sub(r"<style.*?</style>|<g id=[^>]*>|font-family: [^;]*; |\n *", _shorter, svg, flags=re.DOTALL)
    for colour, variable in _VARIABLES.items():
        svg = svg.replace(colour, f"var(--{variable})")
    opening = re.search(r"<svg [^>]*viewBox=\"([^\"]*)\"[^>]*>", svg)
    if opening is None:
        raise ValueError("expected an SVG element with a viewBox")
    body = Markup(svg[opening.end() :])
    return Markup('<svg viewBox="{}" role="img" aria-label="{}">').format(opening[1], label) + body


def _keyed(match: re.Match[str]) -> str:
    keys = iter(match[1].split())
    return "<g>" + re.sub(r"<use ", lambda use: f'{use[0]}data-molecule="{next(keys)}" ', match[2]) + "</g>"


def _shorter(match: re.Match[str]) -> str:
    """Shorten a piece of SVG: the page has the style and the font, and ids of groups would repeat."""
    return "<g>" if match[0].startswith("<g") else " " if match[0].isspace() else ""


# --- How near the judged molecules are to those of training, and how good predictions of nearer and farther ones are.

BANDS = (0.3, 0.5, 0.7)
"""Similarities that part the bands."""


def compared(report: RunReport) -> str:
    """Describe which molecules are compared."""
    judged, trained = similarity.sample_rows(report.split, report.judged)
    words = []
    for part, drawn in ((report.judged, judged), ("train", trained)):
        whole = len(report.split[part])
        molecules = count(whole, f"{PARTS[part]} molecule")
        words.append(molecules if len(drawn) == whole else f"{len(drawn):,} of {molecules}, drawn at random,")
    return " with ".join(words).rstrip(",")


class Neighbour(NamedTuple):
    """The training molecule that is most similar to another: its number and the similarity."""

    molecule: int
    similarity: float


def neighbours(report: RunReport, rows: list[int]) -> dict[int, Neighbour]:
    """Find the nearest training molecules of some scored molecules, by number."""

    def by_row(near: NearestTrainingMolecules) -> dict[int, Neighbour]:
        columns = (near.rows.tolist(), near.neighbour.tolist(), near.similarity.tolist())
        return {row: Neighbour(other, alike) for row, other, alike in zip(*columns, strict=True)}

    known = by_row(report.nearest)
    if missing := sorted(set(rows) - set(known)):
        more = np.array(missing)
        known |= by_row(similarity.find_nearest_training_molecules(report.store, report.split, report.judged, more))
    return known


def scaffold_kinds(report: RunReport) -> np.ndarray:
    """Classify the compared molecules: "no ring", or whether a training molecule has the same scaffold."""
    from gtx.molecules import MoleculeError, murcko_scaffold

    def of(row: int) -> str | None:
        try:
            return murcko_scaffold(report.smiles[row])
        except MoleculeError:
            return None

    known = {of(row) for row in similarity.sample_rows(report.split, report.judged)[1]}
    named = {"": "no ring", None: "without a scaffold"}
    found = (of(row) for row in report.nearest.rows)
    return np.array([named.get(one, "known scaffold" if one in known else "new scaffold") for one in found], object)


def groups(near: NearestTrainingMolecules, kinds: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Group the compared molecules by scaffold and by similarity to the nearest training molecule; empty groups are
    left out.
    """
    for kind in ("known scaffold", "new scaffold", "no ring", "without a scaffold"):
        if (rows := near.rows[kinds == kind]).size:
            yield kind, rows
    edges = (0.0, *BANDS, np.inf)
    for low, high in pairwise(edges):
        if (rows := near.rows[(low <= near.similarity) & (near.similarity < high)]).size:
            yield f"similarity {low} to {high}" if high < 1 else f"similarity {low} or more", rows


def group_scores(report: NumericReport, kinds: np.ndarray, best: str | None) -> list[dict[str, Any]]:
    """Score the model on each group, and the best baseline by its leading score, if its predictions are kept.

    Args:
        report: content of the report.
        kinds: `scaffold_kinds` of the compared molecules.
        best: name of the baseline.
    """
    leading = next(iter(report.task.metrics))
    return [
        {
            "name": name,
            "molecules": len(rows),
            "scores": report.task.objective.evaluate(report.y[rows], report.prediction[rows]),
            "rival": report.task.objective.evaluate(report.y[rows], report.rivals[best][rows], [leading])[leading]
            if best is not None and best in report.rivals
            else None,
        }
        for name, rows in groups(report.nearest, kinds)
    ]


# --- The judged molecules one by one: cards of the largest errors, a table of rows, and what is shown on hover.

WORST = 12  # molecules drawn, shared by the targets
MOST_ROWS = 300  # of tables, likewise


def furthest_off(report: NumericReport, t: int, most: int) -> list[tuple[int, float]]:
    """Find the judged molecules with the largest errors of a target, with these signed errors."""
    rows = report.measured(report.judged, t)
    errors = report.kind.errors(t, report.y[rows, t], report.predicted(rows, t))
    return [(int(rows[i]), float(errors[i])) for i in np.argsort(-np.abs(errors), kind="stable")[:most]]


def worst(report: NumericReport, pictured: int, gallery: Gallery) -> Iterator[dict[str, Any]]:
    """Yield the molecules with the largest errors, as many for each target, with their nearest training molecule."""
    each = max(1, WORST // len(report.targets))
    found = [(t, *one) for t in range(pictured) for one in furthest_off(report, t, each)]
    beside = neighbours(report, [row for _, row, _ in found])
    for t, row, error in found:
        other, number = beside[row], report.row_number(row)
        known = report.y[other.molecule, t]
        yield {
            **_said(report, t, row),
            "target": report.targets[t],
            "unit": report.units.get(report.targets[t], ""),
            "picture": gallery.molecule(report.smiles[row], f"The molecule of row {number}"),
            "error": error,
            "near": {
                "row": report.row_number(other.molecule),
                "similarity": other.similarity,
                "smiles": report.smiles[other.molecule],
                "measured": "–" if np.isnan(known) else report.kind.value_text(t, known),
                "picture": gallery.molecule(
                    report.smiles[other.molecule], f"The training molecule nearest to that of row {number}"
                ),
            },
        }


def rows(report: NumericReport, kinds: np.ndarray, t: int, most: int) -> list[dict[str, Any]]:
    """At most so many judged molecules as rows of a table, the largest errors first.

    Args:
        report: content of the report.
        kinds: `scaffold_kinds` of the compared molecules.
        t: index of the target.
        most: largest number of rows.
    """
    near = report.nearest
    places = {row: k for k, row in enumerate(near.rows.tolist())}
    return [
        {
            **_said(report, t, row),
            "error": error,
            "similarity": near.similarity[places[row]] if row in places else None,
            "scaffold": kinds[places[row]] if row in places else "–",
        }
        for row, error in furthest_off(report, t, most)
    ]


def _said(report: NumericReport, t: int, row: int) -> dict[str, Any]:
    return {
        "key": f"{row}.{t}",
        "row": report.row_number(row),
        "smiles": report.smiles[row],
        "measured": report.kind.value_text(t, report.y[row, t]),
        "predicted": report.kind.prediction_text(t, report.predicted(np.array([row]), t)[0]),
    }


def hovered(report: NumericReport, shown: Iterable[str]) -> dict[str, dict[str, Any]]:
    """By key, `molecule.target`, what the page shows of each molecule that stands in its pictures and tables: a few
    words, and what a small picture needs (`gtx.molecules.sketch.outline`).
    """
    from gtx.molecules import MoleculeError
    from gtx.molecules.sketch import outline

    keys = dict.fromkeys(key for html in shown for key in re.findall(r'data-molecule="([\d.]+)"', html))
    molecules: dict[str, Any] = {}
    for key in keys:
        row, t = map(int, key.split("."))
        said = _said(report, t, row)
        one = molecules.setdefault(str(row), {"smiles": said["smiles"], "row": int(said["row"]), "said": {}})
        one["said"][t] = f"measured {said['measured']}, predicted {said['predicted']}"
        if "atoms" not in one:
            try:
                one["atoms"], one["bonds"] = outline(said["smiles"])
            except MoleculeError:
                one["atoms"], one["bonds"] = [], []
    return molecules


# --- The pictures of a page. One that cannot be drawn is left out, and the page says so at its place.


class Panel(NamedTuple):
    """Picture of a report, which is drawn when needed.

    Attributes:
        label: short description of the picture, unique on the page.
        draw: function that draws the picture.
        caption: text below the picture.
    """

    label: str
    draw: Callable[[], Figure]
    caption: str = ""


class Gallery:
    """Drawer of the pictures of one page.

    Attributes:
        missing: labels of pictures that could not be drawn, by reason.
    """

    def __init__(self) -> None:
        self.missing: dict[str, list[str]] = {}

    def panel(self, panel: Panel) -> Markup:
        """Write the panel as a `<figure>` element, with its picture or a sentence in the picture's place."""
        picture = self._attempt(panel.label, lambda: inline(panel.draw(), panel.label))
        caption = Markup("<figcaption>{}</figcaption>").format(panel.caption) if panel.caption else ""
        return Markup("<figure>{}{}</figure>").format(picture, caption)

    def panels(self, panels: Iterable[Panel]) -> list[Markup]:
        """Every panel, in order."""
        return [self.panel(panel) for panel in panels]

    def molecule(self, smiles: str, label: str) -> Markup:
        """Draw the molecule as an `<svg>` element, or a sentence in its place."""
        return self._attempt(label, lambda: _structure(smiles))

    def notes(self) -> list[str]:
        """List the reasons for missing pictures, a line for each."""
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
