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
from gtx.explain.findings import Findings
from gtx.explain.removal import by_distance, highest
from gtx.explain.words import caption, report
from gtx.molecules import draw_attention, draw_molecule
from gtx.molecules.drawing import SCALE

CELL, GAP = (310, 268), 26  # a panel, and what lies between two; all in pixels
LEFT, TOP, ROW = 24, 62, 350  # the margin, where the rows begin, and their height
COLUMNS = tuple(LEFT + column * (CELL[0] + GAP) for column in range(3))
WIDTH, END = COLUMNS[-1] + CELL[0] + LEFT, TOP + 4 * ROW
MOST_NUMBERS = 50  # of atoms, that can be read in a panel
LINE, LETTERS = 19, 150  # height of a line of the caption, and how much it holds


def figure(explanation: Findings) -> str:
    """The figure as one SVG element: attention, then scores of atoms; below each the same with random weights."""
    e = explanation
    lines = [line for text in caption(e) for line in textwrap.wrap(text, LETTERS)]
    with matplotlib.rc_context(panels.STYLE):
        sheet = _Sheet(END + 20 + LINE * len(lines))
        sheet.say(LEFT, 36, _short(e.smiles, 125), size=min(18, max(11, 1400 / len(e.smiles))), weight="bold")
        for row, (name, account, draw) in enumerate(
            (
                ("Trained", e, _attention),
                ("Random weights", e.random, _attention),
                ("Trained", e, _scores),
                ("Random weights", e.random, _scores),
            )
        ):
            y = TOP + row * ROW
            heading = f"{name}{', the network alone' * (e.mix is not None)}: {e.quantity} = {account.prediction:.4g}"
            sheet.say(LEFT, y + 14, _short(heading, 110), size=15)
            sheet.rule(y + 24)
            draw(sheet, e, account, y + 48)
        for k, line in enumerate(lines):
            sheet.say(LEFT, END + 12 + LINE * k, line, size=12.5)
        return sheet.svg()


def _short(text: str, letters: int) -> str:
    return text if len(text) <= letters else f"{text[: letters - 1]}…"


def page(explanation: Findings) -> str:
    """The figure and the text as an HTML page."""
    title = escape(f"{explanation.smiles}: {explanation.quantity}")
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        f"<style>body{{margin:1rem auto;max-width:{WIDTH}px;font:14px sans-serif}}svg{{width:100%;height:auto}}"
        "pre{font-size:13px;overflow-x:auto}</style>"
        f"{figure(explanation)}<pre>{escape(report(explanation))}</pre></html>\n"
    )


def _attention(sheet: _Sheet, e: Findings, account: Account, y: float) -> None:
    """A row of panels: one atom's attention, every atom's, and attention by distance."""
    x, middle, right = COLUMNS
    sheet.say(x, y, f"Attention of atom {e.atoms[e.receiver]}", size=13, weight="bold")
    sheet.say(middle, y, "Attention of every atom", size=13, weight="bold")
    sheet.say(right, y, "Attention by distance", size=13, weight="bold")

    weights, n = e.shown(account), len(e.atoms)
    size = (CELL[0], CELL[1] - SCALE)
    both = [e.shown(of) for of in (e, e.random)]  # on one scale
    rows = [shown[e.receiver] for shown in both]
    ends = min(map(np.min, rows)), max(map(np.max, rows))
    sheet.put(x, y + 8, draw_attention(e.mol, weights, e.receiver, size=size, numbers=n <= MOST_NUMBERS, ends=ends))

    corner, side = (middle + 50, y + 16), 204
    axes, bar = sheet.axes(*corner, side, side), sheet.axes(corner[0] + side + 7, corner[1], 8, side)
    panels.heat_map(axes, bar, weights, e.atoms, (min(map(np.min, both)), max(map(np.max, both))))

    means, ends = _by_distance(e, account), [_by_distance(e, of)[1] for of in (e, e.random)]
    chosen, names = (e.layer, "layer") if e.head is None else (e.head, "head")
    names = [f"{names} {k}" for k in range(len(means[1]))]
    ends = min(map(np.min, ends)), max(map(np.max, ends))
    panels.distances(sheet.axes(right + 54, y + 16, CELL[0] - 62, 204), *means, chosen, names, n, ends)


def _scores(sheet: _Sheet, e: Findings, account: Account, y: float) -> None:
    """A row of panels: two scores of the atoms, and the check of both."""
    numbers = len(e.atoms) <= MOST_NUMBERS
    titles = {"rollout": "Rollout", "gradient": "Gradient-weighted attention"}
    for x, (name, title) in zip(COLUMNS, titles.items(), strict=False):
        sheet.say(x, y, title, size=13, weight="bold")
        if account is e.random and np.isfinite(rho := e.agreement()[name]):
            sheet.say(x + CELL[0], y, f"ρ = {rho:.2f}", size=12, ha="right")
        scores, size = getattr(account, name), (CELL[0], CELL[1] - SCALE)
        ringed = highest(scores, min(3, len(scores) // 2))
        sheet.put(x, y + 8, draw_molecule(e.mol, scores, size=size, ringed=ringed, numbers=numbers))
    sheet.say(COLUMNS[2], y, "Check: attention of k atoms removed", size=13, weight="bold")
    panels.removals(sheet.axes(COLUMNS[2] + 54, y + 16, CELL[0] - 62, 150), account)


def _by_distance(e: Findings, account: Account) -> tuple[np.ndarray, np.ndarray]:
    """Average attention by distance: over all layers where the figure shows the mean over heads, otherwise per head
    of the layer."""
    return by_distance(account.weights.mean(1) if e.head is None else account.weights[e.layer], e.distance)


class _Sheet:
    """A matplotlib figure measured in pixels from its upper left corner, and the drawings that lie on it."""

    def __init__(self, height: float) -> None:
        self.height, self.drawings = height, []
        self.figure = Figure(figsize=(WIDTH / 72, height / 72))  # an SVG has 72 pixels to matplotlib's inch

    def say(self, x: float, y: float, text: str, size: float, **options: object) -> None:
        """A line of text on the base line y."""
        self.figure.text(x / WIDTH, 1 - y / self.height, text, fontsize=size, **options)

    def rule(self, y: float) -> None:
        """A thin line above a row."""
        ends, level = (LEFT / WIDTH, 1 - LEFT / WIDTH), 1 - y / self.height
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
