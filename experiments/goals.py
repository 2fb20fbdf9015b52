"""Scores that the default model should reach, set before it was trained, and published scores, which are quoted."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from experiments.summary import HIGHER


class Aim(NamedTuple):
    """Aim on one set.

    Attributes:
        title: title of the set.
        metric: score that the set is judged by.
        unit: unit of the metric.
        single: aim for one model, the mean of at least three seeds or of the splits; of ZINC-12k one seed.
        ensemble: aim for five seeds averaged.
        beside: scores of others, measured beforehand or published.
        share: in place of `single`, a share of another model's score, and that model's name.
    """

    title: str
    metric: str
    unit: str = ""
    single: float | None = None
    ensemble: float | None = None
    beside: str = ""
    share: tuple[float, str] | None = None

    def goal(self, scores: Mapping[str, float | None]) -> float | None:
        """Return `single`, or the share of another model's score, None if that was not measured."""
        if self.share is None:
            return self.single
        share, model = self.share
        return None if scores.get(model) is None else share * scores[model]


_CHEMPROP = "chemprop 2.3, measured before the runs, {}"
_GRAPHS = "ZINC-12k, the benchmark's own graphs (rings and substructures counted in them), at most 500k parameters"
_SKETCH = "a first sketch of gtx, 0.106 after 30 epochs and 25 minutes on one core"
_SD, _BELOW_SCHNET = "sd of the target", (0.8, "schnet")

AIMS: dict[str, Aim] = {
    "mat-freesolv": Aim("FreeSolv, MAT's six splits", "rmse", _SD, 0.25, 0.235, _CHEMPROP.format("0.3605")),
    "mat-esol": Aim("ESOL, MAT's six splits", "rmse", _SD, 0.245, 0.23, _CHEMPROP.format("0.2815")),
    "scaffold-esol": Aim("ESOL, scaffold split", "rmse", "log mol/L", 0.78, 0.75),
    "scaffold-freesolv": Aim("FreeSolv, scaffold split", "rmse", "kcal/mol", 2.15, 2.0),
    "scaffold-bbbp": Aim("BBBP, scaffold split", "roc_auc", "", 0.73, 0.745),
    "scaffold-bace": Aim("BACE, scaffold split", "roc_auc", "", 0.84, 0.855),
    "scaffold-tox21": Aim("Tox21, scaffold split, mean of 12 tasks", "roc_auc", "", 0.785, 0.805),
    "zinc12k-graphs": Aim(_GRAPHS, "mae", "", 0.09),
    "zinc12k": Aim("ZINC-12k from SMILES, no descriptors", "mae", "", 0.07, None, _SKETCH),
    "qm9-gap": Aim("QM9, 3,000 molecules in space, HOMO-LUMO gap", "mae", "meV", share=_BELOW_SCHNET),
    "qm9-u0": Aim("QM9, 3,000 molecules in space, atomisation energy", "mae", "kcal/mol", share=_BELOW_SCHNET),
    "qm7-energy": Aim("QM7 in space, atomisation energy", "mae", "kcal/mol", share=_BELOW_SCHNET),
    "xtb9-random": Aim("xtb9, random split, mean of its five targets", "r2"),
}
"""By the folder of results; on one page, these come first and in this order."""


class Published(NamedTuple):
    """A published score: mean, and standard deviation over seeds where it was given."""

    model: str
    mean: float
    sd: float | None = None


MUBEN = "MUBen (Li et al. 2023, arXiv:2306.10060; Yinghao-Li/MUBen at f0ec556), the same rows"
METHODS = {"none": "", "DeepEnsembles": ", ensemble"}
"""Of which every model's score is quoted; of others (SWAG, SGLD, ...) the best one, if it beats these."""
_MAT = "Maziarka et al. 2020 (arXiv:2002.08264), the same splits, about"
QUOTED = {
    "zinc12k-graphs": [
        Published("GRIT", 0.059),
        Published("GINE, tuned", 0.065),
        Published("GPS", 0.070),
        Published("Graphormer-slim", 0.122),
    ],
    "mat-freesolv": [Published("MAT, after hundreds of trials", 0.27)],
    "mat-esol": [Published("MAT, after hundreds of trials", 0.28)],
}
SOURCES = dict.fromkeys(("mat-freesolv", "mat-esol"), _MAT) | {
    "zinc12k-graphs": "Ma et al. 2023 (arXiv:2305.17589), Luo et al. 2025 (arXiv:2502.09263), Rampášek et al. 2022 "
    "(arXiv:2205.12454) and Ying et al. 2021 (arXiv:2106.05234), the same graphs, days on GPUs",
}
"""Of the published scores; those of the scaffold splits are MUBen's."""


def published(folder: str, metric: str, root: Path | None = None) -> list[Published]:
    """List the published scores of a set; none for other sets, or if the table of MUBen is not there.

    Args:
        folder: of the set's results, such as `scaffold-esol`.
        metric: `rmse`, `mae` or `roc_auc`.
        root: the folder of data sets, by default `$GTX_DATA`.
    """
    if folder in QUOTED:
        return QUOTED[folder]
    file = (root or Path(os.environ.get("GTX_DATA", "."))) / "published" / "scaffold_published.csv"
    kind, _, name = folder.partition("-")
    if kind != "scaffold" or not file.is_file():
        return []
    mean, sd = (f"{metric.replace('_', '-')}-{word}" for word in ("mean", "std"))
    table = pd.read_csv(file, keep_default_na=False, na_values=[""])
    rows = table[(table["dataset"] == name) & table[mean].notna()]
    best = rows.sort_values(mean, ascending=metric not in HIGHER, kind="stable").index[:1]
    return [
        Published(
            row["model"] + METHODS.get(row["method"], f", {row['method']}"),
            float(row[mean]),
            None if pd.isna(row[sd]) else float(row[sd]),
        )
        for at, row in rows.iterrows()
        if row["method"] in METHODS or at in best
    ]
