"""Published scores on the same rows. They are quoted, not measured here.

The scores of the scaffold splits are MUBen's (Li et al. 2023, arXiv:2306.10060), read from a table beside the data.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import NamedTuple

from experiments.summary import HIGHER

MUBEN = "MUBen (Li et al. 2023, arXiv:2306.10060; Yinghao-Li/MUBen at f0ec556), the same rows"
METHODS = {"none": "", "DeepEnsembles": ", ensemble"}
"""Of which every model's score is quoted; of others (SWAG, SGLD, ...) the best one, if it beats these."""
COLUMNS = {"rmse": "rmse", "mae": "mae", "roc_auc": "roc-auc"}


class Published(NamedTuple):
    """A published score: mean, and standard deviation over seeds where it was given."""

    model: str
    mean: float
    sd: float | None


_MAT = "Maziarka et al. 2020 (arXiv:2002.08264), the same splits, about"
QUOTED = {
    "zinc12k-graphs": (
        Published("GRIT", 0.059, None),
        Published("GINE, tuned", 0.065, None),
        Published("GPS", 0.070, None),
        Published("Graphormer-slim", 0.122, None),
    ),
    "mat-freesolv": (Published("MAT, after hundreds of trials", 0.27, None),),
    "mat-esol": (Published("MAT, after hundreds of trials", 0.28, None),),
}
SOURCES = {
    "zinc12k-graphs": "Ma et al. 2023 (arXiv:2305.17589), Luo et al. 2025 (arXiv:2502.09263), Rampášek et al. 2022 "
    "(arXiv:2205.12454) and Ying et al. 2021 (arXiv:2106.05234), the same graphs, days on GPUs",
    "mat-freesolv": _MAT,
    "mat-esol": _MAT,
}


def source(folder: str) -> str:
    """Where the published scores of a set are from."""
    return SOURCES.get(folder, MUBEN)


def published(folder: str, metric: str, root: Path | None = None) -> list[Published]:
    """What was published for a set; nothing for other sets, or where the file is not at hand.

    Args:
        folder: of the set's results, such as `scaffold-esol`.
        metric: `rmse`, `mae` or `roc_auc`.
        root: the folder of data sets, by default `$GTX_DATA`.
    """
    if folder in QUOTED:
        return list(QUOTED[folder])
    root = root or Path(os.environ.get("GTX_DATA", "."))
    file = root / "published" / "scaffold_published.csv"
    kind, _, name = folder.partition("-")
    if kind != "scaffold" or metric not in COLUMNS or not file.is_file():
        return []
    mean, sd = (f"{COLUMNS[metric]}-{word}" for word in ("mean", "std"))
    with file.open(newline="") as opened:
        rows = [row for row in csv.DictReader(opened) if row["dataset"] == name and row[mean]]
    best = sorted(rows, key=lambda row: float(row[mean]), reverse=metric in HIGHER)[:1]
    chosen = [row for row in rows if row["method"] in METHODS or row in best]
    return [
        Published(
            row["model"] + METHODS.get(row["method"], f", {row['method']}"),
            float(row[mean]),
            float(row[sd]) if row[sd] else None,
        )
        for row in chosen
    ]
