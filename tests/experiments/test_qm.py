"""Molecules in space: bonds perceived, SchNet and gtx on the same rows, and what both must keep."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch

from experiments import coordinate_models, qm, qm_sets, tables
from experiments.runs import Run
from experiments.summary import difference_text, rows
from gtx.data import MoleculeStore
from tests.molecules_for_tests import renumbered
from tests.molecules_for_tests import store as read

SMILES = [
    *("C", "CCO", "C#N", "c1ccccc1O", "CC(=O)N", "C1CC1C", "FC(F)F", "O=S(=O)(C)C", "CC(C)(C)C", "OO"),
    *("NCC(=O)O", "C1=CC2CC2C1", "CN(C)C", "N#CC#C", "c1ccsc1", "C=C=C"),
]
SMALL = {
    "gtx": {"channels": 16, "layers": 1, "heads": 2, "pair_channels": 8, "moments": 4},
    "schnet": {"hidden_channels": 16},
}
SMALL["schnet"] |= {"num_filters": 16, "num_interactions": 2, "num_gaussians": 10}
SMALL |= {name: {"channels": 16, "layers": 2, "heads": 2} for name in coordinate_models.FAMILY}


@pytest.fixture(scope="module")
def conformers() -> MoleculeStore:
    """Real geometries, hydrogens included."""
    return read(SMILES, hydrogens=True, conformers=True)


@pytest.fixture(scope="module")
def arrays(conformers: MoleculeStore) -> dict[str, np.ndarray]:
    """The same as the files of quantum chemistry have them."""
    z = conformers.atoms[:, 0].numpy()
    return {"num_atoms": conformers.sizes.numpy().astype(np.int8), "Z": z, "R": conformers.positions.double().numpy()}


@pytest.fixture(scope="module")
def made(arrays: dict[str, np.ndarray]) -> MoleculeStore:
    return qm_sets.store_of(arrays["num_atoms"], arrays["Z"], arrays["R"])


def model(name: str, extensive: bool = True) -> torch.nn.Module:
    torch.manual_seed(0)
    return coordinate_models.make(name, extensive, **qm_sets.SIZES, **SMALL[name]).eval()


def whole(store: MoleculeStore) -> Batch:
    return store.batch(torch.arange(len(store)))


def test_bonds_by_distance_are_the_bonds(conformers: MoleculeStore, made: MoleculeStore) -> None:
    def bonds(store: MoleculeStore) -> set[tuple[int, int]]:
        return set(map(tuple, whole(store).edge_index.T.tolist()))

    assert bonds(made) == bonds(conformers) and torch.equal(made.bond_ptr, conformers.bond_ptr)
    assert (made.bond_codes == 1).all()


@pytest.mark.slow
def test_the_targets_are_those_of_the_files(shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GTX_DATA", str(shared_data))
    for name, low, high in (("qm9-gap", 500, 20_000), ("qm9-u0", -3_000, -100), ("qm7-energy", -3_000, -300)):
        found, again, other = (Run(qm.SETS[name], "gtx", k).dataset for k in (1, 1, 2))
        assert low < found.store.y.min() and found.store.y.max() < high, name
        assert np.array_equal(np.sort(np.concatenate(list(found.split.values()))), np.arange(len(found.store)))
        assert [len(rows) for rows in found.split.values()][1:] == [round(len(found.store) / 10)] * 2
        assert np.array_equal(found.split["test"], again.split["test"])
        assert not np.array_equal(found.split["test"], other.split["test"])


@pytest.mark.parametrize("name", ["gtx", "schnet", "torchmd_net"])
@pytest.mark.parametrize("extensive", [True, False])
def test_what_a_model_in_space_must_keep(name: str, extensive: bool, made: MoleculeStore) -> None:
    net, batch = model(name, extensive), whole(made)
    out = net(batch).detach()
    assert out.shape == (len(SMILES), 1) and len(out.unique()) > 10
    scale = {"rtol": 1e-4, "atol": 1e-4 * float(out.abs().max())}
    turn, _ = torch.linalg.qr(torch.randn(3, 3, generator=torch.Generator().manual_seed(0)))
    moved = batch.clone()
    moved.pos = batch.pos @ turn.T + torch.tensor([3.0, -1.0, 2.0])
    assert torch.allclose(net(moved), out, **scale)
    assert torch.allclose(net(renumbered(batch)[0]), out, **scale)
    assert torch.allclose(net(made.batch(torch.tensor([3]))), out[3:4], **scale)
    stretched = batch.clone()
    stretched.pos = 1.1 * batch.pos
    assert not torch.allclose(net(stretched), out, **scale)


@pytest.mark.parametrize("name", coordinate_models.FAMILY)
def test_a_named_model_predicts_by_atoms(name: str, made: MoleculeStore) -> None:
    batch = whole(made)
    sums, means = (model(name, extensive) for extensive in (True, False))
    sums.observe(made)
    means.observe(made)
    sizes = made.sizes[:, None].float()
    assert torch.allclose(sums(batch) * sizes.mean(), means(batch) * sizes, rtol=1e-4, atol=1e-4)
    sums.train()(batch).sum().backward()
    used = [key for key, p in sums.named_parameters() if p.grad is not None]
    assert len(used) >= len(list(sums.parameters())) - 2 and "model.head.0.weight" in used


@pytest.fixture
def folder(arrays: dict[str, np.ndarray], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of data sets with a small QM7: the molecules several times, a little distorted."""
    random, file = np.random.default_rng(0), tmp_path / "data" / qm_sets.TARGETS["qm7-energy"].file
    file.parent.mkdir(parents=True)
    shaken = {"num_atoms": np.tile(arrays["num_atoms"], 4), "Z": np.tile(arrays["Z"], 4)}
    shaken["R"] = np.tile(arrays["R"], (4, 1)) + random.normal(scale=0.02, size=(4 * len(arrays["R"]), 3))
    energy = -100.0 * np.tile(arrays["num_atoms"], 4) + random.normal(size=4 * len(SMILES))
    np.savez(file, energy_pbe0=energy, **shaken)
    monkeypatch.setenv("GTX_DATA", str(tmp_path / "data"))
    monkeypatch.setitem(qm.SETTINGS, "epochs", 2)
    for name in ("gtx", "schnet"):
        monkeypatch.setitem(qm.ARGUMENTS, name, SMALL[name])
    return tmp_path


