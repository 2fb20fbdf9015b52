"""ZINC-12k as graphs: what is read is what was written, a run ends in a result, and goes on where it was stopped."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.data import Data

from experiments import archive, on_store, time_budget, zinc, zinc_graphs
from gtx.data import named_sets
from gtx.errors import InputError
from gtx.models import standard
from gtx.tasks import Regression
from gtx.training import TrainSettings
from tests.molecules_for_tests import SMILES, store
from tests.tables import molecules, write

SMALL = {"layers": 1, "channels": 16, "heads": 2, "pair_channels": 8}
WORDS = ["--sets", "graphs", "--epochs", "2", "--threads", "1", "--no-progress", "--model-arguments", json.dumps(SMALL)]
COUNTS = {"train": 30, "val": 10, "test": 10}


def as_graphs(smiles: list[str], y: np.ndarray) -> list[Data]:
    """Molecules as PyG's `ZINC` gives them: an atom and a bond type, here element and bond order made to fit."""
    batch = store(smiles).batch(torch.arange(len(smiles)))
    return [
        Data(x=one.x[:, :1] % 28, edge_index=one.edge_index, edge_attr=one.edge_attr[:, 0].clamp(1, 3), y=y[i : i + 1])
        for i, one in enumerate(batch.to_data_list())
    ]


@pytest.fixture(scope="module")
def data() -> list[Data]:
    chosen = molecules(sum(COUNTS.values()))
    return as_graphs(chosen["smiles"].tolist(), torch.tensor(chosen["gap"].to_numpy(), dtype=torch.float32))


