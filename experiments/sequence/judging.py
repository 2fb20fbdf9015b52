"""Whether what was written is the molecule it should be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

from rdkit import Chem

from gtx.molecules import MoleculeError, read_smiles
from gtx.molecules.stereo import quietly

Verdict = Literal["same", "other stereochemistry", "another molecule", "invalid"]


def canonical(text: str, stereo: bool = True) -> str | None:
    """The canonical SMILES, of a mixture those of its parts, sorted; None for what is no molecule.

    Args:
        text: a SMILES, or what a model took for one.
        stereo: with stereochemistry.
    """
    try:
        mol = read_smiles(text)
    except MoleculeError:
        return None
    with quietly():
        parts = Chem.GetMolFrags(mol, asMols=True, sanitizeFrags=False)
        return ".".join(sorted(Chem.MolToSmiles(part, isomericSmiles=stereo) for part in parts))


def judge(written: str, true: str) -> Verdict:
    """How a SMILES compares with the true one, however either is written."""
    if (found := canonical(written)) is None:
        return "invalid"
    if found == canonical(true):
        return "same"
    return "other stereochemistry" if canonical(written, False) == canonical(true, False) else "another molecule"


def tally(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """Shares of the rows: the same molecule; the same apart from stereochemistry; and how many were invalid."""
    counts, n = Counter(verdicts), len(verdicts)
    flat = counts["same"] + counts["other stereochemistry"]
    return {"rows": n, "same": counts["same"] / n, "same_constitution": flat / n, "invalid": counts["invalid"]}
