"""Substructures are counted in any order, told apart as RDKit does, and used where training has enough of them."""

from __future__ import annotations

import pytest
import torch
from rdkit import Chem
from rdkit.Chem.rdFingerprintGenerator import AdditionalOutput, GetMorganGenerator

from gtx.molecules import Featuriser
from gtx.nn import SubstructureCountEmbedding
from tests.molecules_for_tests import SMILES, store, whole_batch

FEATURISER = Featuriser()
PLAIN = FEATURISER.constitution


def counts(smiles: str, **arguments: object) -> torch.Tensor:
    return SubstructureCountEmbedding(4, **PLAIN, **arguments).counts(whole_batch([smiles]))[0]


def test_counts_by_hand() -> None:
    """Propane: CH3 twice and CH2 once; within one bond the same; within two all three see the whole molecule."""
    assert counts("CCC", radius=0)[counts("CCC", radius=0) > 0].sort().values.tolist() == [1, 2]
    assert counts("CCC", radius=2)[counts("CCC", radius=2) > 0].sort().values.tolist() == [1, 1, 1, 2, 2, 2]


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


@pytest.mark.parametrize("wrong", [{"radius": -1}, {"radius": 21}, {"folded": 0}])
def test_counts_that_make_no_sense_are_refused(wrong: dict) -> None:
    (name, value), *_ = wrong.items()
    with pytest.raises(ValueError, match=f"expected a radius from 0 to 20 and at least 1 folded, got .*{name}={value}"):
        SubstructureCountEmbedding(8, **wrong)
