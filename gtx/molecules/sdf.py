"""SDF as text: one mol block and its properties after another, never the whole file.

The blocks stay text, so that one which RDKit cannot read is a row with an error and not the end of the file. Format:
Dalby et al. 1992, https://doi.org/10.1021/ci00007a012.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rdkit import Chem

from gtx.molecules.reading import read_molblock

_END_OF_RECORD = "$$$$"
LONGEST_RECORD = 2**22  # characters of a block and its properties
_END_OF_BLOCK = "M  END"


class SdfRecord(NamedTuple):
    """Record of an SDF.

    Attributes:
        block: the mol block as text, `M  END` included if it is there.
        properties: name to value, as written; a value of several lines is joined by line feeds.
        error: the reason if there is neither, or None.
    """

    block: str
    properties: dict[str, str]
    error: str | None = None

    @property
    def title(self) -> str:
        """The first line of the block, where the molecule's name stands."""
        return self.block.partition("\n")[0].strip()


def sdf_records(lines: Iterable[str | None]) -> Iterator[SdfRecord]:
    """Yield the records of an SDF given line by line; any line ends; the last `$$$$` may be missing.

    Of a record of more than `LONGEST_RECORD` characters nothing is kept but the error; None is a line too long to be
    kept.
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
            if size <= LONGEST_RECORD:
                record.append(line)
            else:
                record.clear()
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
    for line in lines[end:]:
        if (name := _property(line)) is not None:
            value = values[name] = []
        else:
            value.append(line)
    return SdfRecord(
        "\n".join([*lines[:end], ""]),
        {name: "\n".join(value).rstrip("\n") for name, value in values.items()},
    )


def _property(line: str) -> str | None:
    """Name of the property whose header this is, between the first `<` and the last `>`: `> 25 <logP> (DT12)`."""
    start, end = line.find("<"), line.rfind(">")
    return line[start + 1 : end] if line.startswith(">") and 0 < start < end else None


def molblock_smiles(block: str) -> str:
    """Canonical isomeric SMILES of a mol block, hydrogens implicit; raises `MoleculeError` as `read_molblock` does."""
    return Chem.MolToSmiles(read_molblock(block))
