"""The service over HTTP: answers as `gtx predict` gives them, and what it refuses."""

from __future__ import annotations

import csv
import ctypes
import json
import os
import re
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gtx
from gtx.cli import main
from gtx.data import FeatureColumns
from gtx.molecules import Featuriser
from gtx.prediction import Predictor
from gtx.tasks.task import Answers
from tests.serve.conftest import GOLDEN, Client, served, until
from tests.tables import molecules


def test_predictions_are_those_of_the_model(client: Client, predictor: Predictor) -> None:
    smiles = ["CCO", "C1CC", "c1ccccc1O", "", "[Na+].[Cl-]"]
    found = client.post("/predict", {"smiles": smiles}).json()
    expected = predictor.predict(smiles)
    assert found["summary"] == "5 rows: 3 read, 2 errors (2 with an unusable molecule), 1 with warnings"
    assert [row["smiles"] for row in found["rows"]] == smiles
    for name in predictor.output_columns(["smiles"]):
        values = [np.nan if row[name] is None else row[name] for row in found["rows"]]
        np.testing.assert_allclose(values, expected[name], rtol=1e-5)
    assert [row["error"] is None for row in found["rows"]] == expected["error"].isna().tolist()
    assert found["rows"][1]["error"] == 'row 2, column "smiles", value "C1CC": cannot be read: unclosed ring'


def test_the_domain_is_answered_where_it_is_asked_for() -> None:
    rows = molecules(400)
    model = gtx.MoleculeRegressor(model="kernel").fit(rows["smiles"], rows["gap"]).predictor_
    names = {"similarity", "domain", "domain_error", "domain_rows"}
    known = rows["smiles"][0]
    with served(model, domain=True) as found:
        answered = found.post("/predict", {"smiles": [known, "[Xe]", "C1CC"]}).json()["rows"]
        assert names < set(found.get("/model").json()["answers"])
        table = found.table(f"smiles\n{known}\n".encode()).body.decode()
    assert [row["domain"] for row in answered] == ["inside", "outside", None]
    low, high = model.domain.edges
    assert answered[0]["similarity"] == 1 >= high and answered[1]["similarity"] < low
    assert answered[0]["domain_error"] > 0 and answered[0]["domain_rows"] >= 10
    assert names < set(table.splitlines()[0].split(","))
    with (
        pytest.raises(gtx.InputError, match="training rows"),
        served(gtx.load(GOLDEN / "regression.gtx"), domain=True),
    ):
        pass


@pytest.mark.parametrize(
    "text",
    [
        b'name;smiles;name\n\xff;CCO;x\nbad;C1CC\n\nlast;c1ccccc1;"a\rb"\n',
        b"CCO ethanol\nC1CC ring\n",
        b"smiles\n" + b"CCN\n" * 700,
    ],
    ids=["ragged", "smiles", "several pieces"],
)
def test_a_table_is_answered_as_gtx_predict_writes_it(client: Client, tmp_path: Path, text: bytes) -> None:
    (tmp_path / "in.txt").write_bytes(text)
    words = ["predict", str(GOLDEN / "regression.gtx"), str(tmp_path / "in.txt"), "--workers=0", "--device=cpu"]
    assert main([*words, f"--out={tmp_path / 'out.csv'}"]) == 0
    found = client.table(text)
    assert found.headers["content-type"].startswith("text/csv")
    assert found.body == (tmp_path / "out.csv").read_bytes()


def test_what_a_model_reads_beside_the_molecule_is_a_column(tmp_path: Path) -> None:
    with served(made(FeatureColumns(("temperature",)))) as client:
        found = client.post("/predict", {"smiles": ["CCO", "CCO"], "temperature": [298, None]})
        assert found.status == 200, found
        first, second = found.json()["rows"]
        assert first["error"] is None and 'column "temperature", value "": is blank' in second["error"]
        missing = client.post("/predict", {"smiles": ["CCO"]})
        assert missing.status == 422 and 'column "temperature" is missing' in missing.json()["error"]
        lengths = client.post("/predict", {"smiles": ["CCO"], "temperature": []})
        assert lengths.status == 422 and 'got "smiles" 1, "temperature" 0' in lengths.json()["error"]
        assert client.table(client.get("/model").json()["example"].encode()).status == 200


