"""Texts to a store: in order, in workers, from the cache, with every failure kept."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from rdkit import rdBase

import gtx.data.featurising as featurising
from gtx.data import featurise, featurise_stream
from gtx.molecules import Featuriser
from tests.molecules_for_tests import SMILES

TEXTS = [*SMILES, "C1CC", "", "not a molecule", "CO"]


def test_failures_are_kept_in_their_place() -> None:
    done = featurise(Featuriser(), TEXTS)
    assert done.good.tolist() == [*range(len(SMILES)), len(TEXTS) - 1]
    assert len(done.store) == len(done.good)
    assert [error is None for error in done.errors] == [smiles is not None for smiles in done.smiles]
    assert done.smiles[-1] == "CO"


@pytest.mark.slow
def test_workers_and_chunks_change_nothing() -> None:
    one = featurise(Featuriser(), TEXTS, workers=0)
    two = featurise(Featuriser(), TEXTS, workers=1, chunk=3)  # a process that is no fork
    assert one.errors == two.errors and one.smiles == two.smiles
    assert one.store.atoms.equal(two.store.atoms) and one.store.bonds.equal(two.store.bonds)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.usefixtures("forks")
def test_it_can_stop_at_the_first_error(workers: int, tmp_path: Path) -> None:
    texts = [*SMILES[:4], "C1CC", *SMILES * 10]
    done = featurise(Featuriser(), texts, workers=workers, chunk=2, cache=tmp_path, to_first_error=True)
    assert [error is None for error in done.errors] == [True] * 4 + [False, True] and len(done.store) == 5
    assert not list(tmp_path.iterdir())  # half an outcome is not kept
    assert len(featurise(Featuriser(), SMILES, workers=0, chunk=2, to_first_error=True).errors) == len(SMILES)


@pytest.mark.slow
@pytest.mark.usefixtures("forks")
def test_without_smiles_everything_else_is_the_same(tmp_path: Path) -> None:
    with_smiles = featurise(Featuriser(), TEXTS, workers=0, cache=tmp_path)
    for workers in (0, 2):
        without = featurise(Featuriser(), TEXTS, workers=workers, chunk=3, cache=tmp_path / str(workers), smiles=False)
        assert without.smiles == [None] * len(TEXTS)
        assert without.errors == with_smiles.errors and without.warnings == with_smiles.warnings
        for name in ("atoms", "bonds", "bond_codes", "descriptors"):
            one, other = getattr(without.store, name), getattr(with_smiles.store, name)
            torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True)
    assert not any(featurise(Featuriser(), TEXTS, cache=tmp_path, smiles=False).smiles)  # no word from the cache


@pytest.mark.usefixtures("forks")
def test_the_stream_draws_no_more_than_it_needs() -> None:
    drawn = []

    def chunks() -> object:
        for i in range(1000):
            drawn.append(i)
            yield [SMILES[0]], None

    stream = featurise_stream(Featuriser(), chunks(), workers=1, ahead=2)
    next(stream)
    assert len(drawn) <= 4


def test_the_cache_answers_for_the_same_content_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_the_cache_of_another_rdkit_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    featurise(Featuriser(), TEXTS, cache=tmp_path)
    monkeypatch.setattr(rdBase, "rdkitVersion", "1999.01.1")
    featurise(Featuriser(), TEXTS, cache=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


def damage(content: bytes, how: str) -> bytes:
    middle = len(content) // 2
    return {
        "empty": b"",
        "zeros at the end": content[:-500] + bytes(500),  # as after a power failure
        "one bit": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
    }[how]


@pytest.mark.parametrize("how", ["empty", "zeros at the end", "one bit"])
def test_a_damaged_cache_is_written_anew(how: str, tmp_path: Path) -> None:
    first = featurise(Featuriser(), TEXTS, cache=tmp_path)
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    file.write_bytes(damage(whole, how))
    again = featurise(Featuriser(), TEXTS, cache=tmp_path)
    assert again.errors == first.errors and again.store.checksum() == first.store.checksum()
    assert file.read_bytes() == whole and list(tmp_path.iterdir()) == [file]


def test_conformers_are_cached_with_their_failures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert first.warnings == again.warnings
    torch.testing.assert_close(again.store.positions, first.store.positions, equal_nan=True, rtol=0, atol=0)
    featurise(Featuriser(coordinates=True), texts, cache=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
