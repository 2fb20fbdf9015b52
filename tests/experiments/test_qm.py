"""Molecules in space: bonds perceived, SchNet and gtx on the same rows, and what both must keep."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch

from experiments import archive, coordinate_models, qm, qm_files, qm_sets
from experiments.model_comparison import difference_text
from experiments.summary import rows
from gtx.data import MoleculeStore
from gtx.models import ARCHITECTURES
from gtx.tasks import composition
from tests.molecules_for_tests import renumbered
from tests.molecules_for_tests import store as read


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Training knows its models here, and in no other test."""
    for name, architecture in coordinate_models.MODELS.items():
        monkeypatch.setitem(ARCHITECTURES, name, architecture)


SMILES = [
    *("C", "CCO", "C#N", "c1ccccc1O", "CC(=O)N", "C1CC1C", "FC(F)F", "O=S(=O)(C)C", "CC(C)(C)C", "OO"),
    *("NCC(=O)O", "C1=CC2CC2C1", "CN(C)C", "N#CC#C", "c1ccsc1", "C=C=C"),
]
SMALL = {
    "space": {"channels": 16, "layers": 1, "heads": 2, "pair_channels": 8, "moments": 4},
    "schnet": {"hidden_channels": 16},
}
SMALL["schnet"] |= {"num_filters": 16, "num_interactions": 2, "num_gaussians": 10}
SMALL |= {f"atoms_{name}": {"channels": 16, "layers": 2, "heads": 2} for name in coordinate_models.FAMILY}


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
    return qm_sets.store(arrays["num_atoms"], arrays["Z"], arrays["R"])


def model(name: str, extensive: bool = True) -> torch.nn.Module:
    torch.manual_seed(0)
    return coordinate_models.MODELS[name].make(1, **qm_sets.SIZES, extensive=extensive, **SMALL[name]).eval()


def whole(store: MoleculeStore) -> Batch:
    return store.batch(torch.arange(len(store)))


def test_bonds_by_distance_are_the_bonds(conformers: MoleculeStore, made: MoleculeStore) -> None:
    def bonds(store: MoleculeStore) -> set[tuple[int, int]]:
        return set(map(tuple, whole(store).edge_index.T.tolist()))

    assert bonds(made) == bonds(conformers) and torch.equal(made.bond_ptr, conformers.bond_ptr)
    assert (made.bond_codes == 1).all()


def test_the_composition_counts_every_atom(made: MoleculeStore) -> None:
    counts = composition(made)
    assert counts[0, [1, 6]].tolist() == [4, 1] and counts[7, [1, 6, 8, 16]].tolist() == [6, 2, 2, 1]
    assert torch.equal(counts.sum(1), made.sizes.double())


def test_an_element_without_a_radius_is_named() -> None:
    with pytest.raises(ValueError, match=r"expected elements out of \[1, .*\], got \[79\]"):
        qm_sets.store(np.array([1]), np.array([79]), np.zeros((1, 3)))


def test_hydrogens_of_real_sets_have_one_bond(shared_data: Path) -> None:
    for file in ("qm9/qm9_3d_3000.npz", "qm7/qm7_qml_7101.npz"):
        with np.load(shared_data / file) as held:
            sizes = held["num_atoms"][::10]
            starts = np.concatenate([[0], np.cumsum(held["num_atoms"], dtype=int)])
            own = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in range(0, len(held["num_atoms"]), 10)])
            store = qm_sets.store(sizes, held["Z"][own], held["R"][own])
        degree = torch.bincount(whole(store).edge_index[0], minlength=len(store.atoms))
        assert (degree[store.atoms[:, 0] == 1] == 1).double().mean() == 1
        assert degree.min() >= 1 and degree[store.atoms[:, 0] == 6].max() <= 4


