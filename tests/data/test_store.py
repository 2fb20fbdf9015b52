"""The store of molecules, and how it is filled."""

import itertools
import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch
from rdkit import rdBase
from torch_geometric.data import Batch

import gtx.data.featurising as featurising
from gtx.base.errors import InputError
from gtx.data import MoleculeStore, featurise
from gtx.molecules import ATOM_FEATURE_VALUES, Featuriser
from tests.molecules_for_tests import SMILES, store


@pytest.fixture(scope="module")
def molecules() -> MoleculeStore:
    y = np.arange(2.0 * len(SMILES)).reshape(-1, 2)
    y[3, 1] = np.nan
    made = store().with_targets(y)
    rows = torch.arange(made.bonds.shape[1] // 2).repeat_interleave(2)[:, None] / 7
    return replace(made, atom_features=torch.rand(len(made.atoms), 2), bond_features=rows)


def test_to_data_list_gives_the_molecules_back(molecules: MoleculeStore) -> None:
    index = torch.tensor([4, 0, 2, 1])
    parts = molecules.batch(index).to_data_list()
    again = Batch.from_data_list(parts)
    for i, part in zip(index.tolist(), parts, strict=True):
        alone = molecules.batch(torch.tensor([i]))
        for name in ("x", "edge_index", "edge_attr", "u", "y", "atom_features", "bond_features"):
            torch.testing.assert_close(part[name], alone[name], equal_nan=True, rtol=0, atol=0)
    assert again.edge_index.equal(molecules.batch(index).edge_index)


def test_the_columns_keep_their_names_wherever_molecules_go(molecules: MoleculeStore, tmp_path) -> None:
    molecules.save(tmp_path / "named"), replace(molecules, atom_columns=()).save(tmp_path / "nameless")
    assert molecules.atom_columns == tuple(ATOM_FEATURE_VALUES)
    opened, part = MoleculeStore.open(tmp_path / "named"), molecules.subset(np.array([6, 5]))
    for other in (opened, part, molecules.to("cpu"), pickle.loads(pickle.dumps(molecules))):
        assert other.atom_columns == molecules.atom_columns
    assert MoleculeStore.open(tmp_path / "nameless").atom_columns == ()
    assert opened.bond_features.equal(molecules.bond_features) and opened.atom_features.equal(molecules.atom_features)


def test_targets_of_the_wrong_length_are_named(molecules: MoleculeStore) -> None:
    with pytest.raises(ValueError, match=r"expected targets \[9, T\], one row per molecule, got \[3, 1\]"):
        molecules.with_targets(np.zeros((3, 1)))
    with pytest.raises(ValueError, match="expected stores of the same tensors, got some without y"):
        MoleculeStore.join([store(), molecules])


LARGE = [*SMILES, "C" * 300, "[Na+].CC(=O)[O-]", "O"]


@pytest.fixture(scope="module")
def stores(tmp_path_factory) -> list[MoleculeStore]:
    """One with targets and positions, one without, one mapped from a file, one whose tensors have gaps."""
    bare = store(LARGE)
    generator = torch.Generator().manual_seed(0)
    y = torch.randn(len(LARGE), 2, generator=generator, dtype=torch.float64)
    y[3] = torch.nan
    positions = torch.randn(len(bare.atoms), 3, generator=generator)
    full = replace(bare.with_targets(y), positions=positions)
    file = tmp_path_factory.mktemp("stores") / "store"
    full.save(file)
    gaps = replace(full, atoms=full.atoms.T.contiguous().T, bonds=full.bonds.T.contiguous().T)
    assert not gaps.atoms.is_contiguous()
    return [bare, full, MoleculeStore.open(file), gaps]


@pytest.mark.parametrize("index", [[4, 0, 2, 1, 7], [], [1], [2], [9], [3, 3, 10, 3], list(range(12))[::-1]], ids=str)
def test_a_batch_has_the_rows_of_its_molecules_one_after_the_other(stores, index) -> None:
    for each in stores:
        batch, first = each.batch(index), 0
        for place, molecule in enumerate(index):
            atoms = slice(each.atom_ptr[molecule], each.atom_ptr[molecule + 1])
            bonds = slice(each.bond_ptr[molecule], each.bond_ptr[molecule + 1])
            mine, edges = batch.batch == place, batch.batch[batch.edge_index[0]] == place
            assert batch.x[mine].equal(each.atoms[atoms].long()) and batch.u[place].equal(each.descriptors[molecule])
            assert (batch.edge_index[:, edges] - first).equal(each.bonds[:, bonds].long())
            assert batch.edge_attr[edges].equal(each.bond_codes[bonds].long())
            if each.y is not None:
                assert batch.pos[mine].equal(each.positions[atoms])
                assert batch.y[place].nan_to_num().equal(each.y[molecule].float().nan_to_num())
            first += int(mine.sum())
        assert batch.ptr[-1] == first == len(batch.x) and batch.num_graphs == len(index)
        assert isinstance(batch, Batch) and batch.row.tolist() == index


def test_an_index_is_a_list_of_whole_numbers_of_molecules_that_are_there(molecules: MoleculeStore) -> None:
    for index in ([True] * 9, [0.0, 1.7], 1):
        for use in molecules.batch, molecules.subset:
            with pytest.raises(ValueError, match=r"expected indices of molecules, int64 \[B\], got torch"):
                use(np.array(index))
    for wrong, use in itertools.product((9, -1), (molecules.batch, molecules.subset)):
        with pytest.raises(IndexError, match=f"expected molecules from 0 to 8, got {wrong}"):
            use([0, wrong, 2])
    assert len(molecules.subset([])) == len(molecules.batch([]).row) == len(molecules.batch(slice(3, 1)).row) == 0
    assert molecules.batch(slice(2, None, 3)).row.tolist() == [2, 5, 8] and len(molecules.subset(slice(-2, None))) == 2


def test_what_is_no_list_of_molecules_is_said() -> None:
    for texts, coordinates, message in (
        ("CCO", None, "expected a list of SMILES or mol blocks, got one text"),
        (["C", None], None, "got None at 1, counted from 0"),
        (["C", "C"], [np.zeros(3)], "expected coordinates of 2 molecules, got 1"),
    ):
        with pytest.raises(InputError, match=message):
            featurise(Featuriser(coordinates=True), texts, coordinates)


# --- Texts to a store: in order, in workers, from the cache, with every failure kept.


TEXTS = [*SMILES, "C1CC", "", "not a molecule", "CO"]


@pytest.mark.slow
def test_workers_and_chunks_change_nothing() -> None:
    one = featurise(Featuriser(), TEXTS, workers=0)
    two = featurise(Featuriser(), TEXTS, workers=1, chunk=3)  # a process that is no fork
    assert one.errors == two.errors and one.smiles == two.smiles
    assert one.store.atoms.equal(two.store.atoms) and one.store.bonds.equal(two.store.bonds)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.usefixtures("forks")
def test_it_can_stop_at_the_first_error(workers: int, tmp_path) -> None:
    texts = [*SMILES[:4], "C1CC", *SMILES * 10]
    done = featurise(Featuriser(), texts, workers=workers, chunk=2, cache=tmp_path, to_first_error=True)
    assert [error is None for error in done.errors] == [True] * 4 + [False, True] and len(done.store) == 5
    assert not list(tmp_path.iterdir())  # half an outcome is not kept
    assert len(featurise(Featuriser(), SMILES, workers=0, chunk=2, to_first_error=True).errors) == len(SMILES)


def test_the_cache_answers_for_the_same_content_alone(tmp_path, monkeypatch) -> None:
    first = featurise(Featuriser(), TEXTS, cache=tmp_path)
    (file,) = tmp_path.iterdir()
    before = file.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(featurising, "featurise_stream", lambda *_, **__: pytest.fail("the cache was not used"))
        again = featurise(Featuriser(), TEXTS, cache=tmp_path)
    assert again.errors == first.errors and again.smiles == first.smiles and again.warnings == first.warnings
    assert again.store.descriptors.equal(first.store.descriptors)
    featurise(Featuriser(max_atoms=20), TEXTS, cache=tmp_path)
    featurise(Featuriser(), TEXTS[1:], cache=tmp_path)
    assert len(list(tmp_path.iterdir())) == 3
    file.unlink()
    featurise(Featuriser(), TEXTS, cache=tmp_path)
    assert file.read_bytes() == before  # identical bytes on a re-run
    monkeypatch.setattr(rdBase, "rdkitVersion", "1999.01.1")
    featurise(Featuriser(), TEXTS, cache=tmp_path)
    assert len(list(tmp_path.iterdir())) == 4


def test_a_damaged_cache_is_written_anew(tmp_path) -> None:
    first = featurise(Featuriser(), TEXTS, cache=tmp_path)
    (file,) = tmp_path.iterdir()
    whole, middle = file.read_bytes(), file.stat().st_size // 2
    one_bit = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
    for damaged in (b"", whole[:-500] + bytes(500), one_bit):  # zeros at the end are left by a power failure
        file.write_bytes(damaged)
        again = featurise(Featuriser(), TEXTS, cache=tmp_path)
        assert again.errors == first.errors and again.store.checksum() == first.store.checksum()
        assert file.read_bytes() == whole and list(tmp_path.iterdir()) == [file]


def test_conformers_are_cached_with_their_failures(tmp_path, monkeypatch) -> None:
    texts = ["CCO", "C[C@]12C[C@@]1(C)C2", "C1CC", "[Na+].CC(=O)[O-]"]
    first = featurise(Featuriser(conformers=True), texts, cache=tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(featurising, "featurise_stream", lambda *_, **__: pytest.fail("the cache was not used"))
        again = featurise(Featuriser(conformers=True), texts, cache=tmp_path)
    for done in (first, again):
        known = done.store.positions.isfinite().all(dim=1)
        assert known.tolist() == [True] * 3 + [False] * 6 + [False] + [True] * 4  # atoms of the three that can be read
        assert done.warnings[1][-1].startswith("no conformer could be made") and not done.errors[1]
        assert done.errors[2] and not done.warnings[0]
        parts = done.store.subset(torch.tensor([2, 0])).batch().to_data_list()
        assert [part.pos.isfinite().all(dim=1).tolist() for part in parts] == [known[9:].tolist(), [True] * 3]
    assert first.warnings == again.warnings
    torch.testing.assert_close(again.store.positions, first.store.positions, equal_nan=True, rtol=0, atol=0)
    featurise(Featuriser(coordinates=True), texts, cache=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
    positions = np.zeros(3), np.zeros(6)
    for order in positions, positions[::-1]:
        featurise(Featuriser(coordinates=True), ["C", "C"], order, cache=tmp_path)
    assert len(list(tmp_path.iterdir())) == 4
