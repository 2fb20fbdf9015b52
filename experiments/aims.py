"""Scores that the default model should reach, set before it was trained, and scores of others on the same rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Aim(NamedTuple):
    """Of one set.

    Attributes:
        title: of the set.
        metric: it is judged by.
        unit: of the metric.
        single: for one model, the mean of at least three seeds or of the splits; of ZINC-12k one seed.
        ensemble: for five seeds averaged.
        beside: what others reached, measured beforehand or published.
        share: in place of `single`: of another model's score, and that model's name.
    """

    title: str
    metric: str
    unit: str
    single: float | None = None
    ensemble: float | None = None
    beside: str = ""
    share: tuple[float, str] | None = None

    def goal(self, scores: Mapping[str, float | None]) -> float | None:
        """For one model: `single`, or the share of another's score, None where that was not measured.

        Args:
            scores: by the models' names.
        """
        if self.share is None:
            return self.single
        share, model = self.share
        return None if scores.get(model) is None else share * scores[model]


_CHEMPROP = "chemprop 2.3, measured before the runs, {}"
_BELOW_SCHNET = (0.8, "schnet")

AIMS: dict[str, Aim] = {
    "mat-freesolv": Aim(
        "FreeSolv, MAT's six splits", "rmse", "sd of the target", 0.25, 0.235, _CHEMPROP.format("0.3605")
    ),
    "mat-esol": Aim("ESOL, MAT's six splits", "rmse", "sd of the target", 0.245, 0.23, _CHEMPROP.format("0.2815")),
    "scaffold-esol": Aim("ESOL, scaffold split", "rmse", "log mol/L", 0.78, 0.75),
    "scaffold-freesolv": Aim("FreeSolv, scaffold split", "rmse", "kcal/mol", 2.15, 2.0),
    "scaffold-bbbp": Aim("BBBP, scaffold split", "roc_auc", "", 0.73, 0.745),
    "scaffold-bace": Aim("BACE, scaffold split", "roc_auc", "", 0.84, 0.855),
    "scaffold-tox21": Aim("Tox21, scaffold split, mean of 12 tasks", "roc_auc", "", 0.785, 0.805),
    "zinc12k-graphs": Aim(
        "ZINC-12k, the benchmark's own graphs (rings and substructures counted in them), at most 500k parameters",
        "mae",
        "",
        0.09,
    ),
    "zinc12k": Aim(
        "ZINC-12k from SMILES, no descriptors",
        "mae",
        "",
        0.07,
        None,
        "a first sketch of gtx, 0.106 after 30 epochs and 25 minutes on one core",
    ),
    "qm9-gap": Aim("QM9, 3,000 molecules in space, HOMO-LUMO gap", "mae", "meV", share=_BELOW_SCHNET),
    "qm9-u0": Aim("QM9, 3,000 molecules in space, atomisation energy", "mae", "kcal/mol", share=_BELOW_SCHNET),
    "qm7-energy": Aim("QM7 in space, atomisation energy", "mae", "kcal/mol", share=_BELOW_SCHNET),
    "xtb9-random": Aim("xtb9, random split, mean of its five targets", "r2", ""),
}
"""By the folder of results; on one page, these come first and in this order."""
