"""`gtx serve` as a command: it says where it is, answers, and ends in order."""

import os
import signal
import socket
import sys
import threading

import pytest

from gtx.cli import main
from gtx.serve.command import open_socket
from tests.serve.conftest import Client, Reply, until
from tests.tables import GOLDEN

MODEL = str(GOLDEN / "regression.gtx")


@pytest.mark.slow
def test_a_service_answers_what_is_under_way_when_it_is_told_to_end(capsys) -> None:
    with open_socket("127.0.0.1", 0) as free:
        client = Client(free.getsockname()[1])
    replies: list[Reply] = []

    def visit() -> None:
        try:
            until(lambda: listens(client))
            replies.append(client.get("/health"))
            asking = threading.Thread(target=lambda: replies.append(client.post("/predict", {"smiles": ["CCO"]})))
            asking.start()
            until(lambda: client.get("/metrics").body.count(b"gtx_waiting_molecules 1.0\n"))
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
        asking.join()

    visitor = threading.Thread(target=visit)
    visitor.start()
    assert main(["serve", MODEL, f"--port={client.port}", "--device=cpu", "--wait=500"]) == 0
    visitor.join()
    assert [one.status for one in replies] == [200, 200] and replies[1].json()["rows"][0]["gap_pred"]
    assert not listens(client) and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    first, second, last = capsys.readouterr().err.splitlines()
    assert first.endswith(f"at http://127.0.0.1:{client.port}") and "only this machine can reach it" in second
    assert last == "gtx serve: ended"


def listens(client: Client) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", client.port)) == 0


def test_without_the_extra_one_line_says_what_to_install(monkeypatch, capsys) -> None:
    monkeypatch.delitem(sys.modules, "gtx.serve.app", raising=False)
    monkeypatch.setitem(sys.modules, "fastapi", None)
    assert main(["serve", MODEL]) == 2
    assert capsys.readouterr().err == "gtx: gtx serve needs fastapi: in the folder of gtx, pip install '.[serve]'\n"


def test_addresses_that_cannot_be_used(capsys) -> None:
    with open_socket("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        for word, reason in (
            ("--port=70000", "--port: expected 0 to 65535, got 70000"),
            ("--host=no.such.host.invalid", "cannot listen at no.such.host.invalid, port 8000"),
            (f"--port={port}", f"port {port} is in use: another program listens at 127.0.0.1; use another --port"),
        ):
            assert main(["serve", MODEL, "--device=cpu", word]) == 2
            assert capsys.readouterr().err.startswith(f"gtx: {reason}")
