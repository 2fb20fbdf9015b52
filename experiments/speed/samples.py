"""Real molecules and the default model, to measure on."""

from __future__ import annotations

import random
from typing import Any

import pandas as pd
import torch
from torch import nn

from gtx.data import MoleculeStore, featurise
from gtx.data.named_sets import load_set
from gtx.models import ARCHITECTURES
from gtx.molecules import Featuriser
from gtx.tasks import Regression, TargetScaler
from gtx.training import TrainSettings
from gtx.workflow.specs import model_spec

SETS = {"zinc12k": ("zinc12k", "split"), "esol": ("mat/esol", "split_random_0"), "xtb9": ("xtb9", "split_random")}


def sampled(name: str, most: int | None = None) -> pd.DataFrame:
    """`smiles`, the first target as `y`, and `split` of a set of `SETS`, downloaded if need be; all rows, or the first:
    so many to train, a fifth as many of val and of test."""
    official, split = SETS[name]
    entry = load_set(official)
    read = pd.read_parquet if entry.path.suffix == ".parquet" else pd.read_csv
    frame = read(entry.path)[[entry.smiles_column, entry.targets[0], split]].set_axis(["smiles", "y", "split"], axis=1)
    if most is None:
        return frame
    return frame[frame.groupby("split").cumcount() < frame["split"].map({"train": most}).fillna(most // 5)]


def smiles_of(name: str, most: int) -> list[str]:
    """SMILES of a named set, at most so many, drawn by a fixed seed."""
    entry = load_set(name)
    texts = pd.read_csv(entry.path)[entry.smiles_column].tolist()
    return random.Random(0).sample(texts, min(most, len(texts)))


def featurised(name: str, most: int) -> MoleculeStore:
    """The first molecules of a set, featurised by default, with their target."""
    found = sampled(name).head(most)
    done = featurise(Featuriser(), found["smiles"].tolist(), workers=0)
    return done.store.with_targets(found["y"].to_numpy(float)[done.good, None])


def default_model() -> tuple[Regression, Featuriser, dict[str, Any], nn.Module]:
    """The model of `gtx train` for 10,000 molecules and one target, untrained: task, featuriser, description, model."""
    task = Regression("y", scaler=TargetScaler.fit(torch.tensor([[0.0], [1.0]], dtype=torch.float64)))
    spec = model_spec(TrainSettings(), Featuriser(), task, 10_000)
    torch.manual_seed(0)
    return task, Featuriser(), spec, ARCHITECTURES[spec["name"]].make(**spec["arguments"])
