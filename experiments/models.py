"""The models of the benchmarks: gtx, gtx without a part or with one more, and the models it is compared with.

    python -m experiments.mat --sets freesolv --models $(python -m experiments.models) --jobs 2

`python -m experiments.models` prints the names of the default model without one of its parts, or with one more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import nn

from experiments.runs import Run, split_digest
from gtx.data import MoleculeStore, PairBudgetSampler
from gtx.models import build_model
from gtx.prediction import load_predictor
from gtx.prediction.loading import with_embeddings
from gtx.training import TrainedEnsembleMember, TrainSettings, fit
from gtx.training_data.settings import hash_file
from gtx.workflow import train_model
from gtx.workflow.specs import make_model_spec

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
    module = "experiments.rivals.classical"
    kinds = {"ridge": ("ridge (logistic for classes)", 1), "forest": ("random forest", 3)}
    inputs = {"counts": "Morgan counts", "descriptors": "RDKit descriptors"}
    made = {"mean": Model("mean of the training rows", 1, module)}
    for kind, (title, seeds) in (kinds | {"boosting": ("gradient boosting", 1)}).items():
        for name, words in inputs.items():
            made[f"{kind}-{name}"] = Model(f"{title}, {words}", seeds, module)
    for kind, (title, seeds) in kinds.items():
        for name, words in inputs.items():
            title_of_whole = f"{title}, {words}, of training and validation rows"
            made[f"{kind}-{name}{WHOLE}"] = Model(title_of_whole, seeds, module)
    return made


MODELS: dict[str, Model] = {
    **OWN,
    **PARTS,
    **_classical(),
    "gine": Model("GINE of PyG, tuned", module="experiments.rivals.pyg"),
    "gps": Model("GPS of PyG, tuned", module="experiments.rivals.pyg"),
    "chemprop": Model("chemprop, defaults", module="experiments.rivals.chemprop"),
    "chemprop-rdkit": Model("chemprop with RDKit features", module="experiments.rivals.chemprop"),
}


def fit_predict(run: Run) -> tuple[np.ndarray, dict[str, Any]]:
    """Train the model that a run names, and predict all molecules."""
    model = MODELS[run.model]
    if model.module is not None:
        return import_module(model.module).fit_predict(run)
    return train_and_predict(run, model)


def train_and_predict(run: Run, model: Model) -> tuple[np.ndarray, dict[str, Any]]:
    """Train by `gtx train` with one thread; it resumes."""
    data = replace(run.data, featuriser=replace(run.data.featuriser, **model.featuriser))
    arguments = {"blend": "no", **model.settings, "model_arguments": dict(model.arguments)}
    settings = TrainSettings(**arguments, seed=run.seed, threads=1, progress=False)
    metrics = train_model(data, settings, run.folder, start=model.start, baselines=False, report=False).metrics
    prediction, facts = predictions_of(run.folder / "model.gtx", run)
    if metrics["alone"]:
        facts["alone"] = {name: scores["test"][run.public_set.metric] for name, scores in metrics["alone"].items()}
        facts["kernel_share"] = metrics["kernel_share"]
    # the kernel of the file has learned from the validation rows; their scores are of before
    val = run.dataset.split["val"]
    before = pd.read_csv(run.folder / "predictions.csv")[[f"{name}_pred" for name in run.targets]]
    prediction[val] = before.to_numpy(float)[run.dataset.rows[val]]
    return prediction, facts


def predictions_of(file: Path, run: Run) -> tuple[np.ndarray, dict[str, Any]]:
    """Predict all molecules of a run by a model file."""
    predictor = load_predictor(file, device="cpu")
    header, store = predictor.header, run.dataset.store
    if not header.featuriser.descriptors:
        store = replace(store, descriptors=store.descriptors[:, :0])
    training = {name: value for name, value in header.settings.items() if name != "seed"}
    return predictor.predict_store(store).mean, {
        "parameters": sum(p.numel() for member in predictor.members for p in member.parameters()),
        "settings": {"model": header.model, "training": training, "featuriser": header.featuriser.to_dict()},
    }


def fit_network(
    run: Run,
    settings: TrainSettings | None = None,
    spec: dict[str, Any] | None = None,
    make: Callable[[], nn.Module] | None = None,
    title: str | None = None,
) -> tuple[np.ndarray, dict[str, Any]]:
    """Train a network on the store of a run, whatever it was made of, and predict all molecules; it resumes.

    Args:
        run: the run.
        settings: settings of training; by default those of `gtx train` with the seed of the run and one thread.
        spec: the model in plain values; by default that of `gtx train`.
        make: makes the model, if it is none of gtx's own.
        title: its name in a table, if it has none in `MODELS`.
    """
    dataset = run.dataset
    settings = settings or TrainSettings(seed=run.seed, threads=1, progress=False)
    spec = spec or make_model_spec(settings, run.data.featuriser, dataset.task, len(dataset.split["train"]))
    foundation = spec.get("arguments", {}).get("foundation")
    store = dataset.store if foundation is None else with_embeddings(dataset.store, foundation)
    train, val = (store.subset(dataset.split[part]) for part in ("train", "val"))
    marks = {"data": hash_file(run.data.data), "split": split_digest(dataset), "model": spec}
    make, processor = make or partial(build_model, spec), time.process_time()
    (member,) = fit(make, dataset.task, train, val, settings, run.folder, marks=marks)
    training = {name: value for name, value in settings.decisive().items() if name != "seed"}
    facts = {
        "parameters": sum(p.numel() for p in member.model.parameters()),
        "settings": {"model": spec, "task": dataset.task.config(), "training": training},
        "seconds": round(sum(row["seconds"] for row in member.history), 1),  # of all epochs, resumed or not
        "cpu_seconds": round(time.process_time() - processor, 1),
        "best_epoch": member.best_epoch,
    }
    if title is not None:
        facts["title"] = title
    return network_outputs(member, store), facts


@torch.inference_mode()
def network_outputs(member: TrainedEnsembleMember, store: MoleculeStore) -> np.ndarray:
    """Predict float64 `[m, T]` in the targets' own units, by any model that takes a batch."""
    output = torch.empty(len(store), member.task.objective.out_channels, dtype=torch.float64)
    for rows in PairBudgetSampler(store.sizes, 50_000, max_molecules=256, shuffle=False):
        output[rows] = member.model(store.batch(rows)).double()
    return member.task.objective.unscaled(output, store).numpy()


if __name__ == "__main__":
    print(*PARTS)
