"""The panels with axes: attention as a heat map, by distance, and the removal check."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.ticker import MaxNLocator

from gtx.explain.account import Account

INK, FAINT, BAND, BLUE = "#27303b", "#d9dee5", "#c3c9d1", "#3378cc"
SCORES = {"rollout": "#c9780f", "gradient": "#b3261e"}
REDS_AND_BLUES = LinearSegmentedColormap.from_list("signed", [BLUE, "#ffffff", "#d64738"])  # weights without softmax
BLUES = LinearSegmentedColormap.from_list("blues", ["#ffffff", BLUE, "#0d2f5e"])
MOST_CELLS = 40  # in a row, drawn one by one; more become one image inside the picture
MOST_LABELS = 20  # that can be read beside a heat map

STYLE = {
    "font.family": "sans-serif",
    "font.size": 11,
    "text.parse_math": False,  # a target may be called "$x$"
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": FAINT,
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "legend.fontsize": 10,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "gtx",  # the same figure twice
    "savefig.transparent": True,
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK),
}


def heat_map(axes: Axes, bar: Axes, weights: np.ndarray, atoms: list[str], ends: tuple[float, float]) -> None:
    """Weights `[n, n]`, receivers in rows, from white at 0 to dark, and the bar that says so; `ends` are the lowest and
    the highest weight that the scale is to have room for."""
    top = max(map(abs, ends))
    scale = {"cmap": BLUES, "vmin": 0} if ends[0] >= 0 else {"cmap": REDS_AND_BLUES, "vmin": -top}
    image = axes.pcolormesh(weights, vmax=top, rasterized=len(atoms) > MOST_CELLS, **scale)
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
    """Mean weights `[m, D]` at distances `[D]` along bonds, a line for each of `names`, the chosen one bold.

    Args:
        n: atoms of the molecule; an even share is 1/n.
        ends: the lowest and highest value there is.
    """
    x, few = np.arange(len(apart)), len(apart) <= MOST_CELLS
    for k, mean in enumerate(means):
        if k != chosen:
            axes.plot(x, mean, "o-", color=BLUES(0.25 + 0.4 * k / len(means)), linewidth=1.2, ms=2.5 * few)
    axes.plot(x, means[chosen], "o-", color=INK, linewidth=1.2 + 1.2 * few, ms=4 * few, label=names[chosen])
    axes.axhline(1 / n, color=INK, linewidth=0.9, linestyle=(0, (4, 3)), label="even share, 1/n")
    labels = [f"{d:.0f}" if np.isfinite(d) else "∞" for d in apart]
    step = -(-len(labels) // (12 if len(labels) < 100 else 8))
    shown = x[::step] if np.isfinite(apart[-1]) else [*x[: -step or None : step], x[-1]]
    axes.set_xticks(shown, [labels[k] for k in shown])
    low, high = min(0.0, ends[0]), max(ends[1], 1 / n)
    axes.set(xlabel="bonds between sender and receiver", ylabel="mean weight", ylim=(low, high + 0.2 * (high - low)))
    axes.grid(axis="y")
    axes.legend(loc="upper left", ncols=2, handlelength=1.6, columnspacing=1, borderpad=0)


def removals(axes: Axes, account: Account) -> None:
    """The size of the change when k atoms are removed, beside random ones; below, how many of these change it less."""
    first = next(iter(account.faithfulness.values()))
    if not first:
        axes.axis("off")
        axes.text(
            0.5, 0.5, "a single atom:\nnothing to compare with", ha="center", va="center", transform=axes.transAxes
        )
        return
    x = np.arange(len(first))
    mean, sd = np.array([r.mean for r in first]), np.array([r.sd for r in first])
    axes.fill_between(x, np.maximum(mean - sd, 0), mean + sd, color=BAND, alpha=0.6, linewidth=0, label="random atoms")
    axes.plot(x, mean, color="#7b8794", linewidth=1.2)
    for row, (score, table) in enumerate(account.faithfulness.items()):
        axes.plot(x, [abs(r.change) for r in table], "o-", color=SCORES[score], linewidth=1.8, ms=4.5, label=score)
        words = {"color": SCORES[score], "fontsize": 10.5, "va": "top", "transform": axes.get_xaxis_transform()}
        for k, r in enumerate(table):
            axes.text(k, -0.41 - 0.095 * row, f"{r.less:.0%}", ha="center", **words)
    axes.axhline(abs(account.without), color=INK, linewidth=0.9, linestyle=(0, (1, 2)), label="all atoms")
    axes.set_xticks(x, [str(r.k) for r in first])
    axes.set(xlabel="k atoms removed", ylabel="size of the change", xlim=(-0.35, len(first) - 0.65))
    below = {"fontsize": 10.5, "va": "top", "ha": "center", "transform": axes.transAxes}
    axes.text(0.5, -0.31, "random sets that change it less:", **below)
    axes.set_ylim(0, 1.3 * axes.get_ylim()[1])  # room for the legend
    axes.grid(axis="y")
    axes.legend(loc="upper left", ncols=2, handlelength=1.3, columnspacing=1, borderpad=0, labelspacing=0.3)
