"""The models of the benchmarks: gtx and those it is measured against."""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

from experiments.parts import PARTS
from experiments.problem import Answer, Problem

_ON = {"counts": "Morgan counts", "descriptors": "RDKit descriptors"}


class Model(NamedTuple):
    """A model.

    Attributes:
        title: what a table calls it.
        module: its `answer(problem)` does the work; imported when it is run.
        seeds: how many make a row of a table where there is a single split; 1 where nothing is left to chance.
        members: whose trained files it needs.
    """

    title: str
    module: str
    seeds: int = 3
    members: str | None = None


MODELS: dict[str, Model] = {
    "gtx": Model("gtx, defaults of `gtx train`", "experiments.ours", seeds=5),
    "gtx-ensemble": Model("gtx, five seeds averaged", "experiments.ours", seeds=1, members="gtx"),
    **{name: Model(f"gtx {part.title}", "experiments.ours") for name, part in PARTS.items()},
    "mean": Model("mean of the training rows", "experiments.rivals.simple", seeds=1),
    **{
        f"{kind}-{inputs}": Model(f"{title}, {words}", "experiments.rivals.simple", seeds)
        for kind, title, seeds in (
            ("ridge", "ridge (logistic for classes)", 1),
            ("forest", "random forest", 3),
            ("boosting", "gradient boosting", 1),
        )
        for inputs, words in _ON.items()
    },
    "gine": Model("GINE of PyG, tuned", "experiments.rivals.pyg"),
    "gps": Model("GPS of PyG, tuned", "experiments.rivals.pyg"),
    "chemprop": Model("chemprop, defaults", "experiments.rivals.chemprop"),
    "chemprop-rdkit": Model("chemprop with RDKit features", "experiments.rivals.chemprop"),
}


def answer(problem: Problem) -> Answer:
    """Train the model of a problem and predict."""
    return import_module(MODELS[problem.run.model].module).answer(problem)
