"""The models of the benchmarks: gtx, gtx less or more a part, and the models it is compared with.

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

from experiments.public_sets import FitResult, LoadedRun
from experiments.record import split_digest
from gtx.data import MoleculeStore, PairBudgetSampler
from gtx.dataset import sha256
from gtx.errors import InputError
from gtx.files import whole_file
from gtx.models import build_model
from gtx.prediction import load
from gtx.training import Member, TrainSettings, fit
from gtx.workflow import adapt, train
from gtx.workflow.specs import model_spec

WHOLE = "-whole"
"""Ends the name of a model that learns from the validation rows too, when they have chosen."""
MEMBERS = 5


class Part(NamedTuple):
    """A difference to `gtx train --blend no`.

    Attributes:
        title: in words.
        arguments: of the architecture.
        settings: of training.
        featuriser: how molecules are read.
        start: the model file that training starts from.
        adapted: whether it is adapted first, to the training and validation molecules, as `gtx adapt` does it.
    """

    title: str
    arguments: Mapping[str, Any] = {}
    settings: Mapping[str, Any] = {}
    featuriser: Mapping[str, Any] = {}
    start: str | None = None
    adapted: bool = False


_ENCODINGS = {"bonds": "bonds", "path": "path distances", "walk": "random walks", "degree": "degrees"}
_BARE = {"descriptors": False}
_FROZEN = {"rates": {"all": 0, "head": 1, "substructures": 1}}

PARTS: dict[str, Part] = {
    "gtx-without-descriptors": Part("without descriptors", featuriser=_BARE),
    "gtx-without-substructures": Part("without counts of substructures", {"substructures": None}),
    "gtx-without-local": Part("without message passing over bonds", {"local": False}),
    **{
        f"gtx-without-{name}": Part(
            f"without the encoding of {words}", {"encodings": [one for one in _ENCODINGS if one != name]}
        )
        for name, words in _ENCODINGS.items()
    },
    "gtx-without-pair-mlp": Part("without the MLP of the pair features", {"pair_mlp": False}),
    "gtx-without-pair-values": Part("without pair features in the values", {"edge_value": False}),
    "gtx-without-average": Part("without averaged weights", {}, {"ema": 0.0}),
    "gtx-with-zero-head": Part("with a head whose outputs are 0 at first", {"zero_head": True}),
    "gtx-with-ring": Part("with an encoding of common rings", {"encodings": [*_ENCODINGS, "ring"]}),
    "gtx-with-sum": Part("with a sum alone as readout", {"readout": ["sum"]}),
    "gtx-with-mean-max": Part("with mean and maximum alone as readout", {"readout": ["mean", "max"]}),
}
"""The default model without a part or with one more, by the models' names."""

STARTS: dict[str, Part] = {
    "gtx-foundation": Part("from the foundation", start="foundation"),
    "gtx-foundation-full": Part("from the foundation, all at the whole rate", {}, {"rates": {}}, start="foundation"),
    "gtx-foundation-frozen": Part("from the foundation, encoder frozen", {}, _FROZEN, start="foundation"),
    "gtx-foundation-bare": Part("from the foundation, without descriptors", {}, {}, _BARE, start="foundation"),
    "gtx-foundation-apart": Part(
        "from a foundation that never saw the test rows' scaffolds", start="build/foundation/foundation-apart.gtx"
    ),
    "gtx-mix": Part("with a kernel beside it, the default of `gtx train`", {}, {"blend": None}),
    "gtx-foundation-mix": Part("from the foundation, with a kernel beside it", {}, {"blend": None}, start="foundation"),
    "gtx-adapted-mix": Part(
        "from the foundation adapted to the set's molecules, with a kernel beside it",
        settings={"blend": None},
        start="foundation",
        adapted=True,
    ),
    "gtx-kernel": Part("as the kernel alone (`--model kernel`)", {}, {"model": "kernel"}),
    "gtx-tanimoto": Part("as the kernel without descriptors (`--model tanimoto`)", {}, {"model": "tanimoto"}),
    "gtx-128": Part("of the foundation's shape, from scratch", {"channels": 128}),
}
"""The foundation, the kernel, and what they are compared with, by the models' names."""


