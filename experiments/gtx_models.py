"""gtx: the defaults of `gtx train`, the same without a part, and the mean prediction of five such models."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from experiments.parts import PARTS, STARTS, Part
from experiments.public_sets import FitResult, LoadedRun
from gtx.errors import InputError
from gtx.files import whole_file
from gtx.prediction import load
from gtx.training import TrainSettings
from gtx.workflow import adapt, train

MEMBERS = 5


def fit_predict(loaded: LoadedRun) -> FitResult:
    """Train one model, or average those that seeds 0 to 4 gave, out of their files."""
    return average(loaded) if loaded.run.model == "gtx-ensemble" else single(loaded)


def single(loaded: LoadedRun) -> FitResult:
    """`gtx train --mix no`, otherwise as the model's name says, and one thread; resumes."""
    part = (PARTS | STARTS).get(loaded.run.model, Part("as it is"))
    data = replace(loaded.data, featuriser=replace(loaded.data.featuriser, **part.featuriser))
    own = {"mix": "no", **loaded.run.public_set.settings, **part.settings, "model_arguments": dict(part.arguments)}
    settings = TrainSettings(**own, seed=loaded.run.seed, threads=1, progress=False)
    start = _adapted(part.start, loaded) if part.adapted else part.start
    train(data, settings, loaded.folder, start=start, baselines=False, report=False)
    found = _read([loaded.folder / "model.gtx"], loaded)
    val = loaded.dataset.split["val"]  # the kernel of the file has learned from these rows; their scores are of before
    said = pd.read_csv(loaded.folder / "predictions.csv")[[f"{name}_pred" for name in loaded.names]]
    found.prediction[val] = said.to_numpy(float)[loaded.dataset.rows[val]]
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
    return _read(files, loaded)


def _read(files: list, loaded: LoadedRun) -> FitResult:
    predictors = [load(file, device="cpu") for file in files]
    header, store = predictors[0].header, loaded.dataset.store
    if not header.featuriser.descriptors:
        store = replace(store, descriptors=store.descriptors[:, :0])
    prediction = np.mean([one.predict_store(store).mean for one in predictors], axis=0)
    decisive = {name: value for name, value in header.settings.items() if name != "seed"}
    return FitResult(
        prediction,
        sum(p.numel() for one in predictors for member in one.members for p in member.parameters()),
        {"model": header.model, "training": decisive, "featuriser": header.featuriser.to_dict()},
    )
