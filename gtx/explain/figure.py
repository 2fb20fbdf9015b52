"""The figure: matplotlib lays out and draws axes and words, RDKit the molecules, and both become one SVG."""

from __future__ import annotations

import io
import re
import textwrap
from html import escape

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gtx.explain import panels
from gtx.explain.account import Account
from gtx.explain.distances import by_distance
from gtx.explain.explanation import Explanation
from gtx.explain.removal import highest
from gtx.explain.words import caption, quantity, report
from gtx.molecules import draw_attention, draw_molecule

CELL, GAP = (310, 300), 26  # a panel, and what lies between two; all in pixels
LEFT, ROWS, END = 24, (108, 444, 734), 1062  # the margin, where the rows of panels begin, and where they end
HALF = 2 * (CELL[0] + GAP) + 14  # from the trained network to the one with random weights
WIDTH = 2 * LEFT + HALF + 2 * CELL[0] + GAP
MOST_NUMBERS = 40  # of atoms, that can be read in a panel
LINE = 19  # of the caption


def figure(explanation: Explanation) -> str:
    """The figure as one SVG element."""
    e = explanation
    lines = [line for text in caption(e) for line in textwrap.wrap(text, 200)]
    with matplotlib.rc_context(panels.STYLE):
        sheet = _Sheet(END + 10 + LINE * len(lines))
        sheet.say(LEFT, 36, e.smiles if len(e.smiles) < 100 else f"{e.smiles[:98]}…", size=18, weight="bold")
        for half, (name, account) in enumerate((("Trained", e), ("Random weights", e.random))):
            x = LEFT + half * HALF
            sheet.say(x, 68, f"{name}: {quantity(e)} = {account.prediction:.4g}", size=15)
            sheet.rule(x, 80)
            _half(sheet, e, account, x)
        for k, line in enumerate(lines):
            sheet.say(LEFT, END + LINE * k, line, size=12.5)
        return sheet.svg()


def page(explanation: Explanation) -> str:
    """The figure and the text as an HTML page."""
    title = escape(f"{explanation.smiles}: {quantity(explanation)}")
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        f"<style>body{{margin:1rem auto;max-width:{WIDTH}px;font:14px sans-serif}}svg{{width:100%;height:auto}}"
        "pre{font-size:13px;overflow-x:auto}</style>"
        f"{figure(explanation)}<pre>{escape(report(explanation))}</pre></html>\n"
    )


def _half(sheet: _Sheet, e: Explanation, account: Account, x: float) -> None:
    """The six panels of one network."""
    right = x + CELL[0] + GAP
    for column, row, title in (
        (x, 0, f"What atom {e.atoms[e.receiver]} takes in"),
        (right, 0, "What every atom takes in"),
        (x, 1, "Rollout"),
        (right, 1, "Gradient-weighted attention"),
        (x, 2, "Attention along bonds"),
        (right, 2, "Check: attention of k atoms removed"),
    ):
        sheet.say(column, ROWS[row], title, size=13, weight="bold")

    weights, n = e.shown(account), len(e.atoms)
    numbers = n <= MOST_NUMBERS
    sheet.put(x, ROWS[0] + 6, draw_attention(e.mol, weights, e.receiver, size=(CELL[0], 264), numbers=numbers))
    for column, name in ((x, "rollout"), (right, "gradient")):
        scores = getattr(account, name)
        ringed = highest(scores, min(3, n // 2))
        svg = draw_molecule(e.mol, scores, size=(CELL[0], 218), ringed=ringed, numbers=numbers)
        sheet.put(column, ROWS[1] + 6, svg)
        if account is e.random and np.isfinite(rho := e.agreement()[name]):
            sheet.say(column + CELL[0], ROWS[1], f"ρ = {rho:.2f}", size=12, ha="right")

    corner, side = (right + 50, ROWS[0] + 14), 222
    axes, bar = sheet.axes(*corner, side, side), sheet.axes(corner[0] + side + 7, corner[1], 8, side)
    panels.heat_map(axes, bar, weights, e.atoms, max(abs(e.shown(of)).max() for of in (e, e.random)))

    means, ends = _by_distance(e, account), [_by_distance(e, of)[1] for of in (e, e.random)]
    axes = sheet.axes(x + 48, ROWS[2] + 20, CELL[0] - 60, CELL[1] - 76)
    chosen, names = (e.layer, "layer") if e.head is None else (e.head, "head")
    names = [f"{names} {k}" for k in range(len(means[1]))]
    ends = min(map(np.min, ends)), max(map(np.max, ends))
    panels.distances(axes, *means, chosen, names, n, ends)
    axes = sheet.axes(right + 48, ROWS[2] + 20, CELL[0] - 60, CELL[1] - 130)
    panels.removals(axes, account)


def _by_distance(e: Explanation, account: Account) -> tuple[np.ndarray, np.ndarray]:
    """Of all layers where the mean over heads is shown, else of all heads of the layer."""
    return by_distance(account.weights.mean(1) if e.head is None else account.weights[e.layer], e.distance)


class _Sheet:
    """A matplotlib figure measured in pixels from its upper left corner, and the drawings that lie on it."""

    def __init__(self, height: float) -> None:
        self.height, self.drawings = height, []
        self.figure = Figure(figsize=(WIDTH / 72, height / 72))  # an SVG has 72 pixels to matplotlib's inch

    def say(self, x: float, y: float, text: str, size: float, **options: object) -> None:
        """A line of text on the base line y."""
        self.figure.text(x / WIDTH, 1 - y / self.height, text, fontsize=size, **options)

    def rule(self, x: float, y: float) -> None:
        """A thin line above one half."""
        ends, level = (x / WIDTH, (x + 2 * CELL[0] + GAP) / WIDTH), 1 - y / self.height
        self.figure.add_artist(Line2D(ends, (level, level), color=panels.FAINT, linewidth=1.2))

    def axes(self, x: float, y: float, width: float, height: float) -> Axes:
        """Axes whose frame has its upper left corner at (x, y)."""
        box = (x / WIDTH, 1 - (y + height) / self.height, width / WIDTH, height / self.height)
        return self.figure.add_axes(box)

    def put(self, x: float, y: float, svg: str) -> None:
        """A drawing with its upper left corner at (x, y)."""
        self.drawings.append(svg.replace("<svg ", f'<svg x="{x}" y="{y}" ', 1))

    def svg(self) -> str:
        opened = io.StringIO()
        self.figure.savefig(
            opened, format="svg", dpi=200, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type"))
        )
        body = re.search(r"<svg [^>]*>(.*)</svg>", opened.getvalue(), flags=re.DOTALL)[1]
        body = re.sub(r"<style.*?</style>", "", body, flags=re.DOTALL)  # of the whole page, if this stands in one
        body = re.sub(r'(?<=<g) id="[^"]*"| id="image[^"]*"', "", body)  # may come twice, and nobody asks for them
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="{WIDTH}" '
            f'height="{self.height}" viewBox="0 0 {WIDTH} {self.height}"><rect width="100%" height="100%" fill="#fff"/>'
            f'<g stroke-linejoin="round">{body}</g>{"".join(self.drawings)}</svg>'
        )
