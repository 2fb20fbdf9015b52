"""Reading: SMILES, mol blocks and SDF within limits, standardised, or an error that gives the reason."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from rdkit import Chem, rdBase
from rdkit.Chem import BondStereo, ChiralType
from rdkit.Chem.MolStandardize import rdMolStandardize

from gtx.molecules.graphs import clean_stereo, quietly

# --- The exception for one unusable molecule.


class MoleculeError(ValueError):
    """Error of a molecule that cannot be used; its message is one line with the reason, where possible RDKit's own."""

    @classmethod
    def because(cls, what: str, error: Exception) -> MoleculeError:
        """Join `what` and the first lines of RDKit's exception; a trace of RDKit's own code follows there."""
        lines = [" ".join(line.split()) for line in str(error).splitlines() if line.strip()]
        return cls(f"{what}: {shortened('; '.join(lines[:2])) or type(error).__name__}")


def shortened(reason: str) -> str:
    """Return a reason that does not list a thousand atoms."""
    return reason if len(reason) <= 200 else f"{reason[:199]}…"


BLANKS = frozenset({"", "nan", "na", "n/a", "<na>", "#n/a", "#nv", "none", "null"})
"""Spellings of a blank cell, in lower case: a target without a value, a row without a molecule. None is a SMILES."""


def is_blank(text: str) -> bool:
    """Return whether a cell is blank, or has a word that stands for a blank, see `BLANKS`."""
    return text.strip().lower() in BLANKS


# --- Bounds on what is read, so that no text takes more than about a second or 200 MB.
#
# RDKit has none of its own: a digit repeated a million times, a graph that joins every two of fifty atoms, or a
# macrocycle of twenty phenylenes keeps it busy for minutes or fills the memory. The bounds leave room for every
# molecule of a thousand atoms that chemists draw: polymers, proteins, fullerenes up to C720, cyclodextrins of ten
# sugars.

MOST_CHARACTERS = {"SMILES": 50_000, "mol block": 1_000_000}
"""Limits on the length of a text. The SMILES of C1000H2002 with all atoms written and numbered has 30,000."""

MOST_ATOMS = MOST_BONDS = 5_000
"""Hydrogen atoms that are written included."""

MOST_PARTS = 300
"""Molecules in one text, separated by dots."""

MOST_RINGS = 400
"""Independent rings of a molecule: bonds - atoms + parts. C720 has 361."""

FUSED_RINGS = 120
"""A ring system may have so many independent rings, or as many as it has atoms with three ring bonds or more.

Carbon and its like stay below that. Where many atoms have six ring bonds or more, the rings to choose from explode."""

FUSED_ATOMS = 1_500
"""Limit on the atoms of one ring system: RDKit stores the distances between all of them."""

MOST_CYCLES = 1_500
"""Relevant cycles (Vismara 1997, Electronic Journal of Combinatorics 4, R9), which RDKit lists one by one: those that
no shorter ones add up to. A macrocycle that can go either way around each of ten smaller rings counts 1,024 times."""

_FEW_BONDS = 40  # whatever the graph, RDKit is done with it in milliseconds
_FEW_RINGS = 10  # cannot have more than 1,023 cycles of any kind
_SHORT = 2 * MOST_RINGS  # a shorter text cannot hold more ring closures
_BRACKETS = re.compile(r"\[[^\]]*\]?")
_CLOSURE = re.compile(r"%\(\d*\)?|%\d\d|\d")
_NUMBER = re.compile(r"[ +]*(\d*)")
_WORD = re.compile(r'"[^"]*"|\([^)]*\)|\S+')


def check_smiles(text: str) -> None:
    """Check the length and the ring closures of a SMILES before RDKit reads it; a `MoleculeError` names the bound."""
    _check("characters", len(text), MOST_CHARACTERS["SMILES"])
    if len(text) > _SHORT:
        smiles, _ = split_extension(text)
        _check("ring closure marks", len(_CLOSURE.findall(_BRACKETS.sub("", smiles))), 2 * MOST_RINGS)


