"""The sets of published benchmarks: what their entries say, and how they are assembled from the official files."""

import io
import os
import pickle
from dataclasses import replace

import numpy as np
import pytest

from experiments import benchmark_sets
from gtx.data.public_datasets import PUBLIC_DATASETS, load_public_dataset
from gtx.data.tables import open_table
from tests.data.test_public_datasets import check_entry

ACTIVITY = "moleculeace/CHEMBL2034_Ki"
ROWS = {ACTIVITY: 750, "mat/esol": 1128, "scaffold/tox21": 7831}


@pytest.mark.parametrize("name", ROWS)
def test_sets_in_place_hold_what_their_entries_say(name, shared_data):
    without = ("val",) if name == ACTIVITY else ()
    check_entry(load_public_dataset(name, shared_data, download=False), ROWS[name], without)


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
        benchmark_sets.object_array(object_array(list(array)))
    assert not (tmp_path / "harmed").exists()
