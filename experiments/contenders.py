"""The models of the benchmarks: gtx, and the models it is compared with."""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

from experiments.parts import PARTS, STARTS
from experiments.public_sets import FitResult, LoadedRun

WHOLE = "-whole"
"""Ends the name of a model that learns from the validation rows too, when they have chosen."""
_CLASSICAL = "experiments.rivals.classical"
_ON = {"counts": "Morgan counts", "descriptors": "RDKit descriptors"}


class Model(NamedTuple):
    """A model.

    Attributes:
        title: its name in a table.
        module: a module with `fit_predict(loaded)`; it is imported when the model is run.
        seeds: of a row of a table, if the set has one split; 1 if nothing of the model is random.
        members: the model whose trained files it needs.
    """

    title: str
    module: str
    seeds: int = 3
    members: str | None = None


MODELS: dict[str, Model] = {
    "gtx": Model("gtx, the network alone (`--mix no`)", "experiments.gtx_models", seeds=5),
    "gtx-ensemble": Model("gtx, five seeds averaged", "experiments.gtx_models", seeds=1, members="gtx"),
    **{name: Model(f"gtx {part.title}", "experiments.gtx_models", 5) for name, part in STARTS.items()},
    **{name: Model(f"gtx {part.title}", "experiments.gtx_models") for name, part in PARTS.items()},
    "mean": Model("mean of the training rows", _CLASSICAL, seeds=1),
    **{
        f"{kind}-{inputs}": Model(f"{title}, {words}", _CLASSICAL, seeds)
        for kind, title, seeds in (
            ("ridge", "ridge (logistic for classes)", 1),
            ("forest", "random forest", 3),
            ("boosting", "gradient boosting", 1),
        )
        for inputs, words in _ON.items()
    },
    **{
        f"{kind}-{inputs}{WHOLE}": Model(f"{title}, {words}, of training and validation rows", _CLASSICAL, seeds)
        for kind, title, seeds in (("ridge", "ridge (logistic for classes)", 1), ("forest", "random forest", 3))
        for inputs, words in _ON.items()
    },
    "gine": Model("GINE of PyG, tuned", "experiments.rivals.pyg"),
    "gps": Model("GPS of PyG, tuned", "experiments.rivals.pyg"),
    "chemprop": Model("chemprop, defaults", "experiments.rivals.chemprop"),
    "chemprop-rdkit": Model("chemprop with RDKit features", "experiments.rivals.chemprop"),
}


def fit_predict(loaded: LoadedRun) -> FitResult:
    """Train the model that a run names, and predict all molecules."""
    return import_module(MODELS[loaded.run.model].module).fit_predict(loaded)