def test_both_models_are_measured_on_the_same_rows(folder: Path, capsys: pytest.CaptureFixture) -> None:
    words = ["--sets", "qm7-energy", "--splits", "1", "--here", "--models", "gtx", "schnet"]
    words += ["--out", str(folder / "results"), "--runs", str(folder / "runs")]
    assert qm.main(words) == 0
    assert capsys.readouterr().out.count("test mae") == 2
    own, other = tables.predicted_runs(folder / "results")
    assert (own["name"], other["name"]) == ("gtx-1", "schnet-1")
    assert np.array_equal(own["predictions"].measured, other["predictions"].measured)
    assert np.array_equal(own["predictions"].rows, other["predictions"].rows)
    assert own["sha256"] == other["sha256"] and own["rows"] == {"train": 52, "val": 6, "test": 6}
    for result in (own, other):
        values, predicted = result["predictions"].measured, result["predictions"].values
        assert result["test"]["mae"] == pytest.approx(np.abs(values - predicted).mean(), abs=5e-3)
        assert result["test"]["mae"] < 100 < values.std()  # the reference per element has been put back
        assert result["settings"]["task"]["element_reference"] and result["split"] == "random 1"
    assert own["command"] == "python -m experiments.qm --sets qm7-energy --models gtx --splits 1"
    first, second = rows([own, other])  # no named set holds these rows: the results themselves do
    assert (first.model, second.model) == ("gtx", "schnet")
    assert float(difference_text(second, first).split()[0]) == pytest.approx(
        other["test"]["mae"] - own["test"]["mae"], abs=2e-3
    )
    files = {file: file.stat().st_mtime_ns for file in (folder / "results").iterdir()}
    assert qm.main(words) == 0
    assert capsys.readouterr().err == ""
    assert qm.main([*words, "--models", "gtx", "--settings", '{"epochs": 9}']) == 0
    assert "qm7-energy/gtx-1 is kept, made by `python -m experiments.qm" in capsys.readouterr().err
    assert {file: file.stat().st_mtime_ns for file in (folder / "results").iterdir() if file in files} == files


def test_a_set_that_cannot_be_had_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setenv("GTX_DATA", str(tmp_path))
    source = qm_sets.Source((tmp_path / "nothing").as_uri(), "")
    monkeypatch.setitem(qm_sets.SOURCES, "qm7_qml_7101.npz", source)
    words = ["--sets", "qm7-energy", "--models", "gtx", "--splits", "0", "--here"]
    assert qm.main([*words, "--out", str(tmp_path), "--runs", str(tmp_path)]) == 1
    told = capsys.readouterr().err.splitlines()
    assert told[0].startswith(f"qm7-energy gtx-0: {tmp_path}/qm7/qm7_qml_7101.npz is not there")
    assert told[1] == "failed: python -m experiments.qm --sets qm7-energy --models gtx --splits 0"


def held(shared_data: Path, name: str) -> dict[str, np.ndarray]:
    with np.load(shared_data / name) as arrays:
        return dict(arrays)


@pytest.mark.parametrize("file", ["qm7/qm7_qml_7101.npz", "qm9/qm9_3d_3000.npz"])
def test_the_digest_is_of_the_files_at_hand_and_sees_an_atom_moved(shared_data: Path, file: str) -> None:
    arrays = held(shared_data, file)
    assert qm_sets.digest(arrays) == qm_sets.SOURCES[Path(file).name].sha256
    arrays["R"][100, 1] += 0.001
    assert qm_sets.digest(arrays) != qm_sets.SOURCES[Path(file).name].sha256