@pytest.fixture
def folder(data: list[Data], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
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
        arrays = zinc_graphs.from_pyg(data[start : start + count])
        flat |= {f"{part}_{name}": array for name, array in arrays.items()}
        start += count
    np.savez(file.with_name("zinc12k_graphs.npz"), **flat)
    monkeypatch.setitem(named_sets.SETS, "zinc12k", replace(named_sets.SETS["zinc12k"], sha256=None))
    monkeypatch.setenv("GTX_DATA", str(tmp_path / "data"))
    return tmp_path


def run(folder: Path, *more: str) -> dict:
    assert zinc.main([*WORDS, "--out", str(folder / "results"), "--runs", str(folder / "runs"), *more]) == 0
    (result,) = archive.runs(folder / "results", folder="zinc12k-graphs")
    return result


def test_the_graphs_come_back_as_they_went_in(data: list[Data], folder: Path) -> None:
    found = zinc_graphs.graphs(folder / "data" / "zinc12k" / "zinc12k.csv")
    assert {part: len(rows) for part, rows in found.split.items()} == COUNTS
    assert np.array_equal(np.concatenate(list(found.split.values())), found.rows)
    batch = found.store.batch(torch.arange(len(data)))
    for one, given in zip(batch.to_data_list(), data, strict=True):
        assert torch.equal(one.x - 1, given.x) and torch.equal(one.edge_index, given.edge_index)
        assert torch.equal(one.edge_attr[:, 0], given.edge_attr) and one.y.item() == pytest.approx(given.y.item())
    assert batch.u.shape == (len(data), 0)  # no descriptors


def test_types_that_the_benchmark_does_not_know_are_refused(data: list[Data]) -> None:
    flat = zinc_graphs.from_pyg(data)
    with pytest.raises(ValueError, match="expected atom types 0 to 27 and bond types 1 to 3, got 6 to 17 and 0 to"):
        zinc_graphs.store(flat | {"bond_type": flat["bond_type"] - 1})
    with pytest.raises(ValueError, match=r"got .* to 28 and"):
        zinc_graphs.store(flat | {"atom_type": np.full_like(flat["atom_type"], 28)})


def test_the_real_graphs_are_those_of_the_smiles(shared_data: Path) -> None:
    table = pd.read_csv(shared_data / "zinc12k" / "zinc12k.csv")
    found = zinc_graphs.graphs(shared_data / "zinc12k" / "zinc12k.csv")
    some = np.concatenate([rows[:: len(rows) // 40] for rows in found.split.values()])
    read = store(table["smiles"][some].tolist())
    cut = found.store.subset(some)
    assert torch.equal(cut.sizes, read.sizes) and torch.equal(cut.bond_ptr, read.bond_ptr)
    assert np.allclose(cut.y[:, 0], table["y"][some]) and len(found.store) == 12_000
    assert [set(table["split"][rows]) for rows in found.split.values()] == [{"train"}, {"val"}, {"test"}]


def test_a_run_ends_in_a_result_that_its_predictions_bear_out(folder: Path, capsys: pytest.CaptureFixture) -> None:
    result = run(folder)
    assert "zinc12k-graphs  gtx-0  MAE train" in capsys.readouterr().out
    assert result["rows"] == COUNTS and result["metric"] == "mae" and result["parameters"] < zinc.MOST
    kept = archive.predictions(folder / "results", result)
    assert result["test"]["mae"] == pytest.approx(np.abs(kept.measured - kept.values).mean(), rel=1e-4)
    assert kept.rows.tolist() == list(range(40, 50))
    assert result["settings"]["task"]["loss"] == "mae" and result["settings"]["model"]["arguments"]["layers"] == 1
    assert result["command"].startswith("python -m experiments.zinc --sets graphs --epochs 2 --threads 1")
    assert result["command"].endswith(" --seeds 0") and result["machine"]["threads"] == 1
    log = (folder / "runs" / "zinc12k-graphs" / "gtx-0" / "members" / "0" / "log.csv").read_text()
    assert "val_mae" in log and len(log.splitlines()) == 3


@pytest.mark.parametrize("given", [{}, {"encodings": ["path"]}])
def test_graphs_show_rings_and_smiles_tell_them(folder: Path, given: dict) -> None:
    words = [*WORDS[2:-1], json.dumps(SMALL | given), "--runs", str(folder / "runs")]
    graphs, smiles = (zinc.study(name, 0, zinc._read(words)).spec["arguments"] for name in ("graphs", "smiles"))
    assert graphs["encodings"] == given.get("encodings", ["bonds", "path", "walk", "degree", "ring"])
    assert smiles.get("encodings") == given.get("encodings") and smiles.get("substructures") is None
    assert graphs["substructures"] and graphs["layers"] == smiles["layers"] == 1 and smiles["steps"] == 16


def test_a_finished_run_is_kept_and_a_stopped_one_goes_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(on_store, "write", None)  # dies between training and its result
        with pytest.raises(TypeError):
            run(folder)
    log = folder / "runs" / "zinc12k-graphs" / "gtx-0" / "members" / "0" / "log.csv"
    trained = log.stat().st_mtime_ns
    result = run(folder)
    assert log.stat().st_mtime_ns == trained and result["resumed"]
    monkeypatch.setattr(on_store, "fit", None)
    assert run(folder) == result


def test_the_smiles_have_features_and_no_descriptors(folder: Path) -> None:
    found, sizes = zinc.of_smiles(folder / "runs")
    assert found.store.descriptors.shape == (50, 0) and found.store.atoms.shape[1] == len(sizes["atom_sizes"]) == 10
    assert {part: len(rows) for part, rows in found.split.items()} == COUNTS


def test_other_models_stand_beside_it_on_the_same_rows(folder: Path) -> None:
    words = ["--sets", "smiles", "--rivals", "mean", "--out", str(folder / "results"), "--runs", str(folder / "runs")]
    assert zinc.main(words) == 0
    file = folder / "results" / archive.RUNS
    (result,), written = archive.predicted_runs(folder / "results"), file.stat().st_mtime_ns
    table = pd.read_csv(folder / "data" / "zinc12k" / "zinc12k.csv")
    train, test = (table["y"][table["split"] == part] for part in ("train", "test"))
    assert result["test"]["mae"] == pytest.approx((test - train.mean()).abs().mean())
    assert result["predictions"].rows.tolist() == test.index.tolist()
    assert result["command"] == "python -m experiments.zinc --sets smiles --rivals mean --seeds 0"
    assert zinc.main(words) == 0 and file.stat().st_mtime_ns == written
    with pytest.raises(SystemExit):  # graphs have no SMILES
        zinc.main(["--sets", "graphs", *words[2:]])


def test_a_model_above_the_benchmarks_size_is_refused(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"at most 500,000 weights, got [\d,]+$"):
        zinc.main([*WORDS[:-1], json.dumps({"channels": 256}), "--out", str(folder), "--runs", str(folder)])


def test_a_model_that_there_is_not_is_refused(capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit):
        zinc.main(["--model", "nosuch"])
    assert re.search(r"--model: expected one of .*standard.*, got 'nosuch'", capsys.readouterr().err)


def test_graphs_that_cannot_be_had_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError("no network")

    monkeypatch.setattr("torch_geometric.datasets.ZINC", refuse)
    with pytest.raises(InputError, match="PyG cannot get them: no network"):
        zinc_graphs.graphs(tmp_path / "zinc12k.csv")
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(zinc, "of_graphs", lambda _: zinc_graphs.graphs(tmp_path / "zinc12k.csv"))
    assert zinc.main([*WORDS, "--out", str(tmp_path), "--runs", str(tmp_path)]) == 1
    found = capsys.readouterr()
    assert not found.out and found.err.startswith("zinc12k-graphs gtx-0: the graphs of ZINC-12k are not at")


def test_hours_become_epochs_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train = store(SMILES).with_targets(np.arange(len(SMILES), dtype=float)[:, None])
    sizes = {"atom_sizes": [200] * train.atoms.shape[1], "bond_sizes": [200] * train.bond_codes.shape[1]}
    more = {"out_channels": 1, "num_descriptors": train.descriptors.shape[1]}
    how = partial(standard, **sizes, **SMALL, **more), Regression("y", loss="mae"), TrainSettings(threads=1)
    before = torch.get_rng_state()
    epochs = time_budget.epochs_for(1.0, tmp_path / "run", train, *how)
    found = json.loads((tmp_path / "run" / "pace.json").read_text())
    assert epochs == int(3600 / found["epoch_seconds"]) > 1
    assert torch.equal(torch.get_rng_state(), before)
    monkeypatch.setattr(time_budget, "epoch_seconds", lambda *_: 1800.0)
    assert time_budget.epochs_for(1.0, tmp_path / "run", train, *how) == epochs  # kept
    assert time_budget.epochs_for(2.0, tmp_path / "run", train, *how) == 4  # other hours are another plan
