"""Text to RDKit molecule: SMILES and mol blocks; where RDKit refuses, its reason ends up in the error."""

from __future__ import annotations

import re
from collections.abc import Callable

from rdkit import Chem, rdBase

from gtx.molecules.errors import MoleculeError, shortened
from gtx.molecules.limits import check_block, check_graph, check_smiles
from gtx.molecules.stereo import finish, quietly

_STAMP = re.compile(r"^\[\d\d:\d\d:\d\d\]\s*")
_PREFIX = re.compile(r"^(ERROR: |SMILES Parse Error: )")
_ECHO = re.compile(r" for input: .*$| while parsing: .*$|:$")  # the caller knows the text
_NO_REASON = re.compile(r"^~*\^$|^Failed parsing SMILES|^moving to the beginning of the next molecule$")
_VIOLATION = re.compile(r"\*{4}\n(?P<kind>.*)\n(?P<what>.*)\nViolation occurred")  # a trace of RDKit's own code follows

_MANY = 10
_HYDROGEN = ("[H", "[#", *(f"[{digit}" for digit in range(10)))  # what a hydrogen atom may begin with
_BARE = Chem.SmilesParserParams()  # made once: making one costs a tenth of reading
_BARE.allowCXSMILES = _BARE.parseName = _BARE.sanitize = _BARE.removeHs = False
_REMOVE = Chem.RemoveHsParameters()
_REMOVE.updateExplicitCount = True  # as RDKit has it where it reads a SMILES


def read_smiles(text: str, remove_hydrogens: bool = True) -> Chem.Mol:
    """As `parse_smiles`, `quietly`."""
    with quietly():
        return parse_smiles(text, remove_hydrogens)


def parse_smiles(text: str, remove_hydrogens: bool = True) -> Chem.Mol:
    """Read one SMILES; blanks around it and atom map numbers in it are ignored.

    Args:
        text: a SMILES without extensions.
        remove_hydrogens: make hydrogen atoms written in the text implicit where RDKit can (`[H][H]` and `[2H]C` stay).

    Raises:
        MoleculeError: empty text, white space or control characters inside, no atoms, or refused by RDKit.
    """
    mol, finished = skim_smiles(text, remove_hydrogens)
    if not finished:
        finish(mol)
    return mol


def skim_smiles(text: str, remove_hydrogens: bool = True) -> tuple[Chem.Mol, bool]:
    """As `parse_smiles`, and whether that is all: otherwise centres are as written, and some may be none.

    These are the steps of RDKit's `MolFromSmiles`, with checks of the size before the steps that may take long. Steps
    that the text does not call for are left out: searching for hydrogen atoms to remove, and for centres that are none,
    takes a third of the time.
    """
    text = text.strip()
    if not text:
        raise MoleculeError("cannot be read: the text is empty")
    if not text.isprintable() or " " in text:
        raise MoleculeError("cannot be read: white space or a control character inside the SMILES")
    if not text.isascii():
        raise MoleculeError(f"cannot be read: {next(c for c in text if not c.isascii())!r} is no character of a SMILES")
    check_smiles(text)
    if (mol := Chem.MolFromSmiles(text, _BARE)) is None:
        raise MoleculeError(f"cannot be read: {_why_smiles(text)}")
    check_graph(_with_atoms(mol))
    numbered, hydrogens = ":" in text, "[" in text and any(mark in text for mark in _HYDROGEN)
    try:
        if hydrogens and remove_hydrogens:
            mol = Chem.RemoveHs(mol, _REMOVE)
        else:
            Chem.SanitizeMol(mol)
    except (RuntimeError, ValueError) as error:
        raise MoleculeError.because("cannot be read", error) from None
    finished = "@" not in text
    if hydrogens or "/" in text or "\\" in text or (numbered and not finished):  # numbers on atoms may make a centre
        finish(mol)
        finished = True
    if numbered:
        for atom in mol.GetAtoms():
            atom.SetAtomMapNum(0)
    return mol, finished


def may_have_stereo(text: str) -> bool:
    """Whether a text may say which way a centre or a bond is."""
    return "@" in text or "/" in text or "\\" in text or "\n" in text


def read_molblock(text: str, remove_hydrogens: bool = True) -> Chem.Mol:
    """Read a mol block (V2000 or V3000), e.g. one record of an SDF; its coordinates are kept as a conformer.

    Args:
        text: the block, from its title line to `M  END`; what follows is ignored.
        remove_hydrogens: make hydrogen atoms implicit and drop their coordinates.

    Raises:
        MoleculeError: no atoms, or refused by RDKit.
    """
    if (lines := text.count("\n") + 1 if text.strip() else 0) < 4:
        raise MoleculeError(f"cannot be read: a mol block has four lines or more; {lines} came")
    check_block(text)
    with quietly():
        mol = Chem.MolFromMolBlock(text, removeHs=remove_hydrogens)
    if mol is None:
        raise MoleculeError(f"cannot be read: {_reason(lambda: _supplied(text, remove_hydrogens))}")
    return _with_atoms(mol)


def _with_atoms(mol: Chem.Mol) -> Chem.Mol:
    if mol.GetNumAtoms() == 0:
        raise MoleculeError("cannot be read: it has no atoms")
    return mol


def _why_smiles(text: str) -> str:
    if (unclosed := text.count("(") - text.count(")")) > _MANY:  # RDKit would echo the text for each of them
        return f"{unclosed:,} parentheses are not closed"
    return _reason(lambda: Chem.MolFromSmiles(text, _BARE))


def _supplied(block: str, remove_hydrogens: bool) -> Chem.Mol | None:
    supplier = Chem.SDMolSupplier()  # logs as an error what `MolFromMolBlock` only warns of
    supplier.SetData(block, removeHs=remove_hydrogens)
    return next(iter(supplier), None)


def _reason(parse: Callable[[], Chem.Mol | None]) -> str:
    """RDKit's own words on one line: no time stamps, not the text itself, no arrow into it, no stack trace."""
    with rdBase.BlockLogs(), rdBase.CaptureErrorLog() as log:
        parse()
    try:
        messages = log.messages
    except UnicodeDecodeError:  # of a damaged mol block RDKit quotes half a letter, or bytes from elsewhere
        messages = ""
    if violation := _VIOLATION.search(messages):
        return f"{violation['what']} ({violation['kind']})"
    lines = [_PREFIX.sub("", _STAMP.sub("", line).strip()) for line in messages.splitlines()]
    pointed_at = {i + 1 for i, line in enumerate(lines) if line.startswith("check for mistakes around position")}
    kept = [
        " ".join(_ECHO.sub("", line).split())
        for i, line in enumerate(lines)
        if i not in pointed_at and not _NO_REASON.match(line)
    ]
    return shortened("; ".join(dict.fromkeys(filter(None, kept)))) or "RDKit gives no reason"