class Model(NamedTuple):
    """A model: its name in a table, the module of its `fit_predict`, the seeds of a row (1 if nothing is random)."""

    title: str
    module: str
    seeds: int = 3


_HERE, _CLASSICAL, _PYG, _CHEMPROP = (
    "experiments.models",
    *(f"experiments.rivals.{name}" for name in ("classical", "pyg", "chemprop")),
)
_ON = {"counts": "Morgan counts", "descriptors": "RDKit descriptors"}
_RIDGE, _FOREST = ("ridge", "ridge (logistic for classes)", 1), ("forest", "random forest", 3)

MODELS: dict[str, Model] = {
    "gtx": Model("gtx, the network alone (`--blend no`)", _HERE, 5),
    "gtx-ensemble": Model("gtx, five seeds averaged", _HERE, 1),
    **{name: Model(f"gtx {part.title}", _HERE, 5) for name, part in STARTS.items()},
    **{name: Model(f"gtx {part.title}", _HERE) for name, part in PARTS.items()},
    "mean": Model("mean of the training rows", _CLASSICAL, 1),
    **{
        f"{kind}-{inputs}": Model(f"{title}, {words}", _CLASSICAL, seeds)
        for kind, title, seeds in (_RIDGE, _FOREST, ("boosting", "gradient boosting", 1))
        for inputs, words in _ON.items()
    },
    **{
        f"{kind}-{inputs}{WHOLE}": Model(f"{title}, {words}, of training and validation rows", _CLASSICAL, seeds)
        for kind, title, seeds in (_RIDGE, _FOREST)
        for inputs, words in _ON.items()
    },
    "gine": Model("GINE of PyG, tuned", _PYG),
    "gps": Model("GPS of PyG, tuned", _PYG),
    "chemprop": Model("chemprop, defaults", _CHEMPROP),
    "chemprop-rdkit": Model("chemprop with RDKit features", _CHEMPROP),
}


def fit_predict(loaded: LoadedRun) -> FitResult:
    """Train the model that a run names, and predict all molecules."""
    name = loaded.run.model
    if MODELS[name].module != _HERE:
        return import_module(MODELS[name].module).fit_predict(loaded)
    return average(loaded) if name == "gtx-ensemble" else single(loaded)


def single(loaded: LoadedRun) -> FitResult:
    """`gtx train --blend no`, otherwise as the model's name says, and one thread; resumes."""
    part = (PARTS | STARTS).get(loaded.run.model, Part("as it is"))
    data = replace(loaded.data, featuriser=replace(loaded.data.featuriser, **part.featuriser))
    own = {"blend": "no", **part.settings, "model_arguments": dict(part.arguments)}
    settings = TrainSettings(**own, seed=loaded.run.seed, threads=1, progress=False)
    start = _adapted(part.start, loaded) if part.adapted else part.start
    train(data, settings, loaded.folder, start=start, baselines=False, report=False)
    found = _predicted([loaded.folder / "model.gtx"], loaded)
    val = loaded.dataset.split["val"]  # the kernel of the file has learned from these rows; their scores are of before
    before = pd.read_csv(loaded.folder / "predictions.csv")[[f"{name}_pred" for name in loaded.names]]
    found.prediction[val] = before.to_numpy(float)[loaded.dataset.rows[val]]
    return found


