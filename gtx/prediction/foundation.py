"""The foundation that comes with gtx, which molecules it has seen, and model files that training starts from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gtx.errors import InputError

# --- The pretrained model that comes with gtx: its file, checked, and its data card.

FOUNDATION = "foundation"
"""The word that names it, wherever a model file does; a file of that name is `./foundation`, or a `Path`."""

_FOLDER = Path(__file__).with_name("foundation")


def model_path(path: str | Path) -> Path:
    """The file that a path or the word `foundation` names.

    Raises:
        InputError: the file that comes with gtx is not there, or not what its card says.
    """
    if path != FOUNDATION:
        return Path(path)
    file, expected = _FOLDER / "foundation.gtx", foundation_card()["sha256"]
    try:
        found = hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError as reason:
        raise InputError(f"the foundation is not in this installation of gtx: {reason}") from None
    if found != expected:
        raise InputError(f"{file} is damaged: its card says SHA-256 {expected}, it has {found}; install gtx again")
    return file


def foundation_card() -> dict[str, Any]:
    """Read the card of the foundation: `sha256`, and texts by heading.

    Raises:
        InputError: it is not there, or damaged.
    """
    try:
        return json.loads((_FOLDER / "card.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as reason:
        raise InputError(f"the foundation's card is not in this installation of gtx: {reason}") from None


# --- Which molecules are in the corpus of the foundation, without the corpus.

ODDS = 256
"""A text that is not in a filter is taken for one that is once in so many times."""


def packed(texts: Iterable[str]) -> np.ndarray:
    """A filter of n texts: their hashes out of 256 n numbers, sorted, as steps from one to the next, whose low and high
    bytes are uint8 `[2, n]`.

    A Golomb-coded set whose code is left to compression, which needs some 10 bits a text; a Bloom filter takes 12.
    """
    known = set(texts)
    steps = np.diff(np.sort([_place(text, len(known)) for text in known]), prepend=0)
    return np.stack([steps & 255, steps >> 8]).astype(np.uint8)


def within(filtered: np.ndarray, texts: Iterable[str]) -> np.ndarray:
    """Whether each text is one of those that were `packed`: bool `[n]`. One that was is always found."""
    low, high = filtered.astype(np.int64)
    return np.isin([_place(text, len(low)) for text in texts], (low + 256 * high).cumsum())


def _place(text: str, texts: int) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") % (ODDS * texts)


def identity(smiles: str) -> tuple[str, str]:
    """The flat SMILES of a molecule's neutral parent and of its scaffold; empty for what there is none of."""
    from gtx.molecules import MoleculeError, scaffold
    from gtx.molecules.reading import flat_parent

    try:
        flat = flat_parent(smiles)
    except MoleculeError:
        return "", ""
    return flat, scaffold(flat)


def describe_seen(smiles: Iterable[str]) -> str:
    """How many molecules, and how many of their scaffolds, are among those that the foundation learned from.

    Raises:
        InputError: the filter is not there, or damaged.
    """
    try:
        with np.load(_FOLDER / "seen.npz") as arrays:
            molecules, scaffolds = arrays["molecules"], arrays["scaffolds"]
    except (OSError, ValueError, KeyError) as reason:
        raise InputError(f"the filter of the foundation's corpus is not in this gtx: {reason}") from None
    identities = [identity(text) for text in smiles]
    flat, own = (
        ([text for text in texts if text] for texts in zip(*identities, strict=True)) if identities else ([], [])
    )
    distinct = sorted(set(own))
    return (
        f"{within(molecules, flat).sum():,} of these {len(identities):,} molecules, and "
        f"{within(scaffolds, distinct).sum():,} of their {len(distinct):,} scaffolds"
    )


# --- Answers with more columns after their own.


@dataclass(frozen=True)
class ExtendedAnswers:
    """Answers, see `gtx.tasks.task.Answers`, and columns that follow theirs.

    Attributes:
        answers: of m molecules; whatever they have, this has too.
        further: `[m]` each.
    """

    answers: Any
    further: list[np.ndarray]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.answers, name)

    def columns(self) -> list[np.ndarray]:
        """Return the columns of the answers, then the added ones."""
        return [*self.answers.columns(), *self.further]
