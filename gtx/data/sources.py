"""Sources of tables by name: a file, standard input, or a SMILES; and errors for names that do not exist."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from itertools import islice

from gtx.errors import InputError, did_you_mean, printable

_FILE_NAME = re.compile(
    r"\.(csv|tsv|tab|txt|dat|smi|smiles|ism|sdf?|mol2?|pdb|xyz|parquet|pq|xlsx?|json|gtx|npz|gz|zip)$", re.IGNORECASE
)
_MOST_FILES = 1000  # of a folder, among which a near name is looked for


def check_source(source: str | os.PathLike[str], sets: Iterable[str] = ()) -> None:
    """Refuse what is neither a file nor "-" nor a SMILES that can be read.

    Args:
        source: what `gtx.data.open_table` is given.
        sets: names of data sets that could have been meant.

    Raises:
        InputError: there is no such thing; the message has the nearest name among the sets and the files of the folder.
    """
    name, sets = os.fspath(source), list(sets)
    if name.endswith(".gtx") and os.path.isfile(name):
        raise InputError(f"{name} is a model file; a table of molecules was expected in its place")
    if name == "-" or os.path.isfile(name) or os.path.isdir(name):
        return
    if os.path.exists(name):  # a device or a pipe, which may never end and cannot be read twice
        raise InputError(f"{name} is no file; what a pipe brings is read as standard input, with - in its place")
    near = did_you_mean(name, [*sets, *_sibling_files(name)])
    if isinstance(source, os.PathLike) or _looks_like_path(name):
        raise InputError(f"no such file: {name}{near}")
    from gtx.molecules import MoleculeError, read_smiles

    try:
        read_smiles(name)
    except MoleculeError as reason:
        absent = f"there is no file {'or public set ' if sets else ''}{printable(name)!r}"
        raise InputError(f"{absent}{f'{near} As' if near else ', and as'} a SMILES it {reason}") from None


def check_smiles(every: Iterable[str]) -> None:
    """Refuse the name of a file among several SMILES; one that cannot be read is an error of its row.

    Raises:
        InputError: there is one.
    """
    for name in every:
        if name == "-" or os.path.exists(name) or _looks_like_path(name):
            raise InputError(f"several molecules must be SMILES, and {name} is the name of a file: give one file alone")


def _looks_like_path(name: str) -> bool:
    return bool(_FILE_NAME.search(name)) or name.startswith(("/", "~", "./", "../")) or "_" in name


def _sibling_files(name: str) -> list[str]:
    """Return the files of the folder where a file is said to be, written the same way."""
    folder = os.path.dirname(name)
    try:
        with os.scandir(folder or ".") as entries:
            return [os.path.join(folder, entry.name) for entry in islice(entries, _MOST_FILES)]
    except (OSError, ValueError):  # a NUL is in no name
        return []