def _adapted(start: str, loaded: LoadedRun) -> Path:
    """A pretrained model that has learned the descriptors of all molecules but those of the test rows; resumes."""
    learned = np.sort(np.concatenate([rows for part, rows in loaded.dataset.split.items() if part != "test"]))
    table, out = (loaded.folder.with_name(f"{loaded.folder.name}-start.{kind}") for kind in ("csv", "gtx"))
    texts = pd.read_csv(loaded.data.data, dtype=str)[loaded.data.smiles_column].iloc[loaded.dataset.rows[learned]]
    with whole_file(table, "w") as made:
        texts.to_csv(made, index=False)
    settings = TrainSettings(epochs=10, lr=3e-4, clip=0.5, seed=loaded.run.seed, threads=1, progress=False)
    adapt(start, str(table), out, settings, smiles_column=texts.name, workers=0)
    return out


def average(loaded: LoadedRun) -> FitResult:
    """The mean prediction of five models; nothing is trained.

    Raises:
        InputError: one of their files is not there.
    """
    members = [loaded.run._replace(model="gtx", seed=seed) for seed in range(MEMBERS)]
    files = [member.folder(loaded.runs) / "model.gtx" for member in members]
    for member, file in zip(members, files, strict=True):
        if not file.exists():
            raise InputError(f"gtx-ensemble averages trained models: expected {file}; run gtx with seed {member.seed}")
    return _predicted(files, loaded)


def _predicted(files: list[Path], loaded: LoadedRun) -> FitResult:
    predictors = [load(file, device="cpu") for file in files]
    header, store = predictors[0].header, loaded.dataset.store
    if not header.featuriser.descriptors:
        store = replace(store, descriptors=store.descriptors[:, :0])
    decisive = {name: value for name, value in header.settings.items() if name != "seed"}
    return FitResult(
        np.mean([one.predict_store(store).mean for one in predictors], axis=0),
        sum(p.numel() for one in predictors for member in one.members for p in member.parameters()),
        {"model": header.model, "training": decisive, "featuriser": header.featuriser.to_dict()},
    )


def fit_network(
    loaded: LoadedRun,
    settings: TrainSettings | None = None,
    spec: dict[str, Any] | None = None,
    make: Callable[[], nn.Module] | None = None,
    title: str | None = None,
) -> FitResult:
    """Train a network on the store of a run, whatever it was made of, and predict all molecules; resumes.

    Args:
        loaded: the run, its task and its molecules.
        settings: of training; by default those of `gtx train` with the seed of the run and one thread.
        spec: the model in plain values; by default that of `gtx train`.
        make: makes the model, where it is none of gtx's own.
        title: what a table calls the model.
    """
    dataset = loaded.dataset
    settings = settings or TrainSettings(seed=loaded.run.seed, threads=1, progress=False)
    spec = spec or model_spec(settings, loaded.data.featuriser, dataset.task, len(dataset.split["train"]))
    train, val = (dataset.store.subset(dataset.split[part]) for part in ("train", "val"))
    marks = {"data": sha256(loaded.data.data), "split": split_digest(dataset), "model": spec}
    make, processor = make or partial(build_model, spec), time.process_time()
    (member,) = fit(make, dataset.task, train, val, settings, loaded.folder, marks=marks)
    history = member.history
    return FitResult(
        network_outputs(member, dataset.store),
        sum(p.numel() for p in member.model.parameters()),
        {
            "model": spec,
            "task": dataset.task.config(),
            "training": {name: value for name, value in settings.decisive().items() if name != "seed"},
        },
        figures={
            **({"title": title} if title else {}),
            "seconds": round(sum(row["seconds"] for row in history), 1),  # of all epochs, resumed or not
            "cpu_seconds": round(time.process_time() - processor, 1),
            "best_epoch": member.best_epoch,
        },
    )


@torch.inference_mode()
def network_outputs(member: Member, store: MoleculeStore) -> np.ndarray:
    """float64 `[m, T]` in the targets' own units, for any model that takes a batch."""
    output = torch.empty(len(store), member.task.out_channels, dtype=torch.float64)
    for rows in PairBudgetSampler(store.sizes, 50_000, max_molecules=256, shuffle=False):
        output[rows] = member.model(store.batch(rows)).double()
    return member.task.unscaled(output, store).numpy()


if __name__ == "__main__":
    print(*PARTS)
