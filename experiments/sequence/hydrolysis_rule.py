"""What water makes of a molecule's esters and amides, all of them at once: a rule, so every answer is exact.

    R-C(=O)-O-R'   ->  R-C(=O)-OH  +  HO-R'
    R-C(=O)-NR'R'' ->  R-C(=O)-OH  +  HNR'R''

R is carbon or hydrogen and the carbonyl carbon not aromatic; R' of an ester is a carbon that is no carbonyl itself; the
nitrogen of an amide is neutral, not aromatic, and whatever else it bears does not matter. So these count: esters of any
alcohol or phenol, formates, lactones and lactams (their ring is opened), imides (each side), hydrazides and hydroxamic
acids. These do not: acids, anhydrides, carbonates, carbamates, ureas, thioesters, sulfonamides, sulfonic and phosphoric
esters, N-acyl azoles, and pyridones, which RDKit takes to be aromatic. No new ester or amide comes of it, so once is
exhaustive.
"""

from __future__ import annotations

from rdkit import Chem

BOND = Chem.MolFromSmarts("[CX3;$([CH1]),$(C[#6]):1](=O)-[$([NX3+0]),$([OX2][#6;!$([#6]=[O,S])]):2]")
"""Atoms: the carbonyl's carbon and oxygen, and what water takes off."""


def hydrolyse(mol: Chem.Mol) -> list[Chem.Mol]:
    """The products, each with its stereochemistry; none if there is nothing to hydrolyse."""
    bonds = {(carbon, leaving) for carbon, _, leaving in mol.GetSubstructMatches(BOND, maxMatches=1000)}
    if not bonds:
        return []
    made = Chem.RWMol(mol)
    for carbon, leaving in sorted(bonds):
        made.RemoveBond(carbon, leaving)
        made.AddBond(carbon, made.AddAtom(Chem.Atom("O")), Chem.BondType.SINGLE)
        atom = made.GetAtomWithIdx(leaving)
        if atom.GetNoImplicit():  # its hydrogens are counted one by one
            atom.SetNumExplicitHs(atom.GetNumExplicitHs() + 1)
    return list(Chem.GetMolFrags(Chem.Mol(made), asMols=True, sanitizeFrags=True))


def products(smiles: str) -> str | None:
    """Canonical SMILES of the products of a molecule, sorted, with dots between; None if there are none.

    Args:
        smiles: of a molecule that can be read.
    """
    made = hydrolyse(Chem.MolFromSmiles(smiles))
    return ".".join(sorted(_canonical(each) for each in made)) or None


def _canonical(mol: Chem.Mol) -> str:
    return Chem.MolToSmiles(Chem.MolFromSmiles(Chem.MolToSmiles(mol)))  # centres that are none any more are dropped
