"""Atoms of the same ring are those RDKit says, but for the rings where the docstring says they differ."""

from __future__ import annotations

import pytest
import torch
from rdkit import Chem
from torch_geometric.data import Data

from gtx.encodings import SameRing
from gtx.encodings import atoms_and_bonds as same_ring
from gtx.graph import CompleteGraph
from tests.molecules_for_tests import RINGS, SMILES

FUSED_ON_EVERY_BOND = "C1C23CC24CC42CC24CC42CC132"  # cyclohexane, a cyclopropane on each bond
DRUG_LIKE = [
    *SMILES,
    *RINGS,
    "CN1CC[C@]23c4c5ccc(O)c4O[C@H]2[C@@H](O)C=C[C@H]3[C@H]1C5",  # morphine
    "C[C@]12CC[C@H]3[C@@H](CCc4cc(O)ccc34)[C@@H]1CC[C@@H]2O",  # estradiol
    "CC1(C)SC2C(NC(=O)Cc3ccccc3)C(=O)N2C1C(=O)O",  # penicillin G
    "CCC1OC(=O)C(C)C(O)C(C)C(O)C(C)(O)CC(C)C(=O)C(C)C(O)C1(C)O",  # a macrolide's ring of 14
    "C1CCCCCCCCCCC1",  # a ring of 12
    "C1CC2CCC1CC2",  # three rings, of which two suffice
    "C1CCCCc2ccc(cc2)CCCCC1",  # para-cyclophane: round either side of the phenylene
    "C1C2CC3CC1CC(C2)C3",  # adamantane
    "c1cc2ccc3ccc4ccc5ccc6ccc1c7c2c3c4c5c67",  # coronene
]


def rdkit_says(smiles: str, largest: int) -> torch.Tensor:
    molecule = Chem.MolFromSmiles(smiles)
    same = torch.zeros(molecule.GetNumAtoms(), molecule.GetNumAtoms(), dtype=torch.long)
    for ring in molecule.GetRingInfo().AtomRings():
        if len(ring) <= largest:
            same[torch.tensor(ring)[:, None], torch.tensor(ring)] = 1
    return same


def bonds_of(smiles: list[str]) -> tuple[Data, CompleteGraph]:
    """All molecules as RDKit numbers them."""
    ptr, ends = [0], []
    for molecule in map(Chem.MolFromSmiles, smiles):
        ends += [(b.GetBeginAtomIdx() + ptr[-1], b.GetEndAtomIdx() + ptr[-1]) for b in molecule.GetBonds()]
        ptr.append(ptr[-1] + molecule.GetNumAtoms())
    ends = torch.tensor(ends).view(-1, 2).T
    data = Data(edge_index=torch.cat([ends, ends.flip(0)], 1), num_nodes=ptr[-1])  # not molecule by molecule
    return data, CompleteGraph.from_ptr(torch.tensor(ptr))


@pytest.mark.parametrize(("largest", "chunk"), [(12, same_ring.CHUNK), (11, 100), (5, 100)])
def test_it_is_what_rdkit_says(largest: int, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(same_ring, "CHUNK", chunk)
    data, graph = bonds_of(DRUG_LIKE)
    _, codes = SameRing(largest)(data, graph)
    for smiles, own, n in zip(DRUG_LIKE, codes.split(graph.pair_ptr.diff().tolist()), graph.ptr.diff(), strict=True):
        assert own.view(n, n).equal(rdkit_says(smiles, largest)), smiles


def test_a_ring_whose_bonds_all_lie_on_smaller_ones_is_none() -> None:
    data, graph = bonds_of([FUSED_ON_EVERY_BOND])
    (same,) = SameRing()(data, graph)[1:]
    fewer = rdkit_says(FUSED_ON_EVERY_BOND, 12) - same.view(12, 12)
    assert fewer.min() == 0 and fewer.sum() == 6 * 3  # across the six-membered ring


def test_a_molecule_of_a_thousand_atoms() -> None:
    data, graph = bonds_of(["C1CCC(CC1)" * 160 + "C"])
    assert SameRing()(data, graph)[1].sum() == 160 * 36


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="rings of at least 3 bonds, got 2"):
        SameRing(2)
