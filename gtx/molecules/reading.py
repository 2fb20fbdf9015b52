"""Text to RDKit molecule: SMILES and mol blocks; whatever RDKit says on the way ends up in the error."""

from __future__ import annotations

import re
from collections.abc import Callable

from rdkit import Chem, rdBase

from gtx.molecules.errors import MoleculeError
from gtx.molecules.stereo import legacy_perception

_STAMP = re.compile(r"^\[\d\d:\d\d:\d\d\] ")
_ECHO = re.compile(
    r"^SMILES Parse Error: (Failed parsing SMILES.*)?| for input: .*$| while parsing: .*$|:$"
)  # the caller knows the text
_POINTER = re.compile(r"^~*\^$")


def _parser(remove_hydrogens: bool) -> Chem.SmilesParserParams:
    params = Chem.SmilesParserParams()
    params.allowCXSMILES = params.parseName = False
    params.removeHs = remove_hydrogens
    return params


_PARSERS = {remove: _parser(remove) for remove in (True, False)}  # made once: making one costs a tenth of reading


def read_smiles(text: str, remove_hydrogens: bool = True) -> Chem.Mol:
    """Read one SMILES; blanks around it are ignored.

    Args:
        text: a SMILES, or a CXSMILES without the blank-separated extension.
        remove_hydrogens: make hydrogen atoms written in the text implicit where RDKit can (`[H][H]` and `[2H]C` stay).

    Raises:
        MoleculeError: empty text, white space or control characters inside, no atoms, or refused by RDKit.
    """
    text = text.strip()
    if not text:
        raise MoleculeError("cannot be read: the text is empty")
    if not text.isprintable() or " " in text:
        raise MoleculeError("cannot be read: white space or a control character inside the SMILES")
    if not text.isascii():
        raise MoleculeError(f"cannot be read: {next(c for c in text if ord(c) > 127)!r} is no character of a SMILES")
    mol = _read(Chem.MolFromSmiles, text, _PARSERS[remove_hydrogens])
    if ":" in text:  # atom map numbers say nothing about the molecule
        for atom in mol.GetAtoms():
            atom.SetAtomMapNum(0)
    return mol


def read_molblock(text: str, remove_hydrogens: bool = True) -> Chem.Mol:
    """Read a mol block (V2000 or V3000), e.g. one record of an SDF; its coordinates are kept as a conformer.

    Args:
        text: the block, from its title line to `M  END`; what follows is ignored.
        remove_hydrogens: make hydrogen atoms implicit and drop their coordinates.

    Raises:
        MoleculeError: no atoms, or refused by RDKit.
    """
    return _read(Chem.MolFromMolBlock, text, True, remove_hydrogens)


def _read(parse: Callable[..., Chem.Mol | None], *arguments: object) -> Chem.Mol:
    with rdBase.BlockLogs(), legacy_perception():
        mol = parse(*arguments)
        if mol is None:  # rare, so the log is kept only for a second attempt
            with rdBase.CaptureErrorLog() as log:
                parse(*arguments)
            raise MoleculeError(f"cannot be read: {_reason(log.messages)}")
    if mol.GetNumAtoms() == 0:
        raise MoleculeError("cannot be read: it has no atoms")
    return mol


def _reason(log: str) -> str:
    """RDKit's own words on one line, without time stamps, without the text itself and the arrow that points into it."""
    lines = [" ".join(_STAMP.sub("", line).split()) for line in log.splitlines()]
    shown = [i + 1 for i, line in enumerate(lines) if "check for mistakes" in line]
    kept = [_ECHO.sub("", line) for i, line in enumerate(lines) if i not in shown and not _POINTER.match(line)]
    return "; ".join(dict.fromkeys(line for line in kept if line)) or "RDKit gives no reason"
