"""The foundation, a pretrained model that comes with gtx: its file, its card, and a filter of its corpus."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from gtx.base.errors import InputError

# --- The file, checked, and the data card.

FOUNDATION_MODEL = "foundation"
"""Name of the foundation model, which stands for its file.

A model file of that name is passed as `./foundation`, or as a `Path`.
"""

_FOLDER = Path(__file__).with_name("foundation")


def resolve_model_path(path: str | Path) -> Path:
    """Return the path of a model file, given the path itself or the name of the foundation model, whose file is
    compared with its checksum.
    """
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"expected the path of a model file, got a value of type {type(path).__name__}")
    if path != FOUNDATION_MODEL:
        return Path(path)
    file, expected = _FOLDER / "foundation.gtx", read_model_card()["sha256"]
    try:
        actual = hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError as reason:
        raise InputError(f"the foundation is not in this installation of gtx: {reason}") from None
    if actual != expected:
        raise InputError(f"{file} is damaged: its card says SHA-256 {expected}, it has {actual}; install gtx again")
    return file


def read_model_card() -> dict[str, Any]:
    """Read the model card of the foundation model: its SHA-256 hash, and a text for each heading."""
    try:
        return json.loads((_FOLDER / "foundation.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as reason:
        raise InputError(f"the card of the foundation is not in this installation of gtx: {reason}") from None


# --- A filter of the molecules in the corpus of the foundation.

ODDS = 256
"""Inverse of the rate of false positives of a filter."""


def make_filter(texts: Iterable[str]) -> np.ndarray:
    """Make a filter of n texts, uint8 `[2, n]`.

    The texts are hashed to 256 n numbers; the filter holds the differences of the sorted numbers, as low and high
    bytes. It is a Golomb-coded set whose code is left to compression, which needs some 10 bits a text; a Bloom filter
    takes 12.
    """
    known = set(texts)
    steps = np.diff(np.sort([_place(text, len(known)) for text in known]), prepend=0)
    return np.stack([steps & 255, steps >> 8]).astype(np.uint8)


def is_in_filter(texts_filter: np.ndarray, texts: Iterable[str]) -> np.ndarray:
    """Return whether each text is in a filter, bool `[n]`: always for its texts, for others once in 256 times."""
    low, high = texts_filter.astype(np.int64)
    known = (low + 256 * high).cumsum()
    wanted = np.array([_place(text, len(known)) for text in texts], dtype=np.int64)
    place = np.searchsorted(known, wanted)  # numpy's isin would sort the filter, which is sorted
    return (place < len(known)) & (known.take(place, mode="clip") == wanted)


def _place(text: str, texts: int) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") % (ODDS * texts)


def identity(smiles: str) -> tuple[str, str]:
    """Return the flat SMILES of a molecule's neutral parent and of its scaffold; empty where there is none."""
    from gtx.molecules import MoleculeError, murcko_scaffold
    from gtx.molecules.reading import flat_parent

    flat = scaffold = ""
    with suppress(MoleculeError):
        flat = flat_parent(smiles)
        scaffold = murcko_scaffold(flat)  # neutral, an atom may have more bonds than RDKit reads
    return flat, scaffold


def describe_pretraining_overlap(smiles: Iterable[str]) -> str:
    """Describe how many molecules of a table, and how many of their scaffolds, the foundation model has seen in
    pretraining; of reactions, how many of the molecules of both sides.
    """
    from gtx.molecules.reactions import list_molecules

    try:
        with np.load(_FOLDER / "seen.npz") as arrays:
            molecules, scaffolds = arrays["molecules"], arrays["scaffolds"]
    except (OSError, ValueError, KeyError) as reason:
        raise InputError(f"the filter of the foundation's corpus is not in this gtx: {reason}") from None
    identities = [identity(molecule) for text in smiles for molecule in list_molecules(text)]
    flat = [molecule for molecule, _ in identities if molecule]
    own = sorted({scaffold for _, scaffold in identities if scaffold})
    return (
        f"{is_in_filter(molecules, flat).sum():,} of these {len(identities):,} molecules, and on molecules with "
        f"{is_in_filter(scaffolds, own).sum():,} of their {len(own):,} scaffolds"
    )