def test_the_targets_are_those_of_the_files(shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GTX_DATA", str(shared_data))
    for name, low, high in (("qm9-gap", 500, 20_000), ("qm9-u0", -3_000, -100), ("qm7-energy", -3_000, -300)):
        found = qm_sets.molecules(name, 1)
        assert low < found.store.y.min() and found.store.y.max() < high, name
        assert np.array_equal(np.sort(np.concatenate(list(found.split.values()))), np.arange(len(found.store)))
        assert [len(rows) for rows in found.split.values()][1:] == [round(len(found.store) / 10)] * 2
        again, other = qm_sets.molecules(name, 1), qm_sets.molecules(name, 2)
        assert np.array_equal(found.split["test"], again.split["test"])
        assert not np.array_equal(found.split["test"], other.split["test"])


def test_pairs_within_the_cutoff_are_all_of_them_and_no_others(made: MoleculeStore) -> None:
    batch = whole(made)
    edges, apart = coordinate_models.WithinCutoff(3.0)(batch.pos, batch.batch)
    distance = torch.cdist(batch.pos, batch.pos)
    near = (distance < 3.0) & (batch.batch[:, None] == batch.batch) & ~torch.eye(len(distance), dtype=torch.bool)
    assert (
        set(map(tuple, edges.T.tolist())) == set(map(tuple, near.nonzero().tolist())) and edges.shape[1] == near.sum()
    )
    assert torch.allclose(apart, distance[edges[0], edges[1]], atol=1e-5)


@pytest.mark.parametrize("name", ["space", "schnet", "atoms_torchmd_net"])
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


def test_schnet_adds_up_what_is_far_apart_or_takes_the_mean(arrays: dict[str, np.ndarray]) -> None:
    own = slice(0, 5)  # methane
    z, r = arrays["Z"][own], arrays["R"][own]
    one = qm_sets.store(np.array([5]), z, r)
    two = qm_sets.store(np.array([10]), np.tile(z, 2), np.concatenate([r, r + 100.0]))
    for extensive, factor in ((True, 2), (False, 1)):
        net = model("schnet", extensive)
        assert net(whole(two)).item() == pytest.approx(factor * net(whole(one)).item(), rel=1e-4)


def test_the_graph_transformer_is_a_sum_over_atoms(made: MoleculeStore) -> None:
    net, batch = model("space"), whole(made)
    net.observe(made)
    each = net.head(net.nodes(batch)) / (len(made.atoms) / len(made))
    for m in range(len(made)):
        assert net(batch)[m].item() == pytest.approx(each[batch.batch == m].sum().item(), rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("name", coordinate_models.FAMILY)
def test_a_named_model_predicts_by_atoms(name: str, made: MoleculeStore) -> None:
    batch = whole(made)
    sums, means = (model(f"atoms_{name}", extensive) for extensive in (True, False))
    sums.observe(made)
    means.observe(made)
    sizes = made.sizes[:, None].float()
    assert torch.allclose(sums(batch) * sizes.mean(), means(batch) * sizes, rtol=1e-4, atol=1e-4)
    sums.train()(batch).sum().backward()
    used = [key for key, p in sums.named_parameters() if p.grad is not None]
    assert len(used) >= len(list(sums.parameters())) - 2 and "model.head.0.weight" in used


def test_schnet_predicts_one_number() -> None:
    with pytest.raises(ValueError, match="expected out_channels 1, got 2"):
        coordinate_models.schnet(2, **qm_sets.SIZES, extensive=True)


@pytest.fixture
def folder(arrays: dict[str, np.ndarray], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of data sets with a small QM7: the molecules several times, a little distorted."""
    random, file = np.random.default_rng(0), tmp_path / "data" / qm_sets.SOURCES["qm7-energy"].file
    file.parent.mkdir(parents=True)
    shaken = {"num_atoms": np.tile(arrays["num_atoms"], 4), "Z": np.tile(arrays["Z"], 4)}
    shaken["R"] = np.tile(arrays["R"], (4, 1)) + random.normal(scale=0.02, size=(4 * len(arrays["R"]), 3))
    energy = -100.0 * np.tile(arrays["num_atoms"], 4) + random.normal(size=4 * len(SMILES))
    np.savez(file, energy_pbe0=energy, **shaken)
    monkeypatch.setenv("GTX_DATA", str(tmp_path / "data"))
    monkeypatch.setitem(qm.SETTINGS, "epochs", 2)
    monkeypatch.setitem(qm.MODELS, "gtx", {"name": "space", "arguments": SMALL["space"]})
    monkeypatch.setitem(qm.MODELS, "schnet", {"name": "schnet", "arguments": SMALL["schnet"]})
    return tmp_path


def test_both_models_are_measured_on_the_same_rows(folder: Path, capsys: pytest.CaptureFixture) -> None:
    words = ["--sets", "qm7-energy", "--splits", "1", "--here", "--no-progress", "--models", "gtx", "schnet"]
    words += ["--out", str(folder / "results"), "--runs", str(folder / "runs")]
    assert qm.main(words) == 0
    assert capsys.readouterr().out.count("test mae") == 2
    own, other = archive.predicted_runs(folder / "results")
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
    monkeypatch.setitem(qm_files.SOURCES, "qm7_qml_7101.npz", (tmp_path / "nothing").as_uri())
    words = ["--sets", "qm7-energy", "--models", "gtx", "--splits", "0", "--here"]
    assert qm.main([*words, "--out", str(tmp_path), "--runs", str(tmp_path)]) == 1
    told = capsys.readouterr().err.splitlines()
    assert told[0].startswith(f"qm7-energy gtx-0: {tmp_path}/qm7/qm7_qml_7101.npz is not there")
    where = f"--out {tmp_path} --runs {tmp_path}"
    assert told[1] == f"failed: python -m experiments.qm --sets qm7-energy --models gtx --splits 0 {where}"
