"""Molecules in space: bonds perceived, SchNet and gtx on the same rows, and what both must keep."""

from __future__ import annotations

import io
import tarfile
import zipfile
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


def test_hydrogens_of_real_sets_have_one_bond(shared_data: Path) -> None:
    for file in ("qm9/qm9_3d_3000.npz", "qm7/qm7_qml_7101.npz"):
        with np.load(shared_data / file) as held:
            sizes = held["num_atoms"][::10]
            starts = np.concatenate([[0], np.cumsum(held["num_atoms"], dtype=int)])
            own = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in range(0, len(held["num_atoms"]), 10)])
            store = qm_sets.store_of(sizes, held["Z"][own], held["R"][own])
        degree = torch.bincount(whole(store).edge_index[0], minlength=len(store.atoms))
        assert (degree[store.atoms[:, 0] == 1] == 1).double().mean() == 1
        assert degree.min() >= 1 and degree[store.atoms[:, 0] == 6].max() <= 4


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


def test_pairs_within_the_cutoff_are_all_of_them_and_no_others(made: MoleculeStore) -> None:
    batch = whole(made)
    edges, apart = coordinate_models.WithinCutoff(3.0)(batch.pos, batch.batch)
    distance = torch.cdist(batch.pos, batch.pos)
    near = (distance < 3.0) & (batch.batch[:, None] == batch.batch) & ~torch.eye(len(distance), dtype=torch.bool)
    assert (
        set(map(tuple, edges.T.tolist())) == set(map(tuple, near.nonzero().tolist())) and edges.shape[1] == near.sum()
    )
    assert torch.allclose(apart, distance[edges[0], edges[1]], atol=1e-5)


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


def test_the_graph_transformer_is_a_sum_over_atoms(made: MoleculeStore) -> None:
    net, batch = model("gtx"), whole(made)
    net.observe(made)
    each = net.model.head(net.model.nodes(batch)) / (len(made.atoms) / len(made))
    for m in range(len(made)):
        assert net(batch)[m].item() == pytest.approx(each[batch.batch == m].sum().item(), rel=1e-4, abs=1e-5)


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


SYMBOLS = {1: "H", 6: "C", 7: "N", 8: "O", 9: "F", 16: "S"}


def held(shared_data: Path, name: str) -> dict[str, np.ndarray]:
    with np.load(shared_data / name) as arrays:
        return dict(arrays)


def cut(arrays: dict[str, np.ndarray], count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Atomic numbers and positions of the first molecules."""
    ends = np.cumsum(arrays["num_atoms"].astype(int))[: count - 1]
    last = int(arrays["num_atoms"][:count].astype(int).sum())
    return list(zip(np.split(arrays["Z"][:last], ends), np.split(arrays["R"][:last], ends), strict=True))


def as_qml(arrays: dict[str, np.ndarray], count: int) -> bytes:
    """The first molecules as qml's archive has them, among files of other kinds."""
    files = {"qml-8bb833c/tests/data/other.txt": "no molecule", "qml-8bb833c/tests/qm7/readme": "no molecule either"}
    heats = ""
    labels = zip(arrays["xyz_name"][:count], arrays["energy_pbe0"][:count], strict=True)
    for (numbers, places), (name, energy) in zip(cut(arrays, count), labels, strict=True):
        atoms = [f" {SYMBOLS[z]} {x:.6f} {y:.6f} {w:.6f}\n" for z, (x, y, w) in zip(numbers, places, strict=True)]
        files[f"qml-8bb833c/tests/qm7/{name}"] = f"{len(atoms)}\ncharge = 0\n{''.join(atoms)}"
        heats += f"{name} {energy} -1.0\n"
    files["qml-8bb833c/tests/data/hof_qm7.txt"] = heats
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, text in reversed(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            tar.addfile(entry, io.BytesIO(text.encode()))
    return out.getvalue()


def as_moleculenet(arrays: dict[str, np.ndarray], count: int) -> bytes:
    """The first molecules as MoleculeNet's archive has them, each followed by one that is not taken."""
    names = arrays["target_names"].tolist()
    sdf, table = "", ",".join(["mol_id", *names]) + "\n"
    labels = zip(arrays["mol_id"][:count], arrays["targets"][:count], strict=True)
    for (numbers, places), (name, targets) in zip(cut(arrays, count), labels, strict=True):
        for shift in (0, 1):
            own = f"gdb_{int(name[4:]) + shift}"
            table += ",".join([own, *(repr(float(value) + shift) for value in targets)]) + "\n"
            sdf += f"{own}\n  -OEChem-\n\n{len(numbers):3d}  1  0     0  0\n"
            for z, (x, y, w) in zip(numbers, places + shift, strict=True):
                sdf += f"{x:10.4f}{y:10.4f}{w:10.4f} {SYMBOLS[z]:<3} 0  0\n"
            sdf += "  1  2  1  0  0  0  0\nM  END\n$$$$\n"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as files:
        files.writestr("gdb9.sdf", sdf)
        files.writestr("gdb9.sdf.csv", table)
    return out.getvalue()


@pytest.mark.parametrize(
    ("file", "pack", "read"),
    [
        ("qm7/qm7_qml_7101.npz", as_qml, qm_sets.qm7),
        ("qm9/qm9_3d_3000.npz", as_moleculenet, qm_sets.qm9),
    ],
)
def test_official_files_become_the_arrays(shared_data: Path, file: str, pack, read) -> None:
    arrays, count = held(shared_data, file), 30
    made = read(pack(arrays, count))
    atoms = int(arrays["num_atoms"][:count].sum())
    for name, found in made.items():
        whole = arrays[name] if name == "target_names" else arrays[name][: atoms if name in "ZR" else count]
        assert found.dtype.kind == whole.dtype.kind and np.array_equal(found, whole), name
    assert len(made["num_atoms"]) == count


@pytest.mark.parametrize("file", ["qm7/qm7_qml_7101.npz", "qm9/qm9_3d_3000.npz"])
def test_the_digest_is_of_the_files_at_hand_and_sees_an_atom_moved(shared_data: Path, file: str) -> None:
    arrays = held(shared_data, file)
    assert qm_sets.digest(arrays) == qm_sets.SOURCES[Path(file).name].sha256
    arrays["R"][100, 1] += 0.001
    assert qm_sets.digest(arrays) != qm_sets.SOURCES[Path(file).name].sha256
