"""The small model of all tests, and Ray."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import gtx
from gtx.prediction import Predictor


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
