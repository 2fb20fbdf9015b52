"""A small model, really trained, that all tests of this folder predict with."""

import signal
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import gtx
from gtx.data import featurise, load_public_dataset, open_table, random_split
from gtx.models import build_model
from gtx.molecules import Featuriser
from gtx.prediction import Predictor, save_model
from gtx.tasks import Regression
from gtx.training import TrainSettings, fit
from tests.molecules_for_tests import CODE_SIZES

TARGETS = ["gap", "solvation_water"]


@pytest.fixture(scope="session")
def model_path(tmp_path_factory) -> Path:
    """Two networks for two targets of 160 bundled molecules, with an interval for the first target alone."""
    folder = tmp_path_factory.mktemp("prediction")
    table = open_table(load_public_dataset("xtb9").path)
    rows = next(table.chunks(4000))[::25]
    y = np.array([[float(row.cells[table.index(name)]) for name in TARGETS] for row in rows])
    featuriser = Featuriser()
    store = featurise(featuriser, [row.text for row in rows], workers=0).store.with_targets(y)
    split = random_split(len(store), (8, 1, 1))
    small = {"channels": 16, "layers": 2, "heads": 2, "num_descriptors": featuriser.num_descriptors}
    model = {"name": "standard", "arguments": {"out_channels": 2, **CODE_SIZES, **small}}
    train, val = (store.subset(split[part]) for part in ("train", "val"))
    settings = TrainSettings(epochs=4, folds=2, threads=1, progress=False, accelerator="cpu")
    task, make = Regression(TARGETS).fit(train), partial(build_model, model)
    trained = fit(make, task, store, store.subset(np.arange(0)), settings, folder / "run", folds=[split] * 2)
    predictor = Predictor.of(trained, featuriser, spec=model, train=train)
    task = predictor.task.calibrate(predictor.predict_store(val), y[split["val"]])
    task.interval["half_width"][1] = None
    save_model(folder / "model.gtx", predictor.members, replace(predictor.header, task=task))
    return folder / "model.gtx"


@pytest.fixture(scope="session")
def ray_folder(tmp_path_factory) -> Iterator[Path]:
    """The working folder of the workers of Ray, which is started for real."""
    ray = pytest.importorskip("ray", reason="Ray is not installed: in the folder of gtx, pip install '.[ray]'")
    folder, handler = tmp_path_factory.mktemp("ray"), signal.getsignal(signal.SIGTERM)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=100 * 2**20)
    signal.signal(signal.SIGTERM, handler)  # Ray's own ends other tests
    yield folder
    ray.shutdown()


@pytest.fixture
def predictor(model_path: Path) -> Predictor:
    return gtx.load(model_path, device="cpu")
