"""A service at an address of this process, and a client."""

import asyncio
import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import gtx
from gtx.data.feature_columns import NO_FEATURES, FeatureColumns
from gtx.molecules import Featuriser
from gtx.prediction import Predictor
from gtx.serve import ServiceLimits
from gtx.serve.command import make_server, open_socket
from gtx.serve.processes import ModelProcess
from tests.tables import GOLDEN, TINY


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """Sends requests to a port of this machine."""

    def __init__(self, port: int) -> None:
        self.port = port

    def ask(self, method: str, path: str, body: Any = None, kind: str | None = None, **headers: str) -> Reply:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, path, body, named | ({"content-type": kind} if kind else {}))
            answer = connection.getresponse()
            return Reply(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Reply:
        return self.ask("GET", path, **headers)

    def post(self, path: str, value: Any) -> Reply:
        """As JSON, unless it is bytes already."""
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        return self.ask("POST", path, body, "application/json")

    def table(self, text: bytes, **headers: str) -> Reply:
        return self.ask("POST", "/table", text, "text/csv", **headers)


class ModelInThread(ModelProcess):
    """As a process of the model, which takes seconds to start, for what is no matter of processes."""

    async def call(self, function: Any, *arguments: Any) -> Any:
        return await asyncio.to_thread(function, self.predictor, *arguments)

    def start(self) -> Any: ...


@contextmanager
def served(
    predictor: Predictor, hosts: tuple[str, ...] = (), processes: bool = False, domain: bool = False, **limits: Any
) -> Iterator[Client]:
    """The service of a model, in a thread; the model in threads or processes."""
    import gtx.serve.app

    bounds = ServiceLimits(**limits)
    with pytest.MonkeyPatch.context() as patch:
        if not processes:
            patch.setattr(gtx.serve.app, "ModelProcess", ModelInThread)
        server = make_server(gtx.serve.app.make_app(predictor, bounds, hosts=hosts, domain=domain), bounds)
    with open_socket("127.0.0.1", 0) as opened:
        port = opened.getsockname()[1]
        thread = threading.Thread(target=server.run, kwargs={"sockets": [opened]})
        thread.start()
        try:
            assert Client(port).get("/health").status == 200  # it listens before it is ready
            yield Client(port)
        finally:
            server.should_exit = True
            thread.join()


def made(beside: FeatureColumns = NO_FEATURES, **reading: Any) -> Predictor:
    """A model as it is made, of molecules or what the featuriser reads, that may read columns."""
    import torch

    from gtx.data import featurise
    from gtx.models import build_model
    from gtx.prediction import ModelFileHeader
    from gtx.prediction.foundation_embedding import attach_foundation
    from gtx.tasks import Regression
    from gtx.training import TrainSettings
    from gtx.workflow.specs import make_model_spec

    read = Featuriser(**reading)
    texts = [read.example] * 2
    done = beside.attach(featurise(read, texts, workers=0), [beside.blank_row] * 2, texts, read)
    task = Regression("y").fit(done.store.with_targets(np.array([[1.0], [2.0]])))
    spec = make_model_spec(TrainSettings(**TINY), read, task, 2, beside)  # type: ignore[arg-type]
    torch.manual_seed(0)
    return Predictor([attach_foundation(build_model(spec))], ModelFileHeader(task, read, spec, features=beside), "cpu")


@pytest.fixture(scope="session")
def predictor() -> Predictor:
    return gtx.load(GOLDEN / "regression.gtx", "cpu")


@pytest.fixture(scope="session")
def client(predictor: Predictor) -> Iterator[Client]:
    with served(predictor, ("127.0.0.1",), wait=20) as client:
        yield client


@pytest.fixture(scope="session")
def downloads(tmp_path_factory) -> Path:
    """The folder in which the browser saves."""
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="session")
def browser(downloads: Path) -> Iterator[Any]:
    """Debian's Chromium, where it is installed."""
    programs = [shutil.which(name) for name in ("chromium", "chromedriver")]
    if None in programs:
        pytest.skip("no browser: apt-get install chromium chromium-driver")
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = programs[0]
    words = "headless=new no-sandbox disable-gpu disable-dev-shm-usage disable-quic no-first-run"
    quiet = "disable-background-networking disable-component-update disable-sync"
    for word in f"{words} {quiet}".split():
        options.add_argument(f"--{word}")
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with webdriver.Chrome(options, webdriver.ChromeService(programs[1])) as opened:
        yield opened
