"""The figures of a set: the scores of all models by split or seed, and scores by the number of training rows."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from experiments.aims import Aim
from experiments.learning import Point
from experiments.rivals.published import Published
from experiments.summary import ModelRuns

OURS, THEIRS, QUOTED = "#c0392b", "#34495e", "#7f8c8d"


def score_plot(
    rows: Sequence[ModelRuns],
    titles: Sequence[str],
    quoted: Sequence[Published],
    aim: Aim | None,
    axis: str,
    file: Path,
) -> None:
    """Draw the scores of a set: dots are splits or seeds, a bar their mean; published means are hollow.

    Args:
        rows: the models, best first.
        titles: what they are called.
        quoted: published scores.
        aim: drawn as a dashed line for one model, a dotted one for an ensemble.
        axis: what the scores are.
        file: an SVG.
    """
    names = [*titles, *(f"{one.model} (published)" for one in quoted)]
    plt.rcParams["svg.hashsalt"] = "gtx"  # the same picture is the same file
    figure, axes = plt.subplots(figsize=(7, 1.1 + 0.27 * len(names)), layout="constrained")
    for place, row in enumerate(rows):
        colour = OURS if row.ours else THEIRS
        scores = row.scores()
        axes.plot(scores, [place] * len(scores), "o", ms=4, alpha=0.5, color=colour, mew=0)
        axes.plot([row.mean()], [place], "|", ms=13, mew=2, color=colour)
    for place, one in enumerate(quoted, len(rows)):
        axes.errorbar(one.mean, place, xerr=one.sd, fmt="D", ms=4, mfc="none", color=QUOTED, lw=1)
    if aim:
        single = aim.goal({row.model: row.mean() for row in rows})
        for goal, line, words in ((single, "--", "aim"), (aim.ensemble, ":", "aim, five averaged")):
            if goal is not None:
                axes.axvline(goal, ls=line, lw=1, color=OURS, label=words)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(frameon=False, fontsize=7, loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderpad=0)
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.set_ylim(max(len(names), 1) - 0.5, -0.5)
    axes.set_xlabel(axis, fontsize=9)
    axes.tick_params(axis="x", labelsize=8)
    axes.grid(axis="x", lw=0.4, alpha=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)


def learning_curves(points: Sequence[Point], titles: Mapping[str, str], axis: str, file: Path) -> None:
    """Draw scores against training rows, a line per model through the means; bars are standard deviations.

    Args:
        points: of all models, by rows.
        titles: by model.
        axis: what the scores are.
        file: an SVG.
    """
    plt.rcParams["svg.hashsalt"] = "gtx"
    figure, axes = plt.subplots(figsize=(4.6, 2.9), layout="constrained")
    for (model, title), colour in zip(titles.items(), (OURS, THEIRS, QUOTED), strict=False):
        own = [point for point in points if point.model == model]
        means, sds = zip(*((statistics.mean(p.scores), statistics.stdev(p.scores)) for p in own), strict=True)
        axes.errorbar([p.rows for p in own], means, sds, fmt="o-", ms=4, lw=1.3, capsize=2, color=colour, label=title)
    rows = sorted({point.rows for point in points})
    axes.set_xscale("log")
    axes.set_xticks(rows, [f"{row:,}" for row in rows], fontsize=8)
    axes.minorticks_off()
    axes.set_xlabel("training molecules", fontsize=9)
    axes.set_ylabel(axis, fontsize=9)
    axes.tick_params(axis="y", labelsize=8)
    axes.grid(lw=0.4, alpha=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)
