"""Tautomers of a molecule, in an order that does not depend on how it was drawn."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from rdkit import Chem
from rdkit.Chem.MolStandardize.rdMolStandardize import TautomerEnumerator, TautomerEnumeratorStatus

from gtx.molecules.graphs import quietly
from gtx.molecules.perception import read_molecule
from gtx.molecules.reading import MoleculeError
from gtx.molecules.settings import Settings

MOST_TAUTOMERS = 16


class Tautomers(NamedTuple):
    """Tautomers of a molecule.

    Attributes:
        texts: their SMILES, the highest score of RDKit first, and of equal scores in alphabetical order; the text of
            the molecule itself if it has no other tautomer or cannot be read.
        best: how many of these have the highest score.
        smiles: canonical SMILES of the molecule as drawn; None if it cannot be read.
        complete: False if RDKit stopped before it had found all.
    """

    texts: list[str]
    best: int
    smiles: str | None
    complete: bool


def enumerate_tautomers(settings: Settings, text: str, most: int = MOST_TAUTOMERS) -> Tautomers:
    """Enumerate the tautomers of a molecule by RDKit's rules.

    Stereocentres and double bonds that take part lose their stereochemistry, which another tautomer does not have.

    Args:
        settings: how molecules are read.
        text: SMILES or mol block.
        most: maximum number of tautomers.

    Sources: Sitzmann, Ihlenfeldt & Nicklaus 2010 (https://doi.org/10.1007/s10822-010-9346-4), for the rules.
    """
    with quietly():
        try:
            mol, _ = read_molecule(replace(settings, hydrogens=False, coordinates=False, conformers=False), text)
            found = TautomerEnumerator().Enumerate(mol)
            ranked = sorted(
                (-TautomerEnumerator.ScoreTautomer(tautomer), smiles)
                for smiles, tautomer in zip(found.smiles, found.tautomers, strict=True)
            )
        except (MoleculeError, RuntimeError, ValueError):
            return Tautomers([text], 1, None, True)
        complete = found.status == TautomerEnumeratorStatus.Completed
        texts = [smiles for _, smiles in ranked[:most]] if len(ranked) > 1 else [text]
        best = sum(score == ranked[0][0] for score, _ in ranked[:most])
        return Tautomers(texts, best, Chem.MolToSmiles(mol), complete)
