"""Scores that MUBen (Li et al. 2023, arXiv:2306.10060) published for the scaffold splits; quoted, not measured here."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import NamedTuple

SOURCE = "MUBen (Li et al. 2023, arXiv:2306.10060; Yinghao-Li/MUBen at f0ec556), the same rows"
METHODS = {"none": "", "DeepEnsembles": ", ensemble"}
COLUMNS = {"rmse": "rmse", "mae": "mae", "roc_auc": "roc-auc"}


class Published(NamedTuple):
    """A published score: mean, and standard deviation over seeds where it was given."""

    model: str
    mean: float
    sd: float | None


def published(folder: str, metric: str, root: Path | None = None) -> list[Published]:
    """What was published for a set; nothing for other sets, or where the file is not at hand.

    Args:
        folder: of the set's results, such as `scaffold-esol`.
        metric: `rmse`, `mae` or `roc_auc`.
        root: the folder of data sets, by default `$GTX_DATA`.
    """
    root = root or Path(os.environ.get("GTX_DATA", "."))
    file = root / "published" / "scaffold_published.csv"
    kind, _, name = folder.partition("-")
    if kind != "scaffold" or metric not in COLUMNS or not file.is_file():
        return []
    mean, sd = (f"{COLUMNS[metric]}-{word}" for word in ("mean", "std"))
    with file.open(newline="") as opened:
        rows = [
            row for row in csv.DictReader(opened) if row["dataset"] == name and row["method"] in METHODS and row[mean]
        ]
    return [
        Published(row["model"] + METHODS[row["method"]], float(row[mean]), float(row[sd]) if row[sd] else None)
        for row in rows
    ]