def test_lists_of_atoms_and_bonds_are_columns_too() -> None:
    beside = FeatureColumns(atoms=("q",), bonds=("order",))
    with served(made(beside)) as client:
        rows = {"smiles": ["CCO", "CO", "C", "C"], "q": [[1, 2, 3], [1, 2], [1], None], "order": [[1, 1], [], [], []]}
        found = client.post("/predict", rows)
        assert found.status == 200, found
        first, second, third, fourth = (row["error"] for row in found.json()["rows"])
        assert first is third is None
        assert 'value "CO": column "order" has 0 numbers; expected one for each of the molecule\'s 1 bond' in second
        assert 'column "q", value "": expected a list of numbers, one for each atom' in fourth
        wrong = client.post("/predict", {"smiles": ["C"], "q": [1], "order": [[]]})
        assert wrong.status == 422 and 'row 1, column "q": expected a list, got a number' in wrong.json()["error"]
        about = client.get("/model").json()
        assert about["features"] == ["q", "order"]
        table = client.table(about["example"].encode())
        assert table.status == 200 and all(not row["error"] for row in csv.DictReader(table.body.decode().splitlines()))
        asked = {"smiles": "CCO", "features": {"q": [1, 2, 3], "order": "1 1"}}
        assert client.post("/explain", asked).status == 200
        refused = client.post("/explain", asked | {"features": {"q": [1], "order": [1, 1]}})
        assert refused.status == 422 and 'column "q" has 1 number' in refused.json()["error"]


