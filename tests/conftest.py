"""Fixtures shared by all tests."""

import gc
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

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
def usual_trees() -> Iterator[dict[bool, float]]:
    """The forests of baselines have few trees in all tests of this process; what decides about their usual number."""
    import gtx.workflow.baselines

    usual = gtx.workflow.baselines.SHARED_WORK
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gtx.workflow.baselines, "SHARED_WORK", {False: 0, True: 0})
        yield usual


@pytest.fixture(scope="session", autouse=True)
def no_workers_unasked() -> Iterator[None]:
    """Conformers are made in this process: processes that import all of gtx anew start only where a test asks."""
    import gtx.data.featurising
    import gtx.prediction.streaming

    with pytest.MonkeyPatch.context() as patch:
        for module in (gtx.data.featurising, gtx.prediction.streaming):
            patch.setattr(module, "min_chunks_for_workers", lambda featuriser: 1 << 30)
        yield


@pytest.fixture(scope="session", autouse=True)
def write_picture() -> Iterator[Callable[..., Markup]]:
    """Pictures of reports are drawn but not written as SVG, most of the time of a small run; what does write them."""
    import gtx.report.gallery

    written = gtx.report.gallery.inline
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gtx.report.gallery, "inline", lambda figure, label: Markup("<svg>{}</svg>").format(label))
        yield written


@pytest.fixture(scope="module")
def written_pictures(write_picture: Callable[..., Markup]) -> Iterator[None]:
    """Reports of this module have their pictures."""
    import gtx.report.gallery

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gtx.report.gallery, "inline", write_picture)
        yield


@pytest.fixture(scope="session", autouse=True)
def unsynced() -> Iterator[None]:
    """Nobody waits for the disk: what a killed process has written is there without, unless the machine fails too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda number: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def terminal() -> Iterator[None]:
    """A terminal of 120 columns, whichever starts the tests, so that tables come out alike everywhere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "120")
        yield


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data sets beside the project, or `$GTX_SHARED_DATA`; tests that need it skip without it."""
    folder = Path(os.environ.get("GTX_SHARED_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"real data not at hand: {folder} does not exist (set GTX_SHARED_DATA)")
    return folder


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
