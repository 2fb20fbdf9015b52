"""The service over HTTP and as a command: answers as `gtx predict` gives them, what it refuses, and its end."""

import asyncio
import csv
import json
import os
import re
import signal
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rdkit import Chem

import gtx
from gtx.cli import main
from gtx.data import FeatureColumns
from gtx.data.featurising import DEADLY, make_process_pool
from gtx.prediction import Predictor
from gtx.prediction.streaming import Chunk, ChunkAnswers
from gtx.serve.command import open_socket
from gtx.serve.processes import Batcher
from gtx.serve.tables import read_columns, read_one_row
from tests.forks import until
from tests.serve.conftest import Client, Reply, made, served
from tests.tables import GOLDEN, molecules


def test_predictions_are_those_of_the_model(client: Client, predictor: Predictor) -> None:
    smiles = ["CCO", "C1CC", "c1ccccc1O", "", "NA", "[Na+].[Cl-]"]
    found = client.post("/predict", {"smiles": smiles}).json()
    expected = predictor.predict(smiles)
    errors = "3 errors (2 without a molecule, 1 with an unusable molecule)"
    assert found["summary"] == f"6 rows: 3 read, {errors}, 1 with warnings"
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
    with pytest.raises(gtx.InputError, match="training rows"), served(gtx.load(GOLDEN / "regression.gtx"), domain=True):
        pass


def test_a_cell_that_is_no_molecule_is_an_error_of_its_row(client: Client) -> None:
    sent = ["CCO", None, 5, True, ["CC"], {}, float("nan"), "C\nC\nC\nC", "C" * 2001, "\ud800", "CCN"]
    rows = client.post("/predict", {"smiles": sent}).json()["rows"]
    assert [i for i, row in enumerate(rows) if row["error"] is None] == [0, 10] and rows[0]["gap_pred"]
    assert all(row["gap_pred"] is None and row["error"].startswith(f"row {i}") for i, row in enumerate(rows[1:10], 2))
    assert rows[1]["smiles"] is None and rows[1]["error"].endswith(": cannot be read: the text is empty")
    assert rows[8]["error"].endswith(": cannot be read: it has 2,001 characters; the limit is 2,000")


@pytest.mark.parametrize(
    "text",
    [
        b'name;smiles;name\n\xff;CCO;x\nbad;C1CC\n\nlast;c1ccccc1;"a\rb"\n',
        b"CCO ethanol\nC1CC ring\n",
        b"smiles\n" + b"CCN\n" * 700,
    ],
    ids=["ragged", "smiles", "several pieces"],
)
def test_a_table_is_answered_as_gtx_predict_writes_it(client: Client, tmp_path, text: bytes) -> None:
    (tmp_path / "in.txt").write_bytes(text)
    words = ["predict", str(GOLDEN / "regression.gtx"), str(tmp_path / "in.txt"), "--workers=0", "--device=cpu"]
    assert main([*words, f"--out={tmp_path / 'out.csv'}"]) == 0
    found = client.table(text)
    assert found.headers["content-type"].startswith("text/csv")
    assert found.body == (tmp_path / "out.csv").read_bytes()


def test_columns_are_called_as_in_training(predictor: Predictor) -> None:
    header = replace(predictor.header, smiles_column="Drug")
    with served(predictor.with_header(header)) as client:
        own, usual = (client.post("/predict", {name: ["CCO"]}).json()["rows"][0] for name in ("Drug", "smiles"))
        assert own.pop("Drug") == usual.pop("smiles") == "CCO" and own == usual
        both = client.post("/predict", {"Drug": ["CCO"], "smiles": ["CCO"]})
        assert both.status == 422 and 'unknown column "smiles"' in both.json()["error"]
        assert client.get("/model").json()["reads"] == ["Drug"]
    sides = read_columns(replace(header, smiles_column="before>>after"), {"before": ["C"], "after": ["CC"]})
    assert [row.text for row in sides.rows] == ["C>>CC"] and sides.columns == ["before", "after"]