HOSTILE = {
    "no JSON": (b"{", 422, "Invalid JSON"),
    "half of a text": (b'{"smiles": ["\\ud800"]}', 422, "Invalid JSON"),
    "a text for a list": (b'{"smiles": "CCO"}', 422, "smiles: Input should be a valid array"),
    "NaN": (b'{"smiles": [NaN]}', 422, 'row 1, column "smiles": expected a text, got a number'),
    "a long number": (b'{"smiles": [1' + b"0" * 5000 + b"]}", 422, "Invalid JSON: number out of range"),
    "deep": (b'{"smiles": ' + b"[" * 100_000, 422, "recursion limit"),
    "another column": (b'{"smile": ["C"]}', 422, "did you mean 'smiles'?"),
    "too many": (json.dumps({"smiles": ["C"] * 10_001}).encode(), 413, "at most 10,000 molecules"),
    "too large": (b" " * 5_000_000, 413, "at most 4,194,304 bytes"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_cannot_be_used_is_refused_in_one_line(client: Client, name: str) -> None:
    body, status, reason = HOSTILE[name]
    found = client.post("/predict", body)
    assert found.status == status and reason in found.json()["error"] and "\n" not in found.json()["error"]
    assert client.post("/predict", {"smiles": ["CCO"]}).status == 200  # it goes on


def test_hostile_tables_and_types(client: Client) -> None:
    for packed in (b"\x1f\x8b\x08", b"PAR1"):
        assert "not compressed" in client.table(packed).json()["error"]
    for workbook in (b"PK\x03\x04\x14\0", b"\xd0\xcf\x11\xe0\xa1"):
        assert client.table(workbook).json()["error"] == "the table is an Excel workbook: save it as CSV UTF-8"
    assert client.table("smiles\ty\nC\t1\n".encode("utf-16")).json()["error"].startswith("the table is UTF-16 text:")
    assert client.table(b"").json()["error"] == "there is nothing to read: not one line"
    assert client.table(b"a,b\n1,2\n").status == 422
    assert client.ask("POST", "/table", b"CCO", "text/plain").status == 415
    assert client.ask("POST", "/predict", b'{"smiles": ["CCO"]}', "application/x-www-form-urlencoded").status == 415
    assert client.get("/predict").status == 405 and client.get("/../../etc/passwd").status == 404
    assert client.get("/health", host="evil.example").status == 421
    assert client.get("/draw?smiles=%3Cscript%3E").status == 422
    assert client.get(f"/draw?smiles={'C' * 300}").status == 422


def test_a_long_smiles_is_an_error_of_its_row(client: Client) -> None:
    found = client.post("/predict", {"smiles": ["C" * 2001, "CCO"]}).json()["rows"]
    assert found[0]["error"].endswith(": cannot be read: it has 2,001 characters; the limit is 2,000")
    assert found[1]["error"] is None


def test_every_answer_has_headers_that_keep_a_browser_safe(client: Client) -> None:
    for path in ("/", "/model", "/nowhere", "/draw?smiles=CCO"):
        headers = client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"] and "http" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == ("max-age=3600" if path.startswith("/draw") else "no-store")
    text = client.get("/").body.decode()
    assert not re.findall(r'(?:src|href)="(?:https?:)?//', text) and " style=" not in text and " onclick=" not in text


def test_a_picture_of_one_molecule(client: Client) -> None:
    found = client.post("/explain", {"smiles": "CC(=O)OCC", "target": "solvation_water"}).json()
    assert found["svg"].startswith("<svg") and "Shapley values" in found["text"]
    hostile = client.post("/explain", {"smiles": "<script>alert(1)</script>"})
    assert hostile.status == 422 and "cannot be read" in hostile.json()["error"]
    assert "at most 60 atoms" in client.post("/explain", {"smiles": "C" * 61}).json()["error"]
    for wrong in ({"smiles": "C", "method": "x"}, {"smiles": 5}, {"smiles": "C", "draws": 10**9}, {}):
        assert client.post("/explain", wrong).status == 422


def test_many_small_requests_at_once_lose_nothing(client: Client, predictor: Predictor) -> None:
    smiles = molecules(60)["smiles"].tolist()
    expected = predictor.predict(smiles)["gap_pred"].tolist()

    def one(i: int) -> list[float]:
        part = smiles[i : i + 1 + i % 3]
        rows = client.post("/predict", {"smiles": part}).json()["rows"]
        assert [row["smiles"] for row in rows] == part
        return [row["gap_pred"] for row in rows]

    before = plural(client)
    with ThreadPoolExecutor(10) as clients:
        for i, found in enumerate(clients.map(one, range(60))):
            np.testing.assert_allclose(found, expected[i : i + 1 + i % 3], rtol=1e-5)
    after = plural(client)
    requests = 'gtx_requests_total{path="/predict",status="200"}'
    assert after[requests] - before.get(requests, 0) == 60
    assert after["gtx_batch_molecules_count"] - before["gtx_batch_molecules_count"] < 60  # some went together


def plural(client: Client) -> dict[str, float]:
    lines = (line for line in client.get("/metrics").body.decode().splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_the_description_names_every_address(client: Client) -> None:
    found = client.get("/openapi.json").json()
    drawings, others = {"/draw", "/smiles", "/sketch"}, {"/model", "/health", "/metrics"}
    assert set(found["paths"]) == {"/predict", "/table", "/explain"} | drawings | others
    body = found["paths"]["/predict"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert client.post("/predict", body["examples"][0]).status == 200
    assert client.get("/health").json()["status"] == "ok"


def test_a_class_called_high_is_no_end_of_an_interval(client: Client) -> None:
    """The page joins numbers with their intervals, and needs to know which answers are numbers."""
    with served(gtx.load(GOLDEN / "multiclass.gtx", "cpu")) as other:
        found = other.table(b"CCO", accept="application/json").json()["answers"]
        assert {"name": "gap_pred", "number": False} in found and {"name": "gap_high", "number": True} in found
        assert other.get("/model").json()["explained"][:2] == ["gap_low", "gap_mid"]
        assert other.post("/explain", {"smiles": "CCO", "target": "gap_mid"}).status == 200
    with served(gtx.load(GOLDEN / "sequence.gtx", "cpu")) as writer:
        assert writer.get("/model").json()["explained"] == []
        assert "does not support explanations" in writer.post("/explain", {"smiles": "CCO"}).json()["error"]
    assert client.get("/model").json()["explained"] == ["gap", "solvation_water"]


class Slow:
    """A model that answers when it is let, and raises where a molecule has three atoms."""

    def __init__(self, predictor: Predictor) -> None:
        self.predictor, self.let, self.calls = predictor, threading.Event(), []
        self.header, self.device = predictor.header, predictor.device
        self.let.set()

    def output_columns(self, taken: Any) -> dict[str, type]:
        return self.predictor.output_columns(taken)

    def predict_store(self, store: Any) -> Answers:
        self.calls.append(len(store))
        self.let.wait(10)
        if 3 in store.sizes.tolist():
            raise RuntimeError("boom")
        return self.predictor.predict_store(store)


def test_limits_on_time_and_on_requests_under_way(predictor: Predictor) -> None:
    slow = Slow(predictor)
    with served(slow, timeout=1, max_requests=2) as client, ThreadPoolExecutor(2) as threads:
        slow.let.clear()
        waiting = [threads.submit(client.post, "/predict", {"smiles": ["CC"]})]
        until(lambda: len(slow.calls) == 2)  # the first was the example molecule
        waiting.append(threads.submit(client.post, "/predict", {"smiles": ["CC"]}))
        until(lambda: client.get("/metrics").body.count(b"gtx_waiting_molecules 1\n"))
        refused = client.post("/predict", {"smiles": ["CC"]})
        assert refused.status == 503 and refused.headers["retry-after"] == "1"
        assert client.get("/health").status == 200
        late = [one.result() for one in waiting]
        assert {one.status for one in late} == {504} and late[0].json()["error"] == "not answered within 1 s"
        slow.let.set()
        assert client.post("/predict", {"smiles": ["CC"]}).status == 200
    assert slow.calls == [1, 1, 1]  # what nobody waits for any more is not predicted


def test_nothing_is_predicted_for_clients_that_have_gone(predictor: Predictor) -> None:
    slow = Slow(predictor)
    with served(slow, max_requests=20) as client:
        slow.let.clear()
        body = json.dumps({"smiles": ["CC"] * 600}).encode()
        head = "POST /predict HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: "
        clients = [socket.create_connection(("127.0.0.1", client.port)) for _ in range(20)]
        for one in clients:
            one.sendall(f"{head}{len(body)}\r\n\r\n".encode() + body)
        until(lambda: plural(client)["gtx_waiting_molecules"] >= 19 * 500)
        for one in clients:
            one.close()
        until(lambda: plural(client)["gtx_waiting_molecules"] == 0)
        slow.let.set()
        assert client.post("/predict", {"smiles": ["CCCC"]}).status == 200  # there is room for it
    assert slow.calls[-1] == 1 and len(slow.calls) == 3  # the first molecule, what was in hand, and this


def test_headers_that_do_not_come_end_their_connections(predictor: Predictor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gtx.serve.server._HEADERS", 0.5)
    with served(predictor) as client:
        fresh, used, good = (socket.create_connection(("127.0.0.1", client.port), timeout=10) for _ in range(3))
        for one in (used, good):
            one.sendall(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n")
            assert b'"ok"' in answer_at(one)
        for one in (fresh, used):
            one.sendall(b"GET /health HTTP/1.1\r\nhost")
        assert fresh.recv(1) == used.recv(1) == b""  # closed
        good.sendall(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n")  # which was idle, and may be
        assert b'"ok"' in answer_at(good)


def answer_at(connection: socket.socket) -> bytes:
    """An object of JSON, with the headers before it."""
    found = b""
    while not found.endswith(b"}"):
        found += connection.recv(10_000) or b"closed}"
    return found


class Stuck(Featuriser):
    """Reads its first molecule in a call that lets no other thread of its process run for 5 s, as RDKit may."""

    def __getattribute__(self, name: str) -> Any:
        if name == "standardise" and not Path(os.environ["STUCK"]).exists():
            Path(os.environ["STUCK"]).touch()
            ctypes.PyDLL(None).sleep(5)
        return super().__getattribute__(name)


@pytest.mark.slow
def test_health_does_not_wait_for_a_molecule_that_takes_long(
    predictor: Predictor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "stuck"
    mark.touch()
    monkeypatch.setenv("STUCK", str(mark))
    stuck = predictor.with_header(replace(predictor.header, featuriser=Stuck()))
    with served(stuck, separate=True) as client, ThreadPoolExecutor(1) as threads:
        mark.unlink()
        asked = threads.submit(client.post, "/predict", {"smiles": ["CCO"]})
        until(mark.exists)
        began = time.monotonic()
        assert client.get("/health").status == 200 and time.monotonic() - began < 4
        assert asked.result().status == 200


def test_the_end_waits_no_longer_than_it_is_told_to(predictor: Predictor) -> None:
    slow = Slow(predictor)
    with ThreadPoolExecutor(1) as threads:
        with served(slow, grace=0.2) as client:
            slow.let.clear()
            asked = threads.submit(client.post, "/predict", {"smiles": ["CC"]})
            until(lambda: len(slow.calls) == 2)
            ending = time.monotonic()
        assert time.monotonic() - ending < 5  # the model would have taken ten
        assert asked.exception() or asked.result().status >= 500
        slow.let.set()


def test_a_request_that_breaks_the_model_does_not_break_those_beside_it(predictor: Predictor) -> None:
    slow = Slow(predictor)
    with served(slow) as client, ThreadPoolExecutor(3) as threads:
        slow.let.clear()
        first = threads.submit(client.post, "/predict", {"smiles": ["CC"]})
        until(lambda: len(slow.calls) == 2)
        others = [threads.submit(client.post, "/predict", {"smiles": [one]}) for one in ("CCO", "CCCC")]
        until(lambda: client.get("/metrics").body.count(b"gtx_waiting_molecules 2\n"))
        slow.let.set()
        assert first.result().status == 200
        broken, fine = (one.result() for one in others)
        assert broken.status == 500 and b"boom" not in broken.body and fine.status == 200
    assert slow.calls == [1, 1, 2, 1, 1]


def made(beside: FeatureColumns) -> Predictor:
    """A model as it is made, that reads columns."""
    import torch

    from gtx.data import featurise
    from gtx.models import build_model
    from gtx.molecules import Featuriser
    from gtx.prediction import ModelFileHeader
    from gtx.tasks import Regression
    from gtx.training import TrainSettings
    from gtx.workflow.specs import make_model_spec
    from tests.tables import TINY

    read = Featuriser()
    store = beside.joined(featurise(read, ["CCO", "CCN"], workers=0), [beside.blank_row] * 2).store
    task = Regression("y").fitted(store.with_targets(np.array([[1.0], [2.0]])))
    spec = make_model_spec(TrainSettings(**TINY), read, task, 2, beside)
    torch.manual_seed(0)
    return Predictor([build_model(spec)], ModelFileHeader(task, read, spec, features=beside), "cpu")
