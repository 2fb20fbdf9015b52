"""Accuracy by sequence and by token, epoch by epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

COLOURS = ("#c0392b", "#34495e", "#c9780f", "#2f6fd6")


def draw(histories: Mapping[str, Sequence[Mapping[str, float]]], file: Path) -> None:
    """Validation accuracies and loss of some runs.

    Args:
        histories: rows per epoch, by the run's title, as `gtx.training.Member.history`.
        file: an SVG.
    """
    plt.rcParams["svg.hashsalt"] = "gtx"  # the same picture is the same file
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    for (title, rows), colour in zip(histories.items(), COLOURS, strict=False):
        epochs = [row["epoch"] + 1 for row in rows]
        whole = [row["val_sequence_accuracy"] for row in rows]
        if any(whole):  # a language model has none to get right
            left.plot(epochs, whole, color=colour, label=f"{title}: sequences")
        left.plot(epochs, [row["val_token_accuracy"] for row in rows], color=colour, ls=":", label=f"{title}: tokens")
        right.plot(epochs, [row["val_perplexity"] for row in rows], color=colour)
    left.set(xlabel="epoch", ylabel="share right (validation)", ylim=(0, 1.02))
    right.set(xlabel="epoch", ylabel="perplexity per token (validation)", yscale="log")
    for axes in (left, right):
        axes.grid(lw=0.4, alpha=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    right.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    right.yaxis.set_major_formatter("{x:g}")
    right.yaxis.set_minor_formatter(NullFormatter())
    figure.get_layout_engine().set(wspace=0.06)
    figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)
