"""Real molecules and the default model, to measure on."""

from __future__ import annotations

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
    """`smiles`, the first target as `y`, and `split` (train, val or test) of a set of `SETS`, or of its first rows.

    Args:
        name: of the set, which is downloaded if need be (to `$GTX_DATA`).
        most: training rows kept; of other rows a fifth as many.
    """
    official, split = SETS[name]
    entry = load_set(official)
    read = pd.read_parquet if entry.path.suffix == ".parquet" else pd.read_csv
    frame = read(entry.path)[[entry.smiles_column, entry.targets[0], split]]
    frame.columns = ["smiles", "y", "split"]
    if most is None:
        return frame
    kept = frame["split"].map({"train": most, "val": most // 5, "test": most // 5})
    return frame[frame.groupby("split").cumcount() < kept]


def featurised(name: str, most: int) -> MoleculeStore:
    """The first molecules of a set, featurised by default, with their target."""
    found = sampled(name, most)
    done = featurise(Featuriser(), found["smiles"].tolist(), workers=0)
    y = found["y"].to_numpy(float)[done.good, None]
    return done.store.with_targets(y).subset(torch.arange(min(most, len(done.good))))


def default_model() -> tuple[Regression, Featuriser, dict[str, Any], nn.Module]:
    """The model of `gtx train` for 10,000 molecules and one target, untrained: task, featuriser, description, model."""
    task = Regression("y", scaler=TargetScaler.fit(torch.tensor([[0.0], [1.0]], dtype=torch.float64)))
    spec = model_spec(TrainSettings(), Featuriser(), task, 10_000)
    torch.manual_seed(0)
    return task, Featuriser(), spec, ARCHITECTURES[spec["name"]].make(**spec["arguments"])
