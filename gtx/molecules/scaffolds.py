"""Bemis-Murcko scaffolds: rings and what links them."""

from __future__ import annotations

from rdkit import Chem, rdBase
from rdkit.Chem.Scaffolds.MurckoScaffold import MurckoScaffoldSmiles

from gtx.molecules.errors import MoleculeError
from gtx.molecules.reading import read_smiles


def scaffold(molecule: str | Chem.Mol) -> str:
    """Canonical SMILES, without stereochemistry, of the molecule's scaffold; empty if it has no ring.

    The scaffold of Bemis and Murcko (1996, 10.1021/jm9602928) as MoleculeNet uses it: rings, the chains between them
    and atoms doubly bonded to either.

    Raises:
        MoleculeError: the SMILES cannot be read, or what is left of it is no molecule for RDKit.
    """
    mol = read_smiles(molecule) if isinstance(molecule, str) else molecule
    try:
        with rdBase.BlockLogs():
            return MurckoScaffoldSmiles(mol=mol)
    except (RuntimeError, ValueError) as error:
        raise MoleculeError.because("has no scaffold", error) from None
