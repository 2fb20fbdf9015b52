"""Bemis-Murcko scaffolds."""

from __future__ import annotations

from pathlib import Path

import pytest

from gtx.molecules import MoleculeError, murcko_scaffold, read_smiles

from .rewriting import ODD, rewritings, sample


@pytest.mark.parametrize(
    ("smiles", "expected"),
    [
        ("CCO", ""),
        ("CCc1ccccc1CCO", "c1ccccc1"),
        ("c1ccccc1CCCN1CCNCC1", "c1ccc(CCCN2CCNCC2)cc1"),
        ("O=C1CCCCC1C", "O=C1CCCCC1"),
        ("C[C@H]1CC[C@@H](C)CC1", "C1CCCCC1"),
        ("C/C=C1/CCC(C)C1", "C=C1CCCC1"),
        ("c1ccccc1.[Na+]", "c1ccccc1"),
    ],
)
def test_known_scaffolds(smiles: str, expected: str) -> None:
    assert murcko_scaffold(smiles) == murcko_scaffold(read_smiles(smiles)) == expected


def test_every_real_molecule_has_one_however_written(shared_data: Path) -> None:
    for text in [*ODD, *sample(shared_data, 40, stereo=False, seed=3)]:
        assert {murcko_scaffold(written) for written in (text, *rewritings(text, 2))} == {murcko_scaffold(text)}, text


def test_an_unreadable_smiles_is_an_error() -> None:
    with pytest.raises(MoleculeError, match="unclosed ring"):
        murcko_scaffold("C1CC")
