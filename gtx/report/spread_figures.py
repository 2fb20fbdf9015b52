"""Pictures of what a model says of its own errors."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from gtx.report.drawing import COLOURS, FAINT, INK, SMALL, panel
from gtx.report.figures import MOLECULES_A_BIN, Columns
from gtx.report.words import PARTS, in_unit, number

MOST_GROUPS = 10


def spread_reliability(std: Columns, errors: Columns, unit: str) -> Figure:
    """The root mean square error of molecules of like standard deviation, against what it should be, that deviation.

    Args:
        std: `[m]` of each part, as the model tells it.
        errors: predicted minus measured, likewise.
        unit: of both.
    """
    with panel(
        "Calibration", f"standard deviation{in_unit(unit)}", f"root mean square error{in_unit(unit)}", square=True
    ) as axes:
        top = 0.0
        for part in std:
            groups = np.array_split(np.argsort(std[part], kind="stable"), _groups(len(std[part])))
            told, found = (
                np.array([np.sqrt(np.mean(values[rows] ** 2)) for rows in groups])
                for values in (std[part], errors[part])
            )
            reach = found / np.sqrt(2 * len(std[part]) / len(groups))  # the standard error of a root mean square
            axes.errorbar(told, found, reach, fmt="o-", ms=3.5, linewidth=1.2, color=COLOURS[part], label=PARTS[part])
            top = max(top, told.max(), (found + reach).max())
        axes.axline((0, 0), (1, 1), color=INK, linewidth=0.8, zorder=1.5)
        axes.set(xlim=(0, 1.08 * top or 1), ylim=(0, 1.08 * top or 1))
        axes.legend(loc="upper left")
    return axes.figure


def coverage_by_similarity(
    similarity: np.ndarray, inside: np.ndarray, width: np.ndarray, level: float, part: str, unit: str
) -> Figure:
    """The share of molecules inside their intervals, by how similar they are to the training molecules, with the range
    of chance about the level; below, the mean width of the intervals.

    Args:
        similarity: `[m]`, from 0 to 1.
        inside: bool `[m]`.
        width: `[m]`, of the intervals.
        level: what the share should be.
        part: of the split.
        unit: of the width.
    """
    groups = np.array_split(np.argsort(similarity, kind="stable"), min(5, _groups(len(similarity))))
    place, share, wide = (np.array([values[rows].mean() for rows in groups]) for values in (similarity, inside, width))
    chance = 1.96 * np.sqrt(level * (1 - level) / np.array([len(rows) for rows in groups]))
    with panel(
        "Coverage by similarity", "similarity to training molecules", "share inside its interval", square=True
    ) as axes:
        axes.fill_between(
            [-0.04, 1.04], level - chance.max(), level + chance.max(), color=FAINT, alpha=0.7, linewidth=0
        )
        axes.axhline(level, color=INK, linewidth=0.8)
        axes.plot(place, share, "o-", color=COLOURS[part], ms=4)
        for x, mean in zip(place, wide, strict=True):
            axes.text(x, 0.03, number(float(mean)), ha="center", fontsize=SMALL, rotation=90)
        axes.set(xlim=(-0.04, 1.04), ylim=(0, 1.04), aspect="auto")
        axes.text(0.02, 0.26, f"mean width{in_unit(unit)}:", fontsize=SMALL)
    return axes.figure


def _groups(molecules: int) -> int:
    return int(np.clip(molecules // MOLECULES_A_BIN, 1, MOST_GROUPS))
