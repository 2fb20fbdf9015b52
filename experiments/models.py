"""The models of the benchmarks: gtx, gtx without a part or with one more, and the models it is compared with.

    python -m experiments.mat --sets freesolv --models $(python -m experiments.models) --jobs 2

`python -m experiments.models` prints the names of the default model without one of its parts, or with one more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch

from experiments.runs import Run
from gtx.data import MoleculeStore, PairBudgetSampler
from gtx.prediction import load_predictor
from gtx.training import TrainedMember, TrainSettings
from gtx.workflow import train_model

CLASSICAL, PYG, CHEMPROP = (f"experiments.rivals.{name}" for name in ("classical", "pyg", "chemprop"))
WHOLE = "-whole"
"""End of the name of a model that learns from the validation rows too, when they have chosen."""


class Model(NamedTuple):
    """A model, by default `gtx train --blend no`.

    Attributes:
        title: its name in a table.
        seeds: number of seeds of a row; 1 if nothing is random.
        module: module with its `fit_predict`, if it is not gtx.
        arguments: arguments of the architecture.
        settings: settings of training.
        featuriser: how molecules are read.
        start: model file that training starts from.
    """

    title: str
    seeds: int = 3
    module: str | None = None
    arguments: Mapping[str, Any] = {}
    settings: Mapping[str, Any] = {}
    featuriser: Mapping[str, Any] = {}
    start: str | None = None


ENCODINGS = {"bonds": "bonds", "path": "path distances", "walk": "random walks", "degree": "degrees"}
KERNEL = "with a kernel beside it"


def _other_encodings(left_out: str) -> dict[str, list[str]]:
    return {"encodings": [name for name in ENCODINGS if name != left_out]}


PARTS: dict[str, Model] = {
    "gtx-without-descriptors": Model("gtx without descriptors", featuriser={"descriptors": False}),
    "gtx-without-substructures": Model("gtx without counts of substructures", arguments={"substructures": None}),
    "gtx-without-local": Model("gtx without message passing over bonds", arguments={"local": False}),
    **{
        f"gtx-without-{name}": Model(f"gtx without the encoding of {words}", arguments=_other_encodings(name))
        for name, words in ENCODINGS.items()
    },
    "gtx-without-pair-mlp": Model("gtx without the MLP of the pair features", arguments={"pair_mlp": False}),
    "gtx-without-pair-values": Model("gtx without pair features in the values", arguments={"edge_value": False}),
    "gtx-without-average": Model("gtx without averaged weights", settings={"ema": 0.0}),
    "gtx-with-zero-head": Model("gtx with a head whose outputs are 0 at first", arguments={"zero_head": True}),
    "gtx-with-ring": Model("gtx with an encoding of common rings", arguments={"encodings": [*ENCODINGS, "ring"]}),
    "gtx-with-simple-paths": Model(
        "gtx with counts of simple paths", arguments={"encodings": [*ENCODINGS, "simple_paths"]}
    ),
    "gtx-with-sum": Model("gtx with a sum alone as readout", arguments={"readout": ["sum"]}),
    "gtx-with-mean-max": Model("gtx with mean and maximum alone as readout", arguments={"readout": ["mean", "max"]}),
}
"""The default model without a part or with one more."""
WITHOUT_EMBEDDINGS = {"kernel_parts": ["substructures", "descriptors"]}
"""Settings of a kernel that does not compare the embeddings of the foundation."""
OWN: dict[str, Model] = {
    "gtx": Model("gtx, the network alone (`--blend no`)", 5),
    "gtx-default": Model(f"gtx {KERNEL}, the default of `gtx train`", 5, settings={"blend": None}),
    "gtx-folds": Model(f"gtx of five folds {KERNEL} (`--folds 5`)", 3, settings={"blend": None, "folds": 5}),
    "gtx-from-foundation": Model(f"gtx from the foundation, {KERNEL}", 5, settings={"blend": None}, start="foundation"),
    "gtx-mix": Model(f"gtx {KERNEL} that compares no embeddings", 5, settings={"blend": None, **WITHOUT_EMBEDDINGS}),
    "gtx-kernel": Model(
        "gtx as the kernel alone, without embeddings", 5, settings={"model": "kernel", **WITHOUT_EMBEDDINGS}
    ),
    "gtx-tanimoto": Model(
        "gtx as the kernel without descriptors (`--model tanimoto`)", 5, settings={"model": "tanimoto"}
    ),
}


def _classical() -> dict[str, Model]:
    made = {"mean": Model("mean of the training rows", 1, CLASSICAL)}
    kinds = {"ridge": ("ridge (logistic for classes)", 1), "forest": ("random forest", 3)}
    for kind, (title, seeds) in (kinds | {"boosting": ("gradient boosting", 1)}).items():
        for inputs, words in (("counts", "Morgan counts"), ("descriptors", "RDKit descriptors")):
            made[f"{kind}-{inputs}"] = Model(f"{title}, {words}", seeds, CLASSICAL)
            if kind in kinds:
                whole = f"{title}, {words}, of training and validation rows"
                made[f"{kind}-{inputs}{WHOLE}"] = Model(whole, seeds, CLASSICAL)
    return made


MODELS: dict[str, Model] = {
    **OWN,
    **PARTS,
    **_classical(),
    "gine": Model("GINE of PyG, tuned", module=PYG),
    "gps": Model("GPS of PyG, tuned", module=PYG),
    "chemprop": Model("chemprop, defaults", module=CHEMPROP),
    "chemprop-rdkit": Model("chemprop with RDKit features", module=CHEMPROP),
}


def fit_predict(run: Run) -> tuple[np.ndarray, dict[str, Any]]:
    """Train the model that a run names, gtx's by `gtx train` with one thread, and predict all molecules."""
    model = MODELS[run.model]
    if model.module is not None:
        return import_module(model.module).fit_predict(run)
    data = replace(run.data, featuriser=replace(run.data.featuriser, **model.featuriser))
    arguments = {"blend": "no", **model.settings, "model_arguments": dict(model.arguments)}
    settings = TrainSettings(**arguments, seed=run.seed, threads=1, progress=False)
    metrics = train_model(data, settings, run.folder, start=model.start, baselines=False, report=False).metrics
    predictor, store = load_predictor(run.folder / "model.gtx", device="cpu"), run.dataset.store
    header = predictor.header
    if not header.featuriser.descriptors:
        store = replace(store, descriptors=store.descriptors[:, :0])
    prediction = predictor.predict_store(store).mean
    training = {name: value for name, value in header.settings.items() if name != "seed"}
    facts = {
        "parameters": sum(p.numel() for member in predictor.members for p in member.parameters()),
        "settings": {"model": header.model, "training": training, "featuriser": header.featuriser.to_dict()},
    }
    if metrics["alone"]:
        facts["alone"] = {name: scores["test"][run.public_set.metric] for name, scores in metrics["alone"].items()}
        facts["kernel_share"] = metrics["kernel_share"]
    # the kernel of the file has learned from the validation rows; their scores are of before
    val = run.dataset.split["val"]
    before = pd.read_csv(run.folder / "predictions.csv")[[f"{name}_pred" for name in run.targets]]
    prediction[val] = before.to_numpy(float)[run.dataset.rows[val]]
    return prediction, facts


@torch.inference_mode()
def network_outputs(member: TrainedMember, store: MoleculeStore) -> np.ndarray:
    """Predict float64 `[m, T]` in the targets' own units, by any model that takes a batch."""
    output = torch.empty(len(store), member.task.objective.out_channels, dtype=torch.float64)
    for rows in PairBudgetSampler(store.sizes, 50_000, max_molecules=256, shuffle=False):
        output[rows] = member.model(store.batch(rows)).double()
    return member.task.objective.unscale(output, store).numpy()


if __name__ == "__main__":
    print(*PARTS)
