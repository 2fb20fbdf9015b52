from __future__ import annotations

import gzip
import hashlib
import io
import os
import pickle
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from gtx.data.public_datasets import PUBLIC_DATASETS, PublicDataset, _object_array, load_public_dataset
from gtx.data.row_log import InputFile, RowLog
from gtx.data.splits import split_by_column
from gtx.data.tables import open_table
from gtx.errors import InputError
from gtx.tasks.inferred import InferredTask

CONTENT = b"smiles,y\nCCO,1.5\nC,2\n"


@pytest.fixture
def site(tmp_path: Path):
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


@pytest.fixture
def toy(site, monkeypatch) -> PublicDataset:
    """A set of one file, with no hash known beforehand."""
    folder, address = site
    (folder / "toy.csv").write_bytes(CONTENT)
    entry = PublicDataset("toy", "", Path("toys", "toy.csv"), targets=("y",), sources=(f"{address}/toy.csv",))
    monkeypatch.setitem(PUBLIC_DATASETS, "toy", entry)
    return entry


def test_a_download_is_kept_recorded_and_compared(toy, site, tmp_path, monkeypatch):
    monkeypatch.setenv("GTX_DATA", str(tmp_path / "root"))
    with pytest.raises(InputError, match="'toy' is not at"):
        load_public_dataset("toy", download=False)
    loaded = load_public_dataset("toy")
    assert loaded.path == tmp_path / "root" / "toys" / "toy.csv"
    assert [row.text for row in open_table(loaded.path, loaded.smiles_column).rows] == ["CCO", "C"]
    record = loaded.path.with_name("toy.csv.sha256")
    assert record.read_text() == f"{hashlib.sha256(CONTENT).hexdigest()}  toy.csv\n"
    assert sorted(path.name for path in loaded.path.parent.iterdir()) == ["toy.csv", "toy.csv.sha256"]

    whole = record.read_text()
    record.write_text("")
    with pytest.raises(InputError, match="should have SHA-256 that is recorded beside it, which is empty, and has"):
        load_public_dataset("toy")
    record.write_text(whole)

    (site[0] / "toy.csv").write_bytes(CONTENT + b"N,3\n")  # what lies in place is used
    assert load_public_dataset("toy").path.read_bytes() == CONTENT
    loaded.path.write_bytes(CONTENT + b"N,3\n")  # but not if it changed
    with pytest.raises(InputError, match=r"should have SHA-256 .* and has .* remove the file"):
        load_public_dataset("toy")


