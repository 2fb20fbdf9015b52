"""Models small enough to be explained in no time."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import gtx
from gtx.data import featurise
from gtx.models import ARCHITECTURES, build_model
from gtx.molecules import Featuriser
from gtx.prediction import ModelFileHeader, Predictor
from gtx.tasks import NumericTask, Regression, TargetScaler
from tests.molecules_for_tests import CODE_SIZES
from tests.tables import molecules

SMALL = {"channels": 16, "layers": 2, "heads": 2}


@pytest.fixture(scope="session")
def predictor(model_path: Path) -> Predictor:
    """Two networks without their training molecules, which explanations would show."""
    found = gtx.load(model_path, "cpu")
    return found.with_header(replace(found.header, training=None))


@pytest.fixture(scope="session")
def untrained() -> Callable[..., Predictor]:
    """A predictor of any architecture as it is made, for one target."""
    seen = featurise(Featuriser(), molecules(40)["smiles"].tolist(), workers=0).store

    def make(name: str, task: NumericTask | None = None, **arguments: object) -> Predictor:
        featuriser = Featuriser(coordinates=ARCHITECTURES[name].coordinates == "needed")
        model = specification(name, featuriser, out_channels=1, **arguments)
        torch.manual_seed(0)
        network = build_model(model)
        network.observe(seen)
        scaler = TargetScaler(torch.full((1,), 5.0).double(), torch.full((1,), 2.0).double())
        return Predictor([network], ModelFileHeader(task or Regression("y", scaler=scaler), featuriser, model), "cpu")

    return make


def specification(name: str, featuriser: Featuriser, out_channels: int = 2, **arguments: object) -> dict:
    shape = {"out_channels": out_channels, "num_descriptors": featuriser.num_descriptors, **SMALL, **CODE_SIZES}
    return {"name": name, "arguments": shape | {"coordinates": featuriser.coordinates} | arguments}
