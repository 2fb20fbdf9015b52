"""A folder that is served on this machine, as if it were the address of a public data set."""

from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest


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