def test_what_a_model_reads_beside_the_molecule_is_a_column() -> None:
    with served(made(FeatureColumns(("temperature",)))) as client:
        first, second = client.post("/predict", {"smiles": ["CCO"] * 2, "temperature": [298, None]}).json()["rows"]
        assert first["error"] is None and 'column "temperature", value "": is blank' in second["error"]
        for beside, said in (({}, 'column "temperature" is missing'), ({"temperature": []}, '"temperature" 0')):
            refused = client.post("/predict", {"smiles": ["CCO"]} | beside)
            assert refused.status == 422 and said in refused.json()["error"]


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
        wrong = client.post("/predict", {"smiles": ["CC"], "q": [{"a": 1}], "order": [[1]]}).json()["rows"][0]
        assert 'column "q"' in wrong["error"]
        about = client.get("/model").json()
        assert about["features"] == ["q", "order"]
        table = client.table(about["example"].encode())
        assert table.status == 200 and all(not row["error"] for row in csv.DictReader(table.body.decode().splitlines()))
        asked = {"smiles": "CCO", "features": {"q": [1, 2, 3], "order": "1 1"}}
        assert client.post("/explain", asked).status == 200
        refused = client.post("/explain", asked | {"features": {"q": [1], "order": [1, 1]}})
        assert refused.status == 422 and 'column "q" has 1 number' in refused.json()["error"]
        misspelt = client.post("/explain", {"smiles": "CCO", "features": {"q": [1, 2, 3], "ordre": "1 1"}}).json()
        assert misspelt["error"] == "unknown feature 'ordre'; did you mean 'order'? this model reads q, order"


