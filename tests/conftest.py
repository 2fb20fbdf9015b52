"""Fixtures shared by all tests. They import what they need: the process that hands out the tests to others needs
nothing of gtx, whose imports take seconds.
"""

import gc
import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import pytest
from markupsafe import Markup


def pytest_collection_finish() -> None:
    """What has been imported stays, and a collection of garbage that looks through all there is costs half a second."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Count the skipped tests by reason, which says how they would run."""
    reports = terminalreporter.stats.get("skipped", [])
    reasons = Counter(str(report.longrepr[2]).removeprefix("Skipped: ") for report in reports)
    if reasons:
        counts = "; ".join(f"{count} ({reason})" for reason, count in reasons.most_common())
        terminalreporter.write_line(f"skipped {len(reports)} tests: {counts}")


@pytest.fixture(scope="session", autouse=True)
def simple_baselines() -> Iterator[None]:
    from tests.baselines import simplify_baselines

    with pytest.MonkeyPatch.context() as patch:
        simplify_baselines(patch)
        yield


@pytest.fixture(scope="session", autouse=True)
def quick_and_alike() -> Iterator[None]:
    """Conformers are made in this process, nobody waits for the disk, and tables come out alike everywhere."""
    from gtx.data import featurising
    from gtx.prediction import streaming

    with pytest.MonkeyPatch.context() as patch:
        for module in (featurising, streaming):  # processes that import all of gtx anew start only where a test asks
            patch.setattr(module, "min_chunks_for_workers", lambda featuriser: 1 << 30)
        patch.setattr(os, "fsync", lambda number: None)  # what a killed process has written is there without
        patch.setenv("COLUMNS", "120")  # whichever terminal starts the tests
        yield


@pytest.fixture(scope="session", autouse=True)
def write_picture(tmp_path_factory) -> Iterator[Callable[..., Markup]]:
    """What writes pictures as SVG: it and most draws of intervals, half the time of a small run, are left out. The
    templates of reports are compiled once.
    """
    from jinja2 import FileSystemBytecodeCache

    from gtx.report import gallery, page, tables

    written, kept = gallery.inline, FileSystemBytecodeCache(str(tmp_path_factory.mktemp("templates")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page, "Environment", partial(page.Environment, bytecode_cache=kept))
        patch.setattr(tables, "RESAMPLES", 20)
        patch.setattr(gallery, "inline", lambda figure, label: Markup("<svg>{}</svg>").format(label))
        yield written


@pytest.fixture(scope="module")
def written_pictures(write_picture: Callable[..., Markup]) -> Iterator[None]:
    """Reports of this module have their pictures."""
    from gtx.report import gallery

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gallery, "inline", write_picture)
        yield


@pytest.fixture(scope="session", autouse=True)
def once_asked() -> Iterator[None]:
    """What is asked with each training, and answered alike in all of them, is asked once: whether a model of these
    arguments can be made; and by Lightning whether there is an srun, and which packages have plugins for it.
    """
    from lightning_fabric.plugins.environments import slurm
    from lightning_fabric.utilities import registry

    from gtx.workflow import specs

    check, passed = specs.check_size, set()

    def check_once(*model: object) -> None:
        if repr(model) not in passed:
            check(*model)
            passed.add(repr(model))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(specs, "check_size", check_once)
        patch.setattr(slurm, "shutil", SimpleNamespace(which=cache(shutil.which)))
        patch.setattr(registry, "entry_points", cache(registry.entry_points))
        yield


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data sets beside the project, or `$GTX_SHARED_DATA`; tests that need it skip without it."""
    folder = Path(os.environ.get("GTX_SHARED_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"real data not at hand: {folder} does not exist (set GTX_SHARED_DATA)")
    return folder


@pytest.fixture(scope="session")
def model_path(tmp_path_factory) -> Path:
    """Two networks for two targets of 160 bundled molecules, with an interval for the first target alone."""
    import numpy as np

    from gtx.data import featurise, random_split
    from gtx.models import build_model
    from gtx.molecules import Featuriser
    from gtx.prediction import Predictor, save_model
    from gtx.tasks import Regression
    from gtx.training import TrainSettings, fit
    from tests.molecules_for_tests import CODE_SIZES
    from tests.tables import bundled

    folder, rows, featuriser = tmp_path_factory.mktemp("prediction"), bundled()[:4000:25], Featuriser()
    y = rows[targets := ["gap", "solvation_water"]].to_numpy()
    store = featurise(featuriser, rows.smiles.tolist(), workers=0).store.with_targets(y)
    split = random_split(len(store), (8, 1, 1))
    small = {"channels": 16, "layers": 2, "heads": 2, "num_descriptors": featuriser.num_descriptors}
    model = {"name": "standard", "arguments": {"out_channels": 2, **CODE_SIZES, **small}}
    train, val = (store.subset(split[part]) for part in ("train", "val"))
    settings = TrainSettings(epochs=4, folds=2, threads=1, progress=False, accelerator="cpu")
    task, make = Regression(targets).fit(train), partial(build_model, model)
    trained = fit(make, task, store, store.subset(np.arange(0)), settings, folder / "run", folds=[split] * 2)
    predictor = Predictor.of(trained, featuriser, spec=model, train=train)
    task = predictor.task.calibrate(predictor.predict_store(val), y[split["val"]])
    task.interval["half_width"][1] = None
    save_model(folder / "model.gtx", predictor.members, replace(predictor.header, task=task))
    return folder / "model.gtx"


@pytest.fixture
def forks(monkeypatch) -> None:
    """Worker processes are forks of this one."""
    from tests.forks import use_forks

    use_forks(monkeypatch)


@pytest.fixture
def undrawable(monkeypatch) -> None:
    """A machine like a bare server, on which RDKit's drawing cannot be imported."""
    monkeypatch.setitem(sys.modules, "rdkit.Chem.Draw", None)


@pytest.fixture
def site(tmp_path):
    """A folder, and the address of a server on this machine that serves it."""
    folder = tmp_path / "site"
    folder.mkdir()

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *message: object) -> None:
            pass

        def send_header(self, keyword: str, value: str) -> None:
            cut = self.path.endswith("broken.csv") and keyword == "Content-Length"
            super().send_header(keyword, str(int(value) + 100) if cut else value)

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
    Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield folder, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
