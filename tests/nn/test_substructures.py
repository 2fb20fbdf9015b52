"""Substructures are counted in any order, told apart as RDKit does, and used where training has enough of them."""

from __future__ import annotations

import pytest
import torch
from rdkit import Chem
from rdkit.Chem.rdFingerprintGenerator import AdditionalOutput, GetMorganGenerator

from gtx.molecules import Featuriser
from gtx.nn import SubstructureCountEmbedding
from tests.molecules_for_tests import SMILES, renumbered, store, whole_batch

FEATURISER = Featuriser()
PLAIN = FEATURISER.constitution


def counts(smiles: str, **arguments: object) -> torch.Tensor:
    return SubstructureCountEmbedding(4, **PLAIN, **arguments).counts(whole_batch([smiles]))[0]


def test_counts_by_hand() -> None:
    """Propane: CH3 twice and CH2 once; within one bond the same; within two all three see the whole molecule."""
    assert counts("CCC", radius=0)[counts("CCC", radius=0) > 0].sort().values.tolist() == [1, 2]
    assert counts("CCC", radius=2)[counts("CCC", radius=2) > 0].sort().values.tolist() == [1, 1, 1, 2, 2, 2]


def test_every_atom_is_counted_once_a_radius() -> None:
    batch = whole_batch()
    sizes = batch.batch.bincount(minlength=batch.num_graphs)
    assert torch.equal(SubstructureCountEmbedding(4, radius=3).counts(batch).sum(1), 4 * sizes)


def test_neither_order_nor_batch_mates_matter() -> None:
    batch, module = whole_batch(), SubstructureCountEmbedding(4)
    found = module.counts(batch)
    assert torch.equal(module.counts(renumbered(batch)[0]), found)
    assert torch.equal(torch.cat([module.counts(whole_batch([text])) for text in SMILES]), found)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("C[C@H](F)Cl", "C[C@@H](F)Cl", True),
        ("F/C=C/F", "F/C=C\\F", True),
        ("CCO", "COC", False),
        ("CC(C)CC", "CCCCC", False),
        ("C1CCCCC1", "C1CCCCCC1", False),
    ],
)
def test_constitution_alone_tells_apart(one: str, other: str, same: bool) -> None:
    assert torch.equal(counts(one), counts(other)) is same


def test_bonds_tell_apart_what_atoms_do_not() -> None:
    ethane, ethene = whole_batch(["CC"]), whole_batch(["C=C"])
    for bonds, same in ((PLAIN["bonds"], False), ([], True)):
        by_element = SubstructureCountEmbedding(4, atoms=[0], bonds=bonds)
        assert torch.equal(by_element.counts(ethane), by_element.counts(ethene)) is same


def test_like_labels_are_like_environments_of_morgan() -> None:
    """RDKit's identifier of what lies around an atom is a function of its label; the label may know more."""
    texts = [text for text in SMILES if "[2H]" not in text]  # the isotope's hydrogen is an atom of its own
    labels = SubstructureCountEmbedding(4, **PLAIN).labels(whole_batch(texts))
    generator = GetMorganGenerator(radius=2, includeRedundantEnvironments=True)
    environment: dict[int, tuple[int, int]] = {}
    start = 0
    for text in texts:
        mol, seen = Chem.MolFromSmiles(text), AdditionalOutput()
        seen.AllocateBitInfoMap()
        generator.GetSparseCountFingerprint(mol, additionalOutput=seen)
        for identifier, places in seen.GetBitInfoMap().items():
            for atom, radius in places:
                label = int(labels[radius, start + atom])
                assert environment.setdefault(label, (identifier, radius)) == (identifier, radius)
        start += mol.GetNumAtoms()
    assert start == labels.shape[1] and len(environment) > 60


def test_rare_ones_are_left_out() -> None:
    texts = ["CCO", "CCCO", "CCN", "CCF"]
    module = SubstructureCountEmbedding(4, **PLAIN).eval()
    module.observe(store(texts))
    assert torch.equal(module.used, (module.counts(whole_batch(texts)) > 0).sum(0) >= 3)
    assert 0 < module.used.sum() < 5
    assert not module(whole_batch(["BrBr"])).any()
    assert module(whole_batch(["CCO"])).any()


def test_the_embedding_is_linear_in_log_counts() -> None:
    module, batch = SubstructureCountEmbedding(4).double().eval(), whole_batch()
    expected = torch.log1p(module.counts(batch).double()) @ module.embedding.weight.T
    torch.testing.assert_close(module(batch), expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("wrong", [{"radius": -1}, {"radius": 21}, {"folded": 0}])
def test_counts_that_make_no_sense_are_refused(wrong: dict) -> None:
    (name, value), *_ = wrong.items()
    with pytest.raises(ValueError, match=f"expected a radius from 0 to 20 and at least 1 folded, got .*{name}={value}"):
        SubstructureCountEmbedding(8, **wrong)
