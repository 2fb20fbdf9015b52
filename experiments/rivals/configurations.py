"""The configurations of GINE and GPS that are tried, and the best one for a task."""

from __future__ import annotations

from itertools import product
from pathlib import Path

from experiments import archive, mat, scaffold
from experiments.archive import RESULTS
from experiments.rivals.networks import Configuration
from gtx.errors import InputError

CONFIGURATIONS = tuple(Configuration(*how) for how in product((3, 5), (0.0, 0.2), (False, True)))
TUNED_ON = {"regression": mat.SETS["freesolv"], "classification": scaffold.SETS["bace"]}
KINDS = ("gine", "gps")


def best(kind: str, task: str, results: Path = RESULTS) -> int:
    """The number of the configuration with the least validation loss.

    Raises:
        InputError: a configuration has not been tried.
    """
    found = {run["name"]: run["val"]["loss"] for run in archive.runs(results, "tuning", TUNED_ON[task].folder)}
    losses = {number: found.get(f"{kind}-{number}") for number in range(len(CONFIGURATIONS))}
    if missing := [f"{kind}-{number}" for number, loss in losses.items() if loss is None]:
        where = f"{results / archive.RUNS} lacks {', '.join(missing)} of {TUNED_ON[task].name}"
        raise InputError(f"{kind} is not tuned: {where}; run python -m experiments.rivals.tuning")
    return min(losses, key=losses.get)
