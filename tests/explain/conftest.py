"""Models small enough to be explained in no time."""

from collections.abc import Callable
from functools import partial

import pytest
import torch

from gtx.data import featurise, random_split
from gtx.models import ARCHITECTURES, build_model
from gtx.molecules import Featuriser
from gtx.prediction import ModelFileHeader, Predictor
from gtx.tasks import NumericTask, Regression, TargetScaler
from gtx.training import TrainSettings, fit
from tests.molecules_for_tests import CODE_SIZES
from tests.tables import molecules

TARGETS = ["gap", "solvation_water"]
SMALL = {"channels": 16, "layers": 2, "heads": 2}


@pytest.fixture(scope="session")
def predictor(tmp_path_factory) -> Predictor:
    """Two networks, trained on 120 bundled molecules."""
    table, featuriser = molecules(120), Featuriser()
    store = featurise(featuriser, table["smiles"].tolist(), workers=0).store.with_targets(table[TARGETS].to_numpy())
    model = specification("standard", featuriser)
    settings = TrainSettings(epochs=3, folds=2, threads=1, progress=False, accelerator="cpu")
    split, folder = random_split(len(store), (8, 1, 1)), tmp_path_factory.mktemp("explain")
    none = store.subset(torch.arange(0))
    trained = fit(
        partial(build_model, model), Regression(TARGETS), store, none, settings, folder / "run", folds=[split] * 2
    )
    members = [member.model for member in trained]
    return Predictor(members, ModelFileHeader(trained[0].task, featuriser, model), "cpu")


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
