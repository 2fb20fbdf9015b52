"""SDF as text: one mol block and its properties after another, never the whole file.

The blocks stay text, so that one which RDKit cannot read is a row with an error and not the end of the file. Format:
Dalby et al. 1992, https://doi.org/10.1021/ci00007a012.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rdkit import Chem

from gtx.molecules.reading import read_molblock

_PROPERTY = re.compile(r">.*?<(.*)>")  # `> 25 <logP> (DT12)`: the name stands between the angle brackets
_END_OF_RECORD = "$$$$"
_END_OF_BLOCK = "M  END"


class SdfRecord(NamedTuple):
    """One molecule of an SDF.

    Attributes:
        block: the mol block as text, `M  END` included if it is there.
        properties: name to value, as written; a value of several lines is joined by line feeds.
    """

    block: str
    properties: dict[str, str]

    @property
    def title(self) -> str:
        """The first line of the block, where the molecule's name stands."""
        return self.block.partition("\n")[0].strip()


def sdf_records(lines: Iterable[str]) -> Iterator[SdfRecord]:
    """The records of an SDF given line by line; any line ends; the last `$$$$` may be missing."""
    record: list[str] = []
    for line in lines:
        line = line.rstrip("\r\n")
        if line.startswith(_END_OF_RECORD):
            yield _parse(record)
            record = []
        else:
            record.append(line)
    if any(map(str.strip, record)):
        yield _parse(record)


def _parse(lines: list[str]) -> SdfRecord:
    end = next((i + 1 for i, line in enumerate(lines) if line.startswith(_END_OF_BLOCK)), None)
    if end is None:  # a damaged block: it ends where the properties begin
        end = next((i for i, line in enumerate(lines) if _PROPERTY.match(line)), len(lines))
    values: dict[str, list[str]] = {}
    value: list[str] = []
    for line in lines[end:]:
        if name := _PROPERTY.match(line):
            value = values[name[1]] = []
        else:
            value.append(line)
    return SdfRecord(
        "\n".join([*lines[:end], ""]),
        {name: re.sub(r"\n+\Z", "", "\n".join(value)) for name, value in values.items()},
    )


def molblock_smiles(block: str) -> str:
    """Canonical isomeric SMILES of a mol block, hydrogens implicit; raises `MoleculeError` as `read_molblock` does."""
    return Chem.MolToSmiles(read_molblock(block))
