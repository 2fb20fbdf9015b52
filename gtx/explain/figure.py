"""Figures of explanations: a sheet for words, axes and drawings, which becomes one SVG; panels; and what is drawn."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from gtx.explain.explanation import CAVEAT
from gtx.explain.relevance import AtomRemovalEffect, average_attention_by_distance, highest
from gtx.molecules import draw_attention, draw_molecule
from gtx.molecules.drawing import SCALE
from gtx.report.gallery import COLOURS, FAINT, INK, svg_content
from gtx.report.gallery import STYLE as REPORT_STYLE

if TYPE_CHECKING:
    from gtx.explain.attribution import Attribution
    from gtx.explain.explanation import AttentionAnalysis, Explanation


class Sheet:
    """A matplotlib figure measured in pixels from its upper left corner, and the drawings on it."""

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self.drawings: list[str] = []
        self.figure = Figure(figsize=(width / 72, height / 72))  # an SVG has 72 pixels to matplotlib's inch

    def write(self, x: float, y: float, text: str, size: float, **options: Any) -> None:
        """Write a line of text on the base line y."""
        self.figure.text(x / self.width, 1 - y / self.height, text, fontsize=size, **options)

    def rule(self, left: float, y: float) -> None:
        """Draw a thin line, as far from both sides."""
        ends, level = (left / self.width, 1 - left / self.width), 1 - y / self.height
        self.figure.add_artist(Line2D(ends, (level, level), color=FAINT, linewidth=1.2))

    def axes(self, x: float, y: float, width: float, height: float) -> Axes:
        """Add axes whose frame has its upper left corner at (x, y)."""
        box = (x / self.width, 1 - (y + height) / self.height, width / self.width, height / self.height)
        return self.figure.add_axes(box)

    def put(self, x: float, y: float, svg: str) -> None:
        """Place a drawing with its upper left corner at (x, y)."""
        self.drawings.append(svg.replace("<svg ", f'<svg x="{x}" y="{y}" ', 1))

    def svg(self) -> str:
        """Write the figure and the drawings as one SVG element."""
        _, body = svg_content(self.figure, "gtx")
        return (
            '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
            f'width="{self.width}" height="{self.height}" viewBox="0 0 {self.width} {self.height}">'
            '<rect width="100%" height="100%" fill="#fff"/>'
            f'<g stroke-linejoin="round">{body}</g>{"".join(self.drawings)}</svg>'
        )


# --- Panels with axes: attention as a heat map, by distance, and the removal test.

BAND, BLUE = "#c3c9d1", "#3378cc"
SCORES = {"rollout": COLOURS["val"], "gradient": "#b3261e"}
REDS_AND_BLUES = LinearSegmentedColormap.from_list("signed", [BLUE, "#ffffff", "#d64738"])  # weights without softmax
BLUES = LinearSegmentedColormap.from_list("blues", ["#ffffff", BLUE, "#0d2f5e"])
MOST_CELLS = 40  # in a row, drawn one by one; more become one image
MOST_LABELS = 20  # beside a heat map

STYLE: dict[Any, Any] = {
    **REPORT_STYLE,
    "font.size": 11,
    "legend.fontsize": 10,
    "grid.linewidth": 0.7,
    "axes.grid": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
}


def heat_map(axes: Axes, bar: Axes, weights: np.ndarray, atoms: list[str], ends: tuple[float, float]) -> None:
    """Draw weights `[n, n]`, receivers in rows, from white at 0 to dark, with the bar of colours.

    `ends` are the lowest and the highest weight of the scale.
    """
    top = max(map(abs, ends))
    colours, bottom = (BLUES, 0.0) if ends[0] >= 0 else (REDS_AND_BLUES, -top)
    image = axes.pcolormesh(weights, vmin=bottom, vmax=top, cmap=colours, rasterized=len(atoms) > MOST_CELLS)
    step = -(-len(atoms) // MOST_LABELS)
    places, labels = np.arange(len(atoms))[::step] + 0.5, atoms[::step]
    size = 9 if len(labels) > 14 else 10
    axes.set_xticks(places, labels, rotation=90, fontsize=size)
    axes.set_yticks(places, labels, fontsize=size)
    axes.tick_params(length=0, pad=3)
    axes.set(aspect="equal", xlabel="sender", ylabel="receiver")
    axes.invert_yaxis()
    for side in ("top", "right"):
        axes.spines[side].set_visible(True)
    axes.figure.colorbar(image, cax=bar)
    bar.tick_params(length=2, labelsize=9)
    bar.yaxis.set_major_locator(MaxNLocator(4))


def distances(
    axes: Axes, apart: np.ndarray, means: np.ndarray, chosen: int, names: list[str], n: int, ends: tuple[float, float]
) -> None:
    """Draw mean weights `[m, D]` at distances `[D]` along bonds, a line for each of `names`, the chosen one bold.

    Args:
        n: atoms of the molecule; an even share is 1/n.
        ends: the lowest and highest value of the scale.
    """
    x, few = np.arange(len(apart)), len(apart) <= MOST_CELLS
    for k, mean in enumerate(means):
        if k != chosen:
            axes.plot(x, mean, "o-", color=BLUES(0.25 + 0.4 * k / len(means)), linewidth=1.2, ms=2.5 if few else 0)
    axes.plot(x, means[chosen], "o-", color=INK, linewidth=2.4 if few else 1.2, ms=4 if few else 0, label=names[chosen])
    axes.axhline(1 / n, color=INK, linewidth=0.9, linestyle=(0, (4, 3)), label="even share, 1/n")
    labels = [f"{d:.0f}" if np.isfinite(d) else "∞" for d in apart]
    step = -(-len(labels) // (12 if len(labels) < 100 else 8))
    shown = list(x[::step])
    if not np.isfinite(apart[-1]):  # the last label is ∞, with room before it
        shown = [k for k in shown if k <= x[-1] - step] + [x[-1]]
    axes.set_xticks(shown, [labels[k] for k in shown])
    low, high = min(0.0, ends[0]), max(ends[1], 1 / n)
    axes.set(xlabel="bonds between sender and receiver", ylabel="mean weight", ylim=(low, high + 0.2 * (high - low)))
    axes.grid(axis="y")
    axes.legend(loc="upper left", ncols=2, handlelength=1.6, columnspacing=1, borderpad=0)


def removals(axes: Axes, faithfulness: Mapping[str, Sequence[AtomRemovalEffect]], without: float) -> None:
    """Draw the size of the change when k atoms are removed, beside random ones; below, the share of smaller changes."""
    first = next(iter(faithfulness.values()))
    if not first:
        axes.axis("off")
        axes.text(
            0.5, 0.5, "a single atom:\nnothing to compare with", ha="center", va="center", transform=axes.transAxes
        )
        return
    x = np.arange(len(first))
    mean, sd = np.array([r.mean for r in first]), np.array([r.sd for r in first])
    axes.fill_between(x, np.maximum(mean - sd, 0), mean + sd, color=BAND, alpha=0.6, linewidth=0, label="random atoms")
    axes.plot(x, mean, color=COLOURS["train"], linewidth=1.2)
    for row, (score, table) in enumerate(faithfulness.items()):
        axes.plot(x, [abs(r.change) for r in table], "o-", color=SCORES[score], linewidth=1.8, ms=4.5, label=score)
        words: dict[str, Any] = {
            "color": SCORES[score],
            "fontsize": 10.5,
            "va": "top",
            "transform": axes.get_xaxis_transform(),
        }
        for k, r in enumerate(table):
            axes.text(k, -0.41 - 0.095 * row, f"{r.less:.0%}", ha="center", **words)
    axes.axhline(abs(without), color=INK, linewidth=0.9, linestyle=(0, (1, 2)), label="all atoms")
    axes.set_xticks(x, [str(r.k) for r in first])
    axes.set(xlabel="k atoms removed", ylabel="size of the change", xlim=(-0.35, len(first) - 0.65))
    below: dict[str, Any] = {"fontsize": 10.5, "va": "top", "ha": "center", "transform": axes.transAxes}
    axes.text(0.5, -0.31, "random sets that change it less:", **below)
    axes.set_ylim(0, 1.3 * axes.get_ylim()[1])  # room for the legend
    axes.grid(axis="y")
    axes.legend(loc="upper left", ncols=2, handlelength=1.3, columnspacing=1, borderpad=0, labelspacing=0.3)


# --- The figure of an explanation by attention: rows of panels.

CELL, GAP = (310, 268), 26  # a panel, and what lies between two; all in pixels
LEFT, TOP, ROW = 24, 62, 350  # the margin, where the rows begin, and their height
COLUMNS = tuple(LEFT + column * (CELL[0] + GAP) for column in range(3))
WIDTH, END = COLUMNS[-1] + CELL[0] + LEFT, TOP + 4 * ROW
MOST_NUMBERS = 50  # atoms that are numbered in a panel
LINE, LETTERS = 19, 150  # height of a line of a caption in pixels, and the most letters below the figure


def draw_explanation(e: Explanation) -> str:
    """Draw the figure as one SVG element: attention, then scores of atoms; below each the same with random weights."""
    lines = [line for text in captions(e) for line in textwrap.wrap(text, LETTERS)]
    with rc_context(STYLE):
        sheet = Sheet(WIDTH, END + 20 + LINE * len(lines))
        sheet.write(LEFT, 36, _short(e.smiles, 125), size=min(18, max(11, 1400 / len(e.smiles))), weight="bold")
        for row, (name, analysis, draw_row) in enumerate(
            (
                ("Trained", e, draw_attention_row),
                ("Random weights", e.random, draw_attention_row),
                ("Trained", e, draw_scores_row),
                ("Random weights", e.random, draw_scores_row),
            )
        ):
            y = TOP + row * ROW
            network = name if e.blend is None else f"{name}, the network alone"
            heading = f"{network}: {e.quantity} = {analysis.prediction:.4g}"
            sheet.write(LEFT, y + 14, _short(heading, 110), size=15)
            sheet.rule(LEFT, y + 24)
            draw_row(sheet, e, analysis, y + 48)
        for k, line in enumerate(lines):
            sheet.write(LEFT, END + 12 + LINE * k, line, size=12.5)
        return sheet.svg()


def _short(text: str, letters: int) -> str:
    return text if len(text) <= letters else f"{text[: letters - 1]}…"


def draw_attention_row(sheet: Sheet, e: Explanation, analysis: AttentionAnalysis, y: float) -> None:
    """Draw a row of panels: one atom's attention, every atom's, and attention by distance."""
    x, middle, right = COLUMNS
    sheet.write(x, y, f"Attention of atom {e.atoms[e.receiver]}", size=13, weight="bold")
    sheet.write(middle, y, "Attention of every atom", size=13, weight="bold")
    sheet.write(right, y, "Attention by distance", size=13, weight="bold")

    weights, n = e.shown(analysis), len(e.atoms)
    size = (CELL[0], CELL[1] - SCALE)
    both = [e.shown(of) for of in (e, e.random)]  # on one scale
    rows = [shown[e.receiver] for shown in both]
    ends = min(map(np.min, rows)), max(map(np.max, rows))
    numbers = n <= MOST_NUMBERS
    sheet.put(x, y + 8, draw_attention(e.molecules, weights, e.receiver, size=size, numbers=numbers, ends=ends))

    corner, side = (middle + 50, y + 16), 204
    axes, bar = sheet.axes(*corner, side, side), sheet.axes(corner[0] + side + 7, corner[1], 8, side)
    heat_map(axes, bar, weights, e.atoms, (min(map(np.min, both)), max(map(np.max, both))))

    def by_distance(of: AttentionAnalysis) -> tuple[np.ndarray, np.ndarray]:
        """Average for each layer if the figure shows the mean over heads, else for each head."""
        return average_attention_by_distance(of.weights.mean(1) if e.head is None else of.weights[e.layer], e.distance)

    apart, means = by_distance(analysis)
    lines = [by_distance(of)[1] for of in (e, e.random)]
    ends = min(map(np.min, lines)), max(map(np.max, lines))
    chosen, name = (e.layer, "layer") if e.head is None else (e.head, "head")
    names = [f"{name} {k}" for k in range(len(means))]
    distances(sheet.axes(right + 54, y + 16, CELL[0] - 62, 204), apart, means, chosen, names, n, ends)


def draw_scores_row(sheet: Sheet, e: Explanation, analysis: AttentionAnalysis, y: float) -> None:
    """Draw a row of panels: two scores of the atoms, and the removal test of both."""
    numbers = len(e.atoms) <= MOST_NUMBERS
    titles = {"rollout": "Rollout", "gradient": "Gradient-weighted attention"}
    for x, (name, title) in zip(COLUMNS, titles.items(), strict=False):
        sheet.write(x, y, title, size=13, weight="bold")
        if analysis is e.random and np.isfinite(rho := e.agreement()[name]):
            sheet.write(x + CELL[0], y, f"ρ = {rho:.2f}", size=12, ha="right")
        scores, size = getattr(analysis, name), (CELL[0], CELL[1] - SCALE)
        ringed = highest(scores, min(3, len(scores) // 2)).tolist()
        sheet.put(x, y + 8, draw_molecule(e.molecules, scores, size=size, ringed=ringed, numbers=numbers))
    sheet.write(COLUMNS[2], y, "Removal test: attention of k atoms removed", size=13, weight="bold")
    removals(sheet.axes(COLUMNS[2] + 54, y + 16, CELL[0] - 62, 150), analysis.faithfulness, analysis.without)


def captions(e: Explanation) -> list[str]:
    """Write the sentences under the figure, for a chemist."""
    remarks = [*e.notes] if e.blend is None else [f"this is the network alone; {e.blend}", *e.notes]
    notes = "".join(f" {remark[0].upper()}{remark[1:]}." for remark in remarks)
    apart = " ∞: no path of bonds connects the two atoms." if np.isinf(e.distance).any() else ""
    return [
        "Attention: every atom reads other atoms, each with its own weight. The pictures show the weights of "
        f"{e.layer_name()}, counted from 0. The ringed atom {e.atoms[e.receiver]} reads the shaded atoms.{apart}",
        "Rollout multiplies the attention of all layers; in every layer, half comes from the atom itself (Abnar & "
        f"Zuidema 2020). Gradient-weighted attention adds up the weights that raise {e.quantity}, each multiplied by "
        "how much it raises it (Chefer et al. 2021). Both give one score per atom; rings mark the highest scores.",
        "Removal test: the attention to and from the k atoms with the highest scores is removed, and the prediction "
        "changes (coloured lines). The grey band is the change for k random atoms (mean ± sd), the dotted line the "
        "change for all atoms. The percentages are the share of random sets that change the prediction less "
        "(chance: 50%).",
        "Random weights: the same network before training. Where its pictures look like those of the trained network, "
        "they show little of what the network learned. ρ is the rank correlation of its scores with the trained "
        f"network's. {CAVEAT}{notes}",
    ]


# --- The figure of an attribution: one molecule.

SIZE, LEGEND_LETTERS = (520, 400), 66  # width and height of the molecule in pixels, and the most letters below it


def draw_attribution(a: Attribution) -> str:
    """Draw a molecule with its atoms coloured by their Shapley values, and below it the legend."""
    lines = [line for text in a.legend() for line in textwrap.wrap(text, LEGEND_LETTERS)]
    drawing = draw_molecule(a.molecules, a.contributions.values[a.players], a.smiles, SIZE, numbers=True)
    width, end = SIZE[0], SIZE[1] + SCALE
    with rc_context(STYLE):
        sheet = Sheet(width, end + LINE * (len(lines) + 1))
        sheet.put(0, 0, drawing)
        for k, line in enumerate(lines):
            sheet.write(width / 2, end + LINE * (k + 1), line, size=13, ha="center")
        return sheet.svg()
