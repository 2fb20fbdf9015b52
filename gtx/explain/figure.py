"""What figures of explanations are made of: a sheet for words, axes, drawings and panels, which becomes one SVG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from gtx.data.rows import percent
from gtx.explain.relevance import AtomRemovalEffect
from gtx.report.gallery import COLOURS, FAINT, INK, svg_content
from gtx.report.gallery import STYLE as REPORT_STYLE

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

Box = tuple[float, float, float, float]
"""Upper left corner, width and height of a frame, in pixels."""


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

    def axes(self, box: Box) -> Axes:
        """Add axes whose frame is a box."""
        x, y, width, height = box
        place = (x / self.width, 1 - (y + height) / self.height, width / self.width, height / self.height)
        return self.figure.add_axes(place)

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

    # panels with axes

    def heat_map(self, box: Box, weights: np.ndarray, atoms: list[str], ends: tuple[float, float]) -> None:
        """Draw weights `[n, n]`, receivers in rows, from white at 0 to dark, with the bar of colours beside the box.

        `ends` are the lowest and the highest weight of the scale.
        """
        x, y, width, height = box
        axes, bar = self.axes(box), self.axes((x + width + 7, y, 8, height))
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
        self, box: Box, apart: np.ndarray, means: np.ndarray, chosen: int, name: str, n: int, ends: tuple[float, float]
    ) -> None:
        """Draw mean weights `[m, D]` at distances `[D]` along bonds, a line for each of m layers or heads.

        Args:
            chosen, name: number and name of the layer or head whose line is bold.
            n: atoms of the molecule; an even share is 1/n.
            ends: the lowest and highest value of the scale.
        """
        axes, x, few = self.axes(box), np.arange(len(apart)), len(apart) <= MOST_CELLS
        for k, mean in enumerate(means):
            if k != chosen:
                axes.plot(x, mean, "o-", color=BLUES(0.25 + 0.4 * k / len(means)), linewidth=1.2, ms=2.5 if few else 0)
        axes.plot(x, means[chosen], "o-", color=INK, linewidth=2.4 if few else 1.2, ms=4 if few else 0, label=name)
        axes.axhline(1 / n, color=INK, linewidth=0.9, linestyle=(0, (4, 3)), label="even share, 1/n")
        labels = [f"{d:.0f}" if np.isfinite(d) else "∞" for d in apart]
        step = -(-len(labels) // (12 if len(labels) < 100 else 8))
        shown = list(x[::step])
        if not np.isfinite(apart[-1]):  # the last label is ∞, with room before it
            shown = [k for k in shown if k <= x[-1] - step] + [x[-1]]
        axes.set_xticks(shown, [labels[k] for k in shown])
        low, high = min(0.0, ends[0]), max(ends[1], 1 / n)
        axes.set(
            xlabel="bonds between sender and receiver", ylabel="mean weight", ylim=(low, high + 0.2 * (high - low))
        )
        axes.grid(axis="y")
        axes.legend(loc="upper left", ncols=2, handlelength=1.6, columnspacing=1, borderpad=0)

    def removals(self, box: Box, faithfulness: Mapping[str, Sequence[AtomRemovalEffect]], without: float) -> None:
        """Draw the size of the change without k atoms, beside random ones, and the share of smaller changes."""
        axes, first = self.axes(box), next(iter(faithfulness.values()))
        if not first:
            axes.axis("off")
            axes.text(
                0.5, 0.5, "a single atom:\nnothing to compare with", ha="center", va="center", transform=axes.transAxes
            )
            return
        x = np.arange(len(first))
        mean, sd = np.array([r.mean for r in first]), np.array([r.sd for r in first])
        axes.fill_between(
            x, np.maximum(mean - sd, 0), mean + sd, color=BAND, alpha=0.6, linewidth=0, label="random atoms"
        )
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
                axes.text(k, -0.41 - 0.095 * row, percent(r.less), ha="center", **words)
        axes.axhline(abs(without), color=INK, linewidth=0.9, linestyle=(0, (1, 2)), label="all atoms")
        axes.set_xticks(x, [str(r.k) for r in first])
        axes.set(xlabel="k atoms removed", ylabel="size of the change", xlim=(-0.35, len(first) - 0.65))
        below: dict[str, Any] = {"fontsize": 10.5, "va": "top", "ha": "center", "transform": axes.transAxes}
        axes.text(0.5, -0.31, "random sets that change it less:", **below)
        axes.set_ylim(0, 1.3 * axes.get_ylim()[1])  # room for the legend
        axes.grid(axis="y")
        axes.legend(loc="upper left", ncols=2, handlelength=1.3, columnspacing=1, borderpad=0, labelspacing=0.3)


@contextmanager
def open_sheet(width: float, height: float) -> Iterator[Sheet]:
    """Open a sheet; within the `with` block, everything is drawn in the style of a report."""
    with rc_context(STYLE):
        yield Sheet(width, height)
