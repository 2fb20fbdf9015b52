"""A store cuts PyG batches out of flat tensors and loses nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data

from gtx.data import MoleculeStore
from gtx.molecules import Featuriser
from tests.molecules_for_tests import SMILES, store


@pytest.fixture(scope="module")
def molecules() -> MoleculeStore:
    y = np.arange(2.0 * len(SMILES)).reshape(-1, 2)
    y[3, 1] = np.nan
    return store().with_targets(y)


def test_a_batch_is_what_pyg_would_build(molecules: MoleculeStore) -> None:
    index = torch.tensor([4, 0, 2, 1, 7])
    featuriser = Featuriser()
    single = []
    for i in index.tolist():
        m = featuriser(SMILES[i])
        single.append(
            Data(
                x=torch.from_numpy(m.atoms).long(),
                edge_index=torch.from_numpy(m.bonds).long(),
                edge_attr=torch.from_numpy(m.bond_codes).long(),
                u=torch.from_numpy(m.descriptors)[None],
                y=molecules.y[i][None].float(),
            )
        )
    expected, batch = Batch.from_data_list(single), molecules.batch(index)
    assert isinstance(batch, Batch)
    assert batch.num_graphs == 5 and batch.row.equal(index)
    for name in ("x", "edge_index", "edge_attr", "u", "y", "batch", "ptr"):
        torch.testing.assert_close(batch[name], expected[name], equal_nan=True, rtol=0, atol=0)


def test_to_data_list_gives_the_molecules_back(molecules: MoleculeStore) -> None:
    index = torch.tensor([4, 0, 2, 1])
    parts = molecules.batch(index).to_data_list()
    again = Batch.from_data_list(parts)
    for i, part in zip(index.tolist(), parts, strict=True):
        alone = molecules.batch(torch.tensor([i]))
        for name in ("x", "edge_index", "edge_attr", "u", "y"):
            torch.testing.assert_close(part[name], alone[name], equal_nan=True, rtol=0, atol=0)
    assert again.edge_index.equal(molecules.batch(index).edge_index)


def test_save_open_and_identical_bytes(molecules: MoleculeStore, tmp_path: Path) -> None:
    molecules.save(tmp_path / "one"), molecules.save(tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    again = MoleculeStore.open(tmp_path / "one")
    index = torch.arange(len(molecules))
    assert again.batch(index).x.equal(molecules.batch(index).x) and again.positions is None


def test_subset(molecules: MoleculeStore) -> None:
    part = molecules.subset(np.array([6, 5]))
    assert part.sizes.tolist() == molecules.sizes[[6, 5]].tolist()
    assert part.batch(torch.tensor([1])).x.equal(molecules.batch(torch.tensor([5])).x)


def test_an_empty_batch(molecules: MoleculeStore) -> None:
    batch = molecules.batch(torch.zeros(0, dtype=torch.long))
    assert batch.num_graphs == 0 and batch.x.shape == (0, molecules.atoms.shape[1])


def test_targets_of_the_wrong_length_are_named(molecules: MoleculeStore) -> None:
    with pytest.raises(ValueError, match=r"expected targets \[9, T\], one row per molecule, got \[3, 1\]"):
        molecules.with_targets(np.zeros((3, 1)))


def test_positions_travel_with_their_atoms() -> None:
    from gtx.molecules import featurise_texts

    rng = np.random.default_rng(0)
    texts, at = ["CCO", "c1ccccc1"], [rng.normal(size=(3, 3)), rng.normal(size=(6, 3))]
    made = MoleculeStore.from_flat([featurise_texts(Featuriser(coordinates=True), texts, at)])
    np.testing.assert_allclose(made.batch(torch.tensor([1])).pos, at[1], rtol=1e-6)


def test_unknown_positions_stay_unknown(tmp_path: Path) -> None:
    made = store(["CCO", "[Na+].CC(=O)[O-]", "C[C@]12C[C@@]1(C)C2"], conformers=True)
    known = [True] * 3 + [False] + [True] * 4 + [False] * 6
    made.save(tmp_path / "store")
    for kept in (made, MoleculeStore.open(tmp_path / "store"), made.to("cpu"), made.subset(torch.arange(3))):
        assert kept.positions.dtype == torch.float32 and kept.positions.isnan().all(dim=1).logical_not().equal(
            torch.tensor(known)
        )
    for batch in (made.batch(torch.arange(3)), made.batch(torch.arange(3)).to("cpu"), made.batch([0, 1, 2])):
        assert batch.pos.double().isfinite().all(dim=1).tolist() == known
    parts = made.batch(torch.tensor([2, 0])).to_data_list()
    assert parts[0].pos.isnan().all() and parts[1].pos.equal(made.positions[:3])