def check_block(text: str) -> None:
    """Check a mol block before RDKit reads it, which perceives rings even where it is told not to sanitise.

    RDKit 2026.9.1 reads [11]cycloparaphenylene in 0.14 s, and [12]cycloparaphenylene not within a minute.
    """
    _check("characters", len(text), MOST_CHARACTERS["mol block"])
    lines = text.split("\n")
    atoms, bonds = (_v3000 if lines[3][34:39] == "V3000" else _v2000)(lines)
    _check("atoms", atoms, MOST_ATOMS)
    _check("bonds", len(bonds), MOST_BONDS)
    if len(bonds) > _FEW_BONDS or atoms > MOST_PARTS:
        check_graph(_graph(atoms, bonds))


def check_graph(mol: Chem.Mol) -> None:
    """Check a molecule that is parsed, and not sanitised, before its rings are perceived: atoms, bonds, parts and
    rings.
    """
    atoms, bonds = mol.GetNumAtoms(), mol.GetNumBonds()
    _check("atoms", atoms, MOST_ATOMS)
    _check("bonds", bonds, MOST_BONDS)
    if bonds <= _FEW_BONDS and atoms <= MOST_PARTS:
        return
    parts = len(Chem.GetMolFrags(mol))
    rings = bonds - atoms + parts
    _check("parts", parts, MOST_PARTS)
    _check("rings", rings, MOST_RINGS)
    if rings <= _FEW_RINGS and atoms <= FUSED_ATOMS:
        return
    copy = Chem.Mol(mol)
    Chem.FastFindRings(copy)  # any set of rings that covers all there are
    info, ring_systems = copy.GetRingInfo(), Chem.RWMol(copy)
    ring_systems.BeginBatchEdit()
    for bond in copy.GetBonds():
        if not info.NumBondRings(bond.GetIdx()):  # `IsInRing` takes time in a large ring
            ring_systems.RemoveBond(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx())
    ring_systems.CommitBatchEdit()
    for system in Chem.GetMolFrags(ring_systems):
        _check("atoms in one ring system", len(system), FUSED_ATOMS)
        degrees = [ring_systems.GetAtomWithIdx(atom).GetDegree() for atom in system]
        branching = sum(degree > 2 for degree in degrees)
        what = f"rings in a ring system of {branching:,} atoms with three ring bonds or more"
        _check(what, sum(degrees) // 2 - len(system) + 1, max(FUSED_RINGS, branching))
    if rings > _FEW_RINGS:
        _check("relevant cycles", _relevant_cycles(copy), MOST_CYCLES)


def _relevant_cycles(mol: Chem.Mol) -> int:
    """Count the relevant cycles; where RDKit's 32-bit count may have overflowed, return an upper bound."""
    Chem.FindRingFamilies(mol)
    info = mol.GetRingInfo()
    families = zip(info.AtomRingFamilies(), info.BondRingFamilies(), strict=True)
    most = sum(2 ** (len(bonds) - len(atoms)) for atoms, bonds in families)
    return info.NumRelevantCycles() if most < 2**31 else most


# A mol block's bonds, as pairs of numbers: read at least as leniently as RDKit does, which refuses what is wrong


def _v2000(lines: list[str]) -> tuple[int, list[tuple[int, int]]]:
    atoms, bonds = _number(lines[3][:3]), _number(lines[3][3:6])
    return atoms, [(_number(line[:3]), _number(line[3:6])) for line in lines[4 + atoms : 4 + atoms + bonds]]


def _v3000(lines: list[str]) -> tuple[int, list[tuple[int, int]]]:
    section, atoms, bonds = "", 0, []
    for line in _join_lines(lines):
        if line.startswith(("BEGIN", "END")):
            section = line
        elif section.startswith("BEGIN ATOM"):
            atoms += 1
        elif section.startswith("BEGIN BOND"):
            ends = [word[0] for word in islice(_WORD.finditer(line), 2, 4)]  # all of `(((...` would take its square
            bonds += [(_number(ends[0]), _number(ends[1]))] if len(ends) == 2 else []
    return atoms, bonds


def _join_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield the text after `M  V30 ` of each line; a line that ends with a hyphen continues in the next."""
    parts: list[str] = []
    for line in lines:
        line = line.rstrip("\r")
        if line.startswith("M  V30 "):
            parts.append(line[7:].removesuffix("-"))
            if not line.endswith("-"):
                yield "".join(parts)
                parts.clear()


def _number(field: str) -> int:
    match = _NUMBER.match(field)
    return int(match[1][:9] or 0) if match else 0


def _graph(atoms: int, bonds: Iterable[tuple[int, int]]) -> Chem.Mol:
    graph, carbon = Chem.RWMol(), Chem.Atom(6)
    index: dict[int, int] = {}
    for pair in {(min(pair), max(pair)) for pair in bonds}:
        for end in pair:
            if end not in index:
                index[end] = graph.AddAtom(carbon)
        i, j = (index[end] for end in pair)
        if i != j:
            graph.AddBond(i, j, Chem.BondType.SINGLE)
    for _ in range(atoms - len(index)):
        graph.AddAtom(carbon)
    return graph


def _check(what: str, count: int, most: int) -> None:
    if count > most:
        raise MoleculeError(f"cannot be read: it has {count:,} {what}; the limit is {most:,}")


# --- The largest fragment, neutral: counter-ions and solvents off, protonation undone.

_LARGEST = rdMolStandardize.LargestFragmentChooser()
_NEUTRAL = rdMolStandardize.Uncharger()


def standardise_molecule(mol: Chem.Mol) -> Chem.Mol:
    """Return the largest fragment of a molecule, neutralised by adding or removing protons where possible.

    Charges that protons cannot undo stay, as in quaternary ammonium; so do zwitterions of such (betaine). Nothing else
    is changed: tautomers, isotopes and stereochemistry are kept.
    """
    try:
        with rdBase.BlockLogs():
            return _NEUTRAL.uncharge(_LARGEST.choose(mol))
    except (RuntimeError, ValueError) as error:
        raise MoleculeError.because("cannot be standardised", error) from None


def flat_parent(smiles: str) -> str:
    """Return the SMILES, without stereochemistry, of a molecule after `standardise_molecule`."""
    with quietly():
        mol = standardise_molecule(read_smiles(smiles))
        Chem.RemoveStereochemistry(mol)
        return Chem.MolToSmiles(mol)


# --- Text to RDKit molecule: SMILES and mol blocks; RDKit's reason for a refusal is in the error.

_STAMP = re.compile(r"^\[\d\d:\d\d:\d\d\]\s*")
_PREFIX = re.compile(r"^(ERROR: |SMILES Parse Error: )")
_ECHO = re.compile(r" for input: .*$| while parsing: .*$|:$")  # the caller knows the text
_NO_REASON = re.compile(r"^~*\^$|^Failed parsing SMILES|^moving to the beginning of the next molecule$")
_VIOLATION = re.compile(r"\*{4}\n(?P<kind>.*)\n(?P<what>.*)\nViolation occurred")  # a trace of RDKit's own code follows

_MANY = 10
_HYDROGEN = ("[H", "[#", *(f"[{digit}" for digit in range(10)))  # what a hydrogen atom may begin with
_BARE = Chem.SmilesParserParams()  # made once: making one costs a tenth of reading
_BARE.allowCXSMILES = _BARE.parseName = _BARE.sanitize = _BARE.removeHs = False  # type: ignore[assignment]  # RDKit's stubs type no setting
_EXTENDED = Chem.SmilesParserParams()
_EXTENDED.parseName = _EXTENDED.sanitize = _EXTENDED.removeHs = False  # type: ignore[assignment]
_REMOVE = Chem.RemoveHsParameters()
_REMOVE.updateExplicitCount = True  # type: ignore[assignment]  # as where RDKit reads a SMILES; its stubs type no setting


def read_smiles(text: str, remove_hydrogens: bool = True) -> Chem.Mol:
    """Parse a SMILES as `parse_smiles` does, without RDKit's messages on stderr."""
    with quietly():
        return parse_smiles(text, remove_hydrogens)


def parse_smiles(text: str, remove_hydrogens: bool = True) -> Chem.Mol:
    """Read a SMILES or CXSMILES (see `ignored_parts`); blanks around it and atom map numbers in it are ignored.

    Hydrogen atoms written in the text become implicit, if asked for and where RDKit can (`[H][H]` and `[2H]C` stay). A
    `MoleculeError` says that the text is empty, has white space inside or no atoms, or why RDKit refuses it.
    """
    mol, finished = skim_smiles(text, remove_hydrogens)
    if not finished:
        clean_stereo(mol)
    return mol


def skim_smiles(text: str, remove_hydrogens: bool = True) -> tuple[Chem.Mol, bool]:
    """Parse a SMILES, and return whether its stereochemistry is final.

    If not, stereocentres are as written, and some may turn out not to be centres. These are the steps of
    RDKit's `MolFromSmiles`, with checks of the size before steps that may take long. Steps that the text does not need
    are left out: searching for hydrogen atoms to remove, and for false centres, takes a third of the time.
    """
    text = text.strip()
    if not text:
        raise MoleculeError("cannot be read: the text is empty")
    check_smiles(text)
    text, extension = split_extension(text)
    if not text.isprintable() or " " in text:
        raise MoleculeError("cannot be read: white space or a control character inside the SMILES")
    if not text.isascii():
        raise MoleculeError(f"cannot be read: {next(c for c in text if not c.isascii())!r} is no character of a SMILES")
    if (mol := Chem.MolFromSmiles(text, _BARE)) is None:
        raise MoleculeError(f"cannot be read: {_why_smiles(text)}")
    check_graph(_with_atoms(mol))
    if extension:
        mol = _read_extension(text, extension)
    hydrogens = writes_hydrogens(text)
    try:
        if hydrogens and remove_hydrogens:
            mol = Chem.RemoveHs(mol, _REMOVE)
        else:
            Chem.SanitizeMol(mol)
    except (RuntimeError, ValueError) as error:
        raise MoleculeError.because("cannot be read", error) from None
    if ":" in text or extension:
        _keep_numbers(mol)
    if hydrogens or extension or "/" in text or "\\" in text:
        clean_stereo(mol)
        return mol, True
    return mol, "@" not in text


NUMBER = "_mapNumber"
"""Property of an atom with its map number, which is taken off it: molecules are the same with and without numbers."""


def _keep_numbers(mol: Chem.Mol) -> bool:
    """Take the map numbers off the atoms, before stereochemistry is cleaned: they would make a centre of an atom with
    two equal neighbours. Return whether there are any.
    """
    numbered = [atom for atom in mol.GetAtoms() if atom.GetAtomMapNum()]
    for atom in numbered:
        atom.SetIntProp(NUMBER, atom.GetAtomMapNum())
        atom.SetAtomMapNum(0)
    return bool(numbered)


def map_numbers(mol: Chem.Mol) -> list[int]:
    """List the map numbers of the atoms as they were written; 0 for none."""
    return [atom.GetIntProp(NUMBER) if atom.HasProp(NUMBER) else 0 for atom in mol.GetAtoms()]


def writes_hydrogens(smiles: str) -> bool:
    """Return whether a SMILES writes a hydrogen as an atom of its own."""
    return any(mark in smiles for mark in _HYDROGEN)


def molecule_text(molecule: Any, coordinates: bool = False, ordered: bool = False) -> str | None:
    """Write a molecule as a text that can be read; return None for any other object.

    A text stays as it is. An RDKit molecule becomes its SMILES; a mol block where it has a conformer in space and
    `coordinates` are wanted, or where the order of its atoms and bonds is to be kept (`ordered`).
    """
    if not isinstance(molecule, Chem.Mol):
        return molecule if isinstance(molecule, str) else None
    in_space = coordinates and molecule.GetNumConformers() and molecule.GetConformer().Is3D()
    if molecule.GetNumAtoms() and (ordered or in_space):
        try:
            with rdBase.BlockLogs():
                return Chem.MolToMolBlock(molecule, forceV3000=True)
        except ValueError:  # no Kekulé structure: reading its bonds as they are says why, row by row
            return Chem.MolToMolBlock(molecule, forceV3000=True, kekulize=False)
    if molecule.GetStereoGroups():
        return Chem.MolToCXSmiles(molecule, Chem.SmilesWriteParams(), Chem.CXSmilesFields.CX_ENHANCEDSTEREO)
    return Chem.MolToSmiles(molecule)


def is_block(text: str) -> bool:
    """Return whether a text is a mol block; a damaged one may lack its end."""
    return "M  END" in text or text.strip().count("\n") > 2


def read_molblock(text: str, remove_hydrogens: bool = True) -> Chem.Mol:
    """Read a mol block (V2000 or V3000), such as one record of an SDF, with its coordinates as a conformer.

    What follows its `M  END` is ignored. Hydrogen atoms become implicit and lose their coordinates, if asked for.
    """
    if (lines := text.count("\n") + 1 if text.strip() else 0) < 4:
        raise MoleculeError(f"cannot be read: a mol block has four lines or more; {lines} came")
    check_block(text)
    with quietly():
        mol = Chem.MolFromMolBlock(text, removeHs=remove_hydrogens)
        if mol is None:
            raise MoleculeError(f"cannot be read: {_reason(lambda: _read_by_supplier(text, remove_hydrogens))}")
        groups = len(mol.GetStereoGroups())
        mol = _without_relative_stereo(mol) if groups else mol
        if _keep_numbers(mol) or groups:
            clean_stereo(mol)
    return _with_atoms(mol)


def _with_atoms(mol: Chem.Mol) -> Chem.Mol:
    if mol.GetNumAtoms() == 0:
        raise MoleculeError("cannot be read: it has no atoms")
    return mol


def _why_smiles(text: str) -> str:
    if is_blank(text):
        return "the text stands for an empty cell"
    if (unclosed := text.count("(") - text.count(")")) > _MANY:  # RDKit would echo the text for each of them
        return f"{unclosed:,} parentheses are not closed"
    if text.count(">") - text.count("->") == 2:  # without the arrows of dative bonds
        return "it is a reaction, which gtx train reads with --reaction-column"
    return _reason(lambda: Chem.MolFromSmiles(text, _BARE))


def _read_by_supplier(block: str, remove_hydrogens: bool) -> Chem.Mol | None:
    supplier = Chem.SDMolSupplier()  # logs as an error what `MolFromMolBlock` only warns of
    supplier.SetData(block, removeHs=remove_hydrogens)
    return next(iter(supplier), None)


def _reason(parse: Callable[[], Chem.Mol | None]) -> str:
    """Return RDKit's error message on one line, without time stamps, the text itself, arrows and stack traces."""
    with rdBase.BlockLogs(), rdBase.CaptureErrorLog() as log:
        parse()
    try:
        messages = log.messages
    except UnicodeDecodeError:  # of a damaged mol block RDKit quotes half a letter, or bytes from elsewhere
        messages = ""
    if violation := _VIOLATION.search(messages):
        return f"{violation['what']} ({violation['kind']})"
    lines = [_PREFIX.sub("", _STAMP.sub("", line).strip()) for line in messages.splitlines()]
    echoes = {i + 1 for i, line in enumerate(lines) if line.startswith("check for mistakes around position")}
    reasons = [
        " ".join(_ECHO.sub("", line).split())
        for i, line in enumerate(lines)
        if i not in echoes and not _NO_REASON.match(line)
    ]
    return shortened("; ".join(dict.fromkeys(filter(None, reasons)))) or "RDKit gives no reason"


# --- What a molecule has beside its graph: CXSMILES extensions, and the same in mol blocks.
#
# Format: https://docs.chemaxon.com/display/docs/formats_chemaxon-extended-smiles-and-smarts-cxsmiles-and-cxsmarts.md

EXTENSION = re.compile(r"\|[^|]*\|(?=\s|$)")
"""Extension of a CXSMILES, which stands after the SMILES and white space."""

RELATIVE_STEREO = "relative or racemic stereochemistry is read as unspecified"
"""Warning for a molecule with stereocentres of which only the configuration relative to others is known, or that is a
mixture of stereoisomers: `o1:`, `&1:` and `r` of a CXSMILES, STEREL and STERAC of a mol block, STEREO_OR and STEREO_AND
of an RDKit molecule. What is drawn there is one of several molecules."""

_POLYMER = "the brackets of a polymer are ignored: the molecule is its repeat unit"
_LABELS = re.compile(r"\$(?!_AV:)([^$]*)\$")
_FREE_TEXT = re.compile(r"\$[^$]*\$|\([^)]*\)|SgD:[\d,]*:[^,]*")  # labels, coordinates, data
_FEATURE = re.compile(r"(?:^|,)([A-Za-z&^]+)")
_RELATIVE = ("o", "&", "r")
_READ = (*("", "^", "C", "Z", "a", "c", "t", "ctu", "w", "wU", "wD"), *_RELATIVE)  # radicals, dative bonds ...
_HARMLESS = ("lp", "f", "atomProp")  # lone pairs, which parts belong together, notes
_CENTRES = re.compile(r"(?:^|,)[o&]\d*:((?:\d+,?)+)")
_BLOCK_PARTS = {
    re.compile(r"MDLV30/STE(REL|RAC)"): RELATIVE_STEREO,
    re.compile(r"^M  (STY|V30 \d+)\b.* (SRU|MON|MER|COP|CRO|MOD|GRA|ANY)\b", re.MULTILINE): _POLYMER,
    re.compile(r"^M  (LIN|V30 LINKNODE)\b|\bATTACH=ANY\b", re.MULTILINE): (
        "repeats and variable positions of a link or a bond are ignored"
    ),
    re.compile(r"^A  +\d+\s*\n\s*(\S.*)", re.MULTILINE): "the label of an atom is ignored",
}


def split_extension(text: str) -> tuple[str, str]:
    """Split a CXSMILES into its SMILES and its extension, such as `|o1:1|`; empty if the text has none."""
    smiles, bar, extension = text.rstrip().removesuffix("|").rpartition("|")
    if bar and smiles[-1:].isspace() and text.rstrip().endswith("|"):
        return smiles.rstrip(), f"|{extension}|"
    return text, ""


def ignored_parts(text: str) -> tuple[str, ...]:
    """Return warnings about what a SMILES or mol block says beside its graph and gtx does not read.

    gtx reads the radicals, dative bonds, coordinates in space and stereochemistry of a CXSMILES; lone pairs and notes
    are passed over. Relative and racemic stereochemistry is unspecified, see `RELATIVE_STEREO`. What would make the
    molecule another one, such as repeats and variable positions, or its atoms others, such as labels, is a warning.
    """
    if is_block(text):
        return tuple(warning for part, warning in _BLOCK_PARTS.items() if part.search(text))
    extension = split_extension(text.strip())[1].strip("|")
    labels = [label for found in _LABELS.findall(extension) for label in found.split(";")]
    # an R group, an attachment point, or one of a kind: these are dummy atoms in the SMILES
    labels = [label for label in labels if label and not label.startswith("_") and not label.endswith(("_e", "_p"))]
    features = dict.fromkeys(_FEATURE.findall(_FREE_TEXT.sub("", extension)))
    warnings = [RELATIVE_STEREO] if set(features).intersection(_RELATIVE) else []
    if "Sg" in features:
        warnings.append(_POLYMER)
    if labels:
        warnings.append(f"the label of an atom is ignored: {', '.join(labels)}")
    if others := [name for name in features if name not in (*_READ, *_HARMLESS, "Sg")]:
        warnings.append(f"of the extension |{extension}| gtx ignores {', '.join(others)}")
    return tuple(map(shortened, warnings))


def _read_extension(smiles: str, extension: str) -> Chem.Mol:
    """Read a CXSMILES whose SMILES can be read; `MoleculeError` if the extension cannot, or names an atom that is not
    there.
    """
    mol = Chem.MolFromSmiles(f"{smiles} {extension}", _EXTENDED)
    if mol is None:
        raise MoleculeError(f"cannot be read: RDKit does not understand the extension {shortened(extension)}")
    body = _FREE_TEXT.sub("", extension.strip("|"))
    numbers = [int(number) for centres in _CENTRES.findall(body) for number in re.findall(r"\d+", centres)]
    if numbers and max(numbers) >= mol.GetNumAtoms():
        raise MoleculeError(f"cannot be read: the extension names atom {max(numbers)} of {mol.GetNumAtoms()}, from 0")
    if "r" in _FEATURE.findall(body):
        for atom in mol.GetAtoms():
            atom.SetChiralTag(ChiralType.CHI_UNSPECIFIED)
    mol = _without_relative_stereo(mol)
    Chem.SetDoubleBondNeighborDirections(mol)  # cis and trans in a ring, which `clean_stereo` reads from directions
    Chem.ClearMolSubstanceGroups(mol)
    if mol.GetNumConformers() and not mol.GetConformer().Is3D():
        mol.RemoveAllConformers()
    return mol


def _without_relative_stereo(mol: Chem.Mol) -> Chem.Mol:
    """Return a molecule without its stereo groups; centres of those that are not absolute are unspecified."""
    editable = Chem.RWMol(mol)
    for group in editable.GetStereoGroups():
        if group.GetGroupType() != Chem.StereoGroupType.STEREO_ABSOLUTE:
            for atom in group.GetAtoms():
                editable.GetAtomWithIdx(atom.GetIdx()).SetChiralTag(ChiralType.CHI_UNSPECIFIED)
            for bond in group.GetBonds():
                editable.GetBondWithIdx(bond.GetIdx()).SetStereo(BondStereo.STEREONONE)
    editable.SetStereoGroups([])
    return editable.GetMol()


# --- SDF as text: one mol block and its properties after another, never the whole file.
#
# The blocks stay text, so that one which RDKit cannot read is a row with an error and not the end of the file. Format:
# Dalby et al. 1992, https://doi.org/10.1021/ci00007a012.

_END_OF_RECORD = "$$$$"
LONGEST_RECORD = 2**22  # characters of a block and its properties
_END_OF_BLOCK = "M  END"


class SdfRecord(NamedTuple):
    """Record of an SDF.

    Attributes:
        block: the mol block as text, `M  END` included if it is there.
        properties: name to value, as written; a value of several lines is joined by line feeds.
        error: the reason if there is neither, or None.
        repeated: names of properties that are there twice.
    """

    block: str
    properties: dict[str, str]
    error: str | None = None
    repeated: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """First line of the block: the name of the molecule."""
        return self.block.partition("\n")[0].strip()


def sdf_records(lines: Iterable[str | None]) -> Iterator[SdfRecord]:
    """Yield the records of an SDF given line by line; any line ends; the last `$$$$` may be missing.

    A record of more than `LONGEST_RECORD` characters is an error alone; None stands for a line above the limit.
    """
    record: list[str] = []
    size, filled = 0, False
    for line in lines:
        line = line if line is None else line.rstrip("\r\n")
        if line is not None and line.startswith(_END_OF_RECORD):
            yield _parse(record, size)
            record, size, filled = [], 0, False
        else:
            size += LONGEST_RECORD + 1 if line is None else len(line) + 1
            filled |= line is None or bool(line.strip())
            if line is None or size > LONGEST_RECORD:
                record.clear()
            else:
                record.append(line)
    if filled:
        yield _parse(record, size)


def _parse(lines: list[str], size: int) -> SdfRecord:
    if size > LONGEST_RECORD:
        return SdfRecord("", {}, f"the record has more than {LONGEST_RECORD:,} characters; its cells are left out")
    end = next((i + 1 for i, line in enumerate(lines) if line.startswith(_END_OF_BLOCK)), None)
    if end is None:  # a damaged block: it ends where the properties begin
        end = next((i for i, line in enumerate(lines) if _property(line) is not None), len(lines))
    values: dict[str, list[str]] = {}
    value: list[str] = []
    repeated: dict[str, None] = {}
    for line in lines[end:]:
        if (name := _property(line)) is not None:
            if name in values:
                repeated[name] = None
            value = values[name] = []
        else:
            value.append(line)
    return SdfRecord(
        "\n".join([*lines[:end], ""]),
        {name: "\n".join(value).rstrip("\n") for name, value in values.items()},
        repeated=tuple(repeated),
    )


def _property(line: str) -> str | None:
    """Name of the property whose header this is, between the first `<` and the last `>`: `> 25 <logP> (DT12)`."""
    start, end = line.find("<"), line.rfind(">")
    return line[start + 1 : end] if line.startswith(">") and 0 < start < end else None


def molblock_smiles(block: str) -> str:
    """Return the canonical isomeric SMILES of a mol block, hydrogens implicit; errors as `read_molblock`."""
    return Chem.MolToSmiles(read_molblock(block))
