"""A picture of a study: what mattered, and the scores trial by trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from gtx.report.drawing import COLOURS, INK, STYLE


def tuning_figure(
    importances: Mapping[str, float], scores: Sequence[tuple[int, float, bool]], default: float | None
) -> Figure:
    """Two panels: the importance of each choice, and the validation score of each trial with the best so far.

    Args:
        importances: shares by name, together 1.
        scores: of each trial its number, its validation score (lower is better), and whether it came to its end; the
            others were pruned.
        default: the score of the defaults.
    """
    names = sorted(importances, key=importances.__getitem__)
    whole = np.array([(number, score) for number, score, ended in scores if ended])
    pruned = np.array([(number, score) for number, score, ended in scores if not ended]).reshape(-1, 2)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 2.9), layout="constrained")
        left, right = figure.subplots(1, 2)
        left.barh([name.replace("_", " ") for name in names], [importances[n] for n in names], color=COLOURS["train"])
        left.set(title="What mattered", xlabel="share of importance (PED-ANOVA)", xlim=(0, None))
        left.grid(axis="y", visible=False)
        right.plot(*pruned.T, "x", color=COLOURS["train"], ms=4, label="ended early")
        right.plot(*whole.T, "o", color=COLOURS["test"], ms=4, mew=0, label="whole training")
        right.step(
            whole[:, 0], np.minimum.accumulate(whole[:, 1]), where="post", color=INK, lw=1.2, label="best so far"
        )
        if default is not None:
            right.axhline(default, color=COLOURS["val"], linewidth=1, linestyle="--", label="defaults")
        low, high = whole[:, 1].min(), np.quantile(whole[:, 1], 0.9)
        right.set(title="Trials", xlabel="trial", ylabel="validation score, lower is better")
        right.set_ylim(low - 0.1 * (high - low or 1), high + 0.5 * (high - low or 1))
        right.xaxis.set_major_locator(MaxNLocator(integer=True))
        right.legend(loc="upper right", frameon=True, facecolor="white", edgecolor="none", framealpha=0.85)
    return figure
