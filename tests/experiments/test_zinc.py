"""ZINC-12k as graphs: what is read is what was written, a run ends in a result, and goes on where it was stopped."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.data import Data

from experiments import zinc
from experiments.runs import Run
from gtx.data import public_datasets
from tests.molecules_for_tests import store
from tests.tables import molecules, write

SMALL = {"layers": 1, "channels": 16, "heads": 2, "pair_channels": 8}
WORDS = ["--here", "--sets", "graphs", "--epochs", "2", "--threads", "1", "--model-arguments", json.dumps(SMALL)]
COUNTS = {"train": 30, "val": 10, "test": 10}


@pytest.fixture(scope="module")
def data() -> list[Data]:
    """Molecules as PyG's `ZINC` gives them: an atom and a bond type, here element and bond order made to fit."""
    chosen = molecules(sum(COUNTS.values()))
    y = torch.tensor(chosen["gap"].to_numpy(), dtype=torch.float32)
    return [
        Data(x=one.x[:, :1] % 28, edge_index=one.edge_index, edge_attr=one.edge_attr[:, 0].clamp(1, 3), y=y[i : i + 1])
        for i, one in enumerate(store(chosen["smiles"].tolist()).batch().to_data_list())
    ]


@pytest.fixture
def folder(data: list[Data], tmp_path, monkeypatch) -> Path:
    """A folder of data sets with a small ZINC-12k."""
    parts = np.repeat(list(COUNTS), list(COUNTS.values())).tolist()
    file = tmp_path / "data" / "zinc12k" / "zinc12k.csv"
    file.parent.mkdir(parents=True)
    rows = [
        [smiles, float(one.y), part] for smiles, one, part in zip(molecules(50)["smiles"], data, parts, strict=True)
    ]
    write(file, rows, ["smiles", "y", "split"])
    flat, start = {}, 0
    for part, count in COUNTS.items():
        arrays = zinc.from_pyg(data[start : start + count])
        flat |= {f"{part}_{name}": array for name, array in arrays.items()}
        start += count
    np.savez(file.with_name("zinc12k_graphs.npz"), **flat)
    monkeypatch.setitem(
        public_datasets.PUBLIC_DATASETS, "zinc12k", replace(public_datasets.PUBLIC_DATASETS["zinc12k"], sha256=None)
    )
    monkeypatch.setenv("GTX_DATA", str(tmp_path / "data"))
    return tmp_path


def test_the_graphs_come_back_as_they_went_in(data: list[Data], folder: Path) -> None:
    found = Run(zinc.SETS["graphs"], "gtx").dataset
    assert {part: len(rows) for part, rows in found.split.items()} == COUNTS
    assert np.array_equal(np.concatenate(list(found.split.values())), found.rows)
    batch = found.store.batch(torch.arange(len(data)))
    for one, given in zip(batch.to_data_list(), data, strict=True):
        assert torch.equal(one.x - 1, given.x) and torch.equal(one.edge_index, given.edge_index)
        assert torch.equal(one.edge_attr[:, 0], given.edge_attr) and one.y.item() == pytest.approx(given.y.item())
    assert batch.u.shape == (len(data), 0)  # no descriptors


def test_the_real_graphs_are_those_of_the_smiles(shared_data: Path, monkeypatch) -> None:
    monkeypatch.setenv("GTX_DATA", str(shared_data))
    table = pd.read_csv(shared_data / "zinc12k" / "zinc12k.csv")
    found = Run(zinc.SETS["graphs"], "gtx").dataset
    some = np.concatenate([rows[:: len(rows) // 40] for rows in found.split.values()])
    read = store(table["smiles"][some].tolist())
    cut = found.store.subset(some)
    assert torch.equal(cut.sizes, read.sizes) and torch.equal(cut.bond_ptr, read.bond_ptr)
    assert np.allclose(cut.y[:, 0], table["y"][some]) and len(found.store) == 12_000
    assert [set(table["split"][rows]) for rows in found.split.values()] == [{"train"}, {"val"}, {"test"}]


def test_a_model_above_the_benchmarks_size_is_refused(folder: Path, capsys) -> None:
    words = [*WORDS[:-1], json.dumps({"channels": 256}), "--out", str(folder), "--runs", str(folder / "runs")]
    assert zinc.main(words) == 1
    assert re.search(r"at most 500,000 weights, got [\d,]+$", capsys.readouterr().err.splitlines()[0])