HOSTILE = {
    "no JSON": (b"{", 422, "the request is no JSON: Expecting property name enclosed in double quotes at character 2"),
    "a text for a list": (b'{"smiles": "CCO"}', 422, "smiles: Input should be a valid list"),
    "no columns": (b'["CCO"]', 422, "Input should be a valid dictionary"),
    "a long number": (b'{"smiles": [1' + b"0" * 5000 + b"]}", 400, "error parsing the body"),
    "deep": (b'{"smiles": ' + b"[" * 100_000, 400, "error parsing the body"),
    "another column": (b'{"smile": ["C"]}', 422, "did you mean 'smiles'?"),
    "too many": (json.dumps({"smiles": ["C"] * 10_001}).encode(), 413, "at most 10,000 molecules"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_cannot_be_used_is_refused_in_one_line(client: Client, name: str) -> None:
    body, status, reason = HOSTILE[name]
    found = client.post("/predict", body)
    assert found.status == status and reason in found.json()["error"] and "\n" not in found.json()["error"]
    assert client.post("/predict", {"smiles": ["CCO"]}).status == 200  # it goes on


def test_a_body_beyond_the_limit_is_refused(client: Client) -> None:
    body = b" " * 5_000_000
    for path, kind in (("/predict", "application/json"), ("/table", "text/csv"), ("/smiles", "application/json")):
        assert client.ask("POST", path, body, kind).status == 413
        chunks = (body[i : i + 500_000] for i in range(0, len(body), 500_000))  # of no length that is told before
        with suppress(BrokenPipeError, ConnectionResetError):  # the service need not read to the end
            assert client.ask("POST", path, chunks, kind).status == 413
    assert client.post("/predict", {"smiles": ["CCO"]}).status == 200


def test_hostile_tables_and_types(client: Client) -> None:
    for packed in (b"\x1f\x8b\x08", b"PAR1"):
        assert "not compressed" in client.table(packed).json()["error"]
    for workbook in (b"PK\x03\x04\x14\0", b"\xd0\xcf\x11\xe0\xa1"):
        assert client.table(workbook).json()["error"] == "the table is an Excel workbook: save it as CSV UTF-8"
    assert client.table("smiles\ty\nC\t1\n".encode("utf-16")).json()["error"].startswith("the table is UTF-16 text:")
    assert client.table(b"").json()["error"] == "there is nothing to read: not one line"
    assert client.table(b"a,b\n1,2\n").status == 422
    assert client.get("/../../etc/passwd").status == client.get("/../app.py").status == 404
    assert client.get("/%2e%2e/app.py").status == client.get("/nowhere").status == 404
    assert client.get("/draw?smiles=%3Cscript%3E").status == 422
    assert client.get(f"/draw?smiles={'C' * 300}").status == client.get(f"/draw?smiles={'C' * 2001}").status == 422


JSON = b'{"smiles": ["CCO"]}'
TYPE = "expected content of type"


def test_a_request_of_another_kind_is_refused_by_name(client) -> None:
    for method, path, body, headers, status, reason in (
        ("POST", "/predict", JSON, {}, 415, f"{TYPE} application/json, got none"),
        ("POST", "/explain", JSON, {"content-type": "text/csv"}, 415, f"{TYPE} application/json, got text/csv"),
        ("POST", "/table", b"CCO", {"content-type": "text/plain"}, 415, f"{TYPE} text/csv or chemical/x-daylight"),
        ("GET", "/predict", None, {}, 405, "Method Not Allowed"),
        ("GET", "/health", None, {"host": "evil.example:80"}, 400, "expected a request to 127.0.0.1, got evil.example"),
        ("GET", "/", None, {"host": "127.0.0.1.evil.example"}, 400, "got 127.0.0.1.evil.example"),
    ):
        found = client.ask(method, path, body, **headers)
        assert found.status == status and reason in found.json()["error"], found
        assert found.headers.get("allow") == ("POST" if status == 405 else None)


def test_mol_blocks_are_read_in_no_way(client: Client) -> None:
    block = Chem.MolToMolBlock(Chem.MolFromSmiles("CCO"))
    for table in (block, f"{block}$$$$\n", f'smiles\n"{block}"\n'):
        assert client.table(table.encode()).json()["error"].startswith("expected a CSV or lines of SMILES, got an SDF")
    damaged = block.replace("M  END", "")
    found = client.table(f'smiles\n"{damaged}"\n'.encode(), accept="application/json").json()
    assert found["rows"][0][-2].endswith("cannot be read: a SMILES has no line break")
    assert client.post("/predict", {"smiles": [block]}).json()["rows"][0]["error"]
    assert client.post("/explain", {"smiles": block}).json()["error"].endswith("a SMILES has no line break")


def test_every_answer_has_headers_that_keep_a_browser_safe(client: Client) -> None:
    for path in ("/", "/model", "/nowhere", "/draw?smiles=CCO"):
        headers = client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"] and "http" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == ("max-age=3600" if path.startswith("/draw") else "no-store")
    text = client.get("/").body.decode()
    for name in re.findall(r'(?:src|href)="(\w+\.\w+)"', text):
        assert client.get(f"/{name}").status == 200
    assert not re.findall(r'(?:src|href)="(?:https?:)?//|<style|<script>| style=| on\w+=', text)


def test_a_picture_of_one_molecule(client: Client) -> None:
    found = client.post("/explain", {"smiles": "CC(=O)OCC", "target": "solvation_water"}).json()
    assert found["svg"].startswith("<svg") and "Shapley values" in found["text"]
    hostile = client.post("/explain", {"smiles": "<script>alert(1)</script>"})
    assert hostile.status == 422 and "cannot be read" in hostile.json()["error"]
    assert "at most 60 atoms" in client.post("/explain", {"smiles": "C" * 61}).json()["error"]
    for wrong, said in (
        ({"smiles": "C", "method": "x"}, "method"),
        ({"smiles": 5}, "smiles"),
        ({"smiles": "C", "draws": "9"}, 'unknown field "draws"; expected "smiles", one SMILES'),
        ({"smiles": ["C", "O"]}, 'expected "smiles", one SMILES; got 2 SMILES'),
        ({}, 'field "smiles" is missing: expected "smiles", one SMILES'),
    ):
        refused = client.post("/explain", wrong)
        assert refused.status == 422 and said in refused.json()["error"]


def test_a_row_of_several_molecules_is_explained_from_a_list_or_from_columns() -> None:
    with served(made(components=("solute", "solvent"))) as client:
        listed = client.post("/explain", {"smiles": ["CCO", "O"]})
        named = client.post("/explain", {"solute": "CCO", "solvent": "O"})
        assert listed.status == named.status == 200 and listed.json()["text"] == named.json()["text"]
        expected = 'expected "smiles", a list of 2 SMILES (solute, solvent), or "solute", "solvent"'
        for wrong, said in (
            ({"smiles": "CCO"}, f"{expected}; got 1 SMILES"),
            ({"solute": "CCO"}, f'field "solvent" is missing: {expected}'),
            ({"solute": "CCO", "slovent": "O"}, f"unknown field \"slovent\"; did you mean 'solvent'? {expected}"),
            ({"smiles": ["CCO", "O"], "solvent": "O"}, f'"smiles" and "solvent" are given: {expected}'),
            ({}, f'field "solute" is missing: {expected}'),
        ):
            refused = client.post("/explain", wrong)
            assert refused.status == 422 and refused.json()["error"] == said
    named_so = made(components=("smiles", "solvent")).header
    assert read_one_row(named_so, "CCO", {"solvent": "O"}) == read_one_row(named_so, ["CCO", "O"], {}) == ("CCO", "O")


def test_many_small_requests_at_once_lose_nothing(client: Client, predictor: Predictor) -> None:
    smiles = molecules(60)["smiles"].tolist()
    expected = predictor.predict(smiles)["gap_pred"].tolist()

    def one(i: int) -> list[float]:
        part = smiles[i : i + 1 + i % 3]
        rows = client.post("/predict", {"smiles": part}).json()["rows"]
        assert [row["smiles"] for row in rows] == part
        return [row["gap_pred"] for row in rows]

    before = counts(client)
    with ThreadPoolExecutor(10) as clients:
        for i, found in enumerate(clients.map(one, range(60))):
            np.testing.assert_allclose(found, expected[i : i + 1 + i % 3], rtol=1e-5)
    after = counts(client)
    requests = 'gtx_requests_total{path="/predict",status="200"}'
    assert after[requests] - before.get(requests, 0) == 60
    assert after["gtx_batch_molecules_count"] - before["gtx_batch_molecules_count"] < 60  # some went together


def counts(client: Client) -> dict[str, float]:
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


@pytest.mark.slow
@pytest.mark.usefixtures("forks")
def test_work_ends_with_its_time_and_with_its_client(predictor: Predictor, monkeypatch) -> None:
    """A process that stands still is as one that RDKit keeps busy for ever."""
    processes: list[int] = []

    def make(*arguments: Any) -> Any:
        pool = make_process_pool(*arguments)
        pool.submit(os.getpid).add_done_callback(lambda future: processes.append(future.result()))
        return pool

    def stop(number: int = -1) -> int:
        os.kill(processes[number], signal.SIGSTOP)
        return processes[number]

    def has_ended(process: int) -> bool:
        return not Path(f"/proc/{process}").exists()

    monkeypatch.setattr("gtx.serve.processes.make_process_pool", make)
    limits = {"timeout": 3, "wait": 300, "max_connections": 30}
    with served(predictor, processes=True, **limits) as client, ThreadPoolExecutor(1) as threads:

        def explain() -> Reply:
            return client.post("/explain", {"smiles": "CCO"})

        def predict() -> Reply:
            return client.post("/predict", {"smiles": ["CCO"]})

        until(lambda: explain().status == 200)
        stopped = stop()  # its time will be over
        asked = threads.submit(explain)
        assert client.get("/health").status == predict().status == 200 and not asked.done()
        assert (asked.result().status, asked.result().json()) == (504, {"error": "not answered within 3 s"})
        until(lambda: has_ended(stopped))

        stopped = stop(0)  # it will be killed, and another one predicts
        asked = threads.submit(predict)
        until(lambda: counts(client)["gtx_waiting_molecules"] == 1)
        until(lambda: counts(client)["gtx_waiting_molecules"] == 0)
        os.kill(stopped, signal.SIGKILL)
        assert asked.result().status in (200, 504)  # to start another one may take longer
        until(lambda: predict().status == 200)

        stopped = stop()  # the clients go
        body = json.dumps({"smiles": ["CC"] * 600}).encode()
        head = "POST /predict HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: "
        clients = [socket.create_connection(("127.0.0.1", client.port)) for _ in range(20)]
        for one in clients:
            one.sendall(f"{head}{len(body)}\r\n\r\n".encode() + body)
        until(lambda: counts(client)["gtx_waiting_molecules"] >= 19 * 500)
        for one in clients:
            one.close()
        until(lambda: counts(client)["gtx_waiting_molecules"] == 0 and has_ended(stopped))
        assert counts(client)['gtx_requests_total{path="/predict",status="499"}'] == 20


def test_connections_beyond_the_limit_are_refused(predictor: Predictor) -> None:
    with served(predictor, max_connections=5) as client:
        held = [socket.create_connection(("127.0.0.1", client.port)) for _ in range(5)]
        until(lambda: client.get("/health").status == 503)
        for one in held:
            one.close()
        until(lambda: client.get("/health").status == 200)


def test_a_molecule_that_ends_the_process_of_explanations_is_named(client: Client, monkeypatch) -> None:
    tried = []

    def die(predictor: Predictor, smiles: str, *words: Any) -> None:
        tried.append(smiles)
        raise BrokenProcessPool

    monkeypatch.setattr("gtx.serve.processes.explain", die)
    found = client.post("/explain", {"smiles": "CCBr"})
    assert found.status == 422 and tried == ["CCBr"] * 2
    assert found.json() == {"error": f"the molecule CCBr {DEADLY}", "atoms": []}


def test_what_breaks_the_model_breaks_its_own_row_or_request(predictor: Predictor) -> None:
    """Of a process of the model that dies at bromine and has an error at chlorine."""
    requests, batches = [["CC", "CCBr", "C1CC", "CBr", "CCC"], ["CCCl"], ["CCO"]], []

    async def call(function: Any, chunks: list[Chunk]) -> list[ChunkAnswers]:
        texts = [text for chunk in chunks for text in chunk[0]]
        batches.append(len(texts))
        if any("Br" in text for text in texts):
            raise BrokenProcessPool
        if any("Cl" in text for text in texts):
            raise RuntimeError("boom")
        return function(predictor, chunks)

    async def ask() -> list[Any]:
        batcher = Batcher(SimpleNamespace(predictor=predictor, call=call), 0, lambda number: None)
        running = asyncio.create_task(batcher.run())
        chunks = [(texts, [None] * len(texts), [None] * len(texts)) for texts in requests]
        answers = await asyncio.gather(*map(batcher.answer, chunks), return_exceptions=True)
        running.cancel()
        return answers

    first, second, third = asyncio.run(ask())
    assert batches[0] == 7 and str(second) == "boom"  # all requests together
    assert first.errors == [None, DEADLY, "cannot be read: unclosed ring", DEADLY, None]
    expected = predictor.predict(["CC", "CCC", "CCO"])["gap_pred"]
    answered = [*first.answers.columns()[0], *third.answers.columns()[0]]
    np.testing.assert_allclose(answered, expected, rtol=1e-5)


# --- Drawings: to a SMILES and from one, and what is refused.


ETHANOL = {
    "atoms": [{"element": "C", "x": 0, "y": 0}, {"element": "C", "x": 1, "y": 0}, {"element": "O", "x": 2, "y": 0.5}],
    "bonds": [{"begin": 0, "end": 1}, {"begin": 1, "end": 2, "kind": "single"}],
}


def changed(**change: Any) -> dict[str, Any]:
    return ETHANOL | change


def test_a_drawing_is_written_and_drawn_again_and_an_atom_that_cannot_be_is_told_with_its_number(client) -> None:
    found = client.post("/smiles", ETHANOL)
    assert found.status == 200 and found.json() == {"smiles": "CCO", "hydrogens": [3, 2, 1]}
    drawing = client.get("/sketch?smiles=C%5BC@H%5D(N)C(=O)%5BO-%5D").json()
    assert {bond["kind"] for bond in drawing["bonds"]} > {"double"} and drawing["atoms"][-1]["charge"] == -1
    assert client.post("/smiles", drawing).json()["smiles"] == "C[C@H](N)C(=O)[O-]"
    found = client.post("/smiles", changed(bonds=[{"begin": 0, "end": 2}, {"begin": 1, "end": 2, "kind": "double"}]))
    assert found.status == 422 and found.json()["atoms"] == [2]
    assert found.json()["error"].startswith("the molecule has too many bonds at an atom: O with 3;")


NO_DRAWINGS = {
    "no JSON": b"{",
    "no atoms": changed(atoms=[]),
    "a script for an element": changed(atoms=[{"element": "<script>", "x": 0, "y": 0}], bonds=[]),
    "no place": b'{"atoms": [{"element": "C", "x": NaN, "y": 0}]}',
    "a charge beyond all": changed(atoms=[{"element": "C", "x": 0, "y": 0, "charge": 10**30}], bonds=[]),
    "a long name": changed(atoms=[{"element": "C" * 10_000, "x": 0, "y": 0}], bonds=[]),
    "another kind": changed(bonds=[{"begin": 0, "end": 1, "kind": "aromatic"}]),
    "too many atoms": changed(atoms=ETHANOL["atoms"] * 100),
}


@pytest.mark.parametrize("name", NO_DRAWINGS)
def test_what_is_no_drawing_is_refused_in_one_line(client: Client, name: str) -> None:
    found = client.post("/smiles", NO_DRAWINGS[name])
    error = found.json()["error"]
    assert found.status == 422 and error and "\n" not in error and len(error) < 300
    assert error.startswith(("the request cannot be used: ", "the request is no JSON: ", "the molecule "))
    assert client.post("/smiles", ETHANOL).status == 200  # it goes on


def test_hostile_smiles_and_types(client: Client) -> None:
    for smiles in ("", "%3Cscript%3E", "C" * 201, "C" * 2001, "%5B13CH4%5D", "C%00"):
        found = client.get(f"/sketch?smiles={smiles}")
        assert found.status == 422 and "\n" not in found.json()["error"]
    assert client.ask("POST", "/smiles", json.dumps(ETHANOL).encode(), "text/plain").status == 415


# --- `gtx serve` as a command: it says where it is, answers, and ends in order.


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