def test_without_a_home_folder_one_line_says_what_to_name(toy, monkeypatch):
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("GTX_DATA", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(InputError, match="no home folder is known: name one by GTX_DATA"):
        load_public_dataset("toy")


def test_a_known_hash_is_checked_before_anything_is_written(toy, tmp_path, monkeypatch):
    monkeypatch.setitem(PUBLIC_DATASETS, "toy", replace(toy, sha256="0" * 64))
    with pytest.raises(InputError, match=f"should have SHA-256 {'0' * 64} and has"):
        load_public_dataset("toy", tmp_path)
    assert not (tmp_path / "toys").exists()
    monkeypatch.setitem(PUBLIC_DATASETS, "toy", replace(toy, sha256=hashlib.sha256(CONTENT).hexdigest()))
    assert [path.name for path in load_public_dataset("toy", tmp_path).path.parent.iterdir()] == ["toy.csv"]


def test_a_failed_download_says_what_where_and_what_to_do(toy, site, tmp_path, monkeypatch):
    folder, address = site
    (folder / "broken.csv").write_bytes(CONTENT)
    (folder / "login.csv").write_text("<html>smiles, please\n")
    (folder / "other.csv").write_text("smiles,z\nC,1\n")
    reasons = {
        "none": "404",
        "broken": "broke after 21 of 121",
        "login": "no column 'smiles'",
        "other": "no column 'y'",
    }
    for stem, reason in reasons.items():
        file = f"{stem}.csv"
        monkeypatch.setitem(PUBLIC_DATASETS, "toy", replace(toy, sources=(f"{address}/{file}",)))
        with pytest.raises(InputError, match=reason) as error:
            load_public_dataset("toy", tmp_path / "root")
        assert f"{address}/{file}" in str(error.value)
        assert str(tmp_path / "root" / "toys" / "toy.csv") in str(error.value)
        assert not list((tmp_path / "root").rglob("*toy.csv*"))
    monkeypatch.setitem(PUBLIC_DATASETS, "toy", replace(toy, sources=("http://127.0.0.1:9/none.csv",)))
    with pytest.raises(InputError, match="cannot be downloaded"):
        load_public_dataset("toy", tmp_path / "root")


ACTIVITY = "moleculeace/CHEMBL2034_Ki"
SHARED = ["esol", "freesolv", "bbbp", "zinc12k", ACTIVITY]
SHARED += ["mat/bbbp", "scaffold/tox21"]
ROWS = {"esol": 1128, "freesolv": 642, "bace": 1513, "tox21": 7831, "zinc12k": 12_000, "CHEMBL2034_Ki": 750}


@pytest.mark.parametrize("name", SHARED)
def test_sets_in_place_hold_what_their_entries_say(name, shared_data):
    loaded = load_public_dataset(name, shared_data, download=False)
    table = open_table(loaded.path, loaded.smiles_column)
    rows = list(table.rows)
    bbbp = {"bbbp": 2050, "mat/bbbp": 2039, "scaffold/bbbp": 2039}
    assert len(rows) == bbbp.get(name) or len(rows) == ROWS[name.split("/")[-1]]
    row_log = RowLog("fail")
    row_log.enter(rows)
    task = InferredTask(loaded.targets).infer_from_table(
        [InputFile(name, table.columns, table.smiles_column, rows, row_log, 0)]
    )
    assert task.discrete == (name.split("/")[-1] in ("bbbp", "bace", "tox21"))
    assert np.isfinite(task.parse(rows, table.columns, row_log)).any()
    for column in loaded.split_columns:
        place = table.index(column)
        split = split_by_column([row.cells[place] for row in rows], row_log)
        assert sum(map(len, split.values())) == len(rows)
        assert all(len(rows) for part, rows in split.items() if (name, part) != (ACTIVITY, "val"))


# The files as they are published, taken apart from the tables that were made of them


def object_array(parts: list[np.ndarray]) -> bytes:
    array = np.empty(len(parts), dtype=object)
    array[:] = parts
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


def test_the_sets_of_mat_are_assembled(site, shared_data, tmp_path, monkeypatch):
    folder, address = site
    entry = PUBLIC_DATASETS[name := "mat/freesolv"]
    table = open_table(shared_data / entry.path)
    rows = [row.cells for row in table.rows]
    files = [source.rpartition("/")[2] for source in entry.sources]
    (folder / files[0]).write_text("smiles,y\r\n" + "".join(f"{smiles} ,{y}\r\n" for smiles, y, *_ in rows))
    for i, file in enumerate(files[1:], start=2):
        parts = [np.flatnonzero([row[i] == part for row in rows]) for part in ("train", "val", "test")]
        (folder / file).write_bytes(object_array(parts))
    monkeypatch.setitem(PUBLIC_DATASETS, name, replace(entry, sources=tuple(f"{address}/{file}" for file in files)))
    assert load_public_dataset(name, tmp_path).path.read_bytes() == (shared_data / entry.path).read_bytes()


def test_the_sets_of_muben_are_assembled(site, shared_data, tmp_path, monkeypatch):
    folder, address = site
    entry = PUBLIC_DATASETS[name := "scaffold/freesolv"]
    rows = [row.cells for row in open_table(shared_data / entry.path).rows]
    sources = []
    for part in ("train", "val", "test"):
        lines = [",smiles,labels,masks"]
        for smiles, *labels, split in rows:
            if split == part:
                shown = [label or "-1" for label in labels]
                lines.append(f'{len(lines) - 1},{smiles},"[{", ".join(shown)}]","{[int(bool(y)) for y in labels]}"')
        (folder / f"{part}.csv").write_text("\n".join(lines) + "\n")
        sources.append(f"{address}/{part}.csv")
    monkeypatch.setitem(PUBLIC_DATASETS, name, replace(entry, sources=tuple(sources)))
    assert load_public_dataset(name, tmp_path).path.read_bytes() == (shared_data / entry.path).read_bytes()


def test_the_sets_of_moleculeace_are_assembled(shared_data):
    content = (shared_data / PUBLIC_DATASETS[ACTIVITY].path).read_text()
    lines = ["smiles,exp_mean [nM],y,cliff_mol,split,y [pEC50/pKi]"]
    for smiles, y, cliff, split in (line.split(",") for line in content.splitlines()[1:]):
        lines.append(f"{smiles},1.0,-0.0,{cliff},{split},{y}")
    assert PUBLIC_DATASETS[ACTIVITY].assemble(["\n".join(lines).encode()]).decode() == content


def test_nothing_but_arrays_comes_out_of_a_pickled_array(tmp_path):
    class Harm:
        def __reduce__(self) -> tuple:
            return os.system, (f"touch {tmp_path / 'harmed'}",)

    array = np.empty(1, dtype=object)
    array[0] = Harm()
    with pytest.raises(pickle.UnpicklingError, match="has no place in an array"):
        _object_array(object_array(list(array)))
    assert not (tmp_path / "harmed").exists()


def test_a_set_that_is_served_compressed(site, monkeypatch, tmp_path):
    folder, address = site
    (folder / "t.csv.gz").write_bytes(gzip.compress(CONTENT))
    entry = PublicDataset("packed", "", Path("t.csv.gz"), targets=("y",), sources=(f"{address}/t.csv.gz",))
    monkeypatch.setitem(PUBLIC_DATASETS, "packed", entry)
    assert [row.text for row in open_table(load_public_dataset("packed", tmp_path).path).rows] == ["CCO", "C"]
