"""Texts to a store: molecules are read and featurised in worker processes, and the result is cached by content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from zlib import crc32

import numpy as np
from safetensors import SafetensorError

from gtx.data.store import MoleculeStore, saved_words
from gtx.data.workers import default_workers, in_workers
from gtx.errors import InputError
from gtx.molecules import Featuriser, FlatMolecules, featurise_texts
from gtx.molecules.featuriser import Text

Coordinates = Sequence[np.ndarray | None] | None


@dataclass(frozen=True)
class Featurised:
    """What became of n texts.

    Attributes:
        store: the m molecules that could be read, in order.
        smiles: per text, the canonical SMILES, or None; all None where none were asked for.
        errors: per text, why it could not be read, or None.
        warnings: per text, what was odd about it.
    """

    store: MoleculeStore
    smiles: list[str | None]
    errors: list[str | None]
    warnings: list[tuple[str, ...]]

    @property
    def good(self) -> np.ndarray:
        """int64 `[m]`: the numbers of the texts that could be read."""
        return np.flatnonzero([error is None for error in self.errors])

    @classmethod
    def join(cls, parts: Sequence[FlatMolecules]) -> Featurised:
        """The outcome of chunks, one after the other."""

        def chain(name: str) -> list:
            return [entry for part in parts for entry in getattr(part, name)]

        return cls(MoleculeStore.from_flat(parts), chain("smiles"), chain("errors"), chain("warnings"))


def chunk_size(featuriser: Featuriser) -> int:
    """Texts handed to a worker at a time: 500, but 20 where conformers are made, which is slow."""
    return 20 if featuriser.conformers else 500


def worth_workers(featuriser: Featuriser) -> int:
    """Chunks from which on worker processes, which take a second or two to start, are worth it."""
    return 2 if featuriser.conformers else 20


def featurise_stream(
    featuriser: Featuriser,
    chunks: Iterable[tuple[Sequence[Text], Coordinates]],
    workers: int | None = None,
    ahead: int = 2,
    *,
    smiles: bool = True,
) -> Iterator[FlatMolecules]:
    """Featurise chunks in worker processes, in order, never more than `ahead` chunks per worker in hand.

    Args:
        featuriser: how molecules are read.
        chunks: (texts, coordinates or None), drawn only as they are needed, so memory stays bounded.
        workers: processes; 0 works in this one. Default: all cores.
        ahead: chunks in hand per worker.
        smiles: find canonical SMILES too, which takes half as long as reading the molecules.
    """
    workers = default_workers() if workers is None else workers
    if workers < 0:
        raise InputError(f"workers: expected 0 or more, got {workers}")
    if workers == 0:
        for texts, coordinates in chunks:
            yield featurise_texts(featuriser, texts, coordinates, smiles=smiles)
        return
    featurise_texts(featuriser, [])  # compiles what is to be compiled, so that the workers need not, each for itself
    yield from in_workers(partial(featurise_texts, featuriser, smiles=smiles), chunks, workers, ahead)


def featurise(
    featuriser: Featuriser,
    texts: Sequence[Text],
    coordinates: Coordinates = None,
    *,
    workers: int | None = None,
    cache: str | Path | None = None,
    progress: bool = False,
    chunk: int | None = None,
    smiles: bool = True,
    to_first_error: bool = False,
) -> Featurised:
    """Featurise `texts`, or take them from the cache.

    Args:
        featuriser: how molecules are read.
        texts: SMILES or mol blocks; of several components, tuples of them.
        coordinates: per text, positions in Å as `Featuriser` takes them, or None.
        workers: processes; 0 works in this one. Default: as many as the cores, but none for less than `worth_workers`.
        cache: a folder; a result is kept there under a hash of the featuriser and of the texts and coordinates. What is
            damaged there is made anew.
        progress: show a progress bar.
        chunk: texts handed to a worker at a time; default as `chunk_size` says.
        smiles: find canonical SMILES too, which takes half as long as reading the molecules.
        to_first_error: stop after the chunk with the first text that cannot be read; the outcome ends there.
    """
    chunk = chunk or chunk_size(featuriser)
    file = None if cache is None else Path(cache) / f"{_key(featuriser, texts, coordinates, smiles)}.safetensors"
    if file is not None and (kept := _open(file)) is not None:
        return kept
    if workers is None and len(texts) < worth_workers(featuriser) * chunk:
        workers = 0
    chunks = (
        (texts[i : i + chunk], None if coordinates is None else coordinates[i : i + chunk])
        for i in range(0, max(len(texts), 1), chunk)
    )
    stream = featurise_stream(featuriser, chunks, workers, smiles=smiles)
    label = "Making conformers" if featuriser.conformers else "Reading molecules"
    parts = []
    for part in _tracked(stream, len(texts), label) if progress else stream:
        parts.append(part)
        if to_first_error and any(part.errors):
            return Featurised.join(parts)
    done = Featurised.join(parts)
    if file is not None:
        _save(done, file)
    return done


def _tracked(stream: Iterator[FlatMolecules], total: int, label: str) -> Iterator[FlatMolecules]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn(label), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=total)
        for part in stream:
            bar.advance(task, len(part.errors))
            yield part


def _key(featuriser: Featuriser, texts: Sequence[Text], coordinates: Coordinates, smiles: bool) -> str:
    digest = hashlib.sha256(featuriser.cache_key.encode())
    digest.update(b"columns have names" + (b"" if smiles else b"no SMILES"))
    for text in texts if not featuriser.components else chain.from_iterable(texts):
        encoded = text.encode("utf-8", "surrogateescape")
        digest.update(f"{len(encoded)} ".encode() + encoded)
    for position in coordinates or ():
        digest.update(b"none" if position is None else np.asarray(position, np.float32).tobytes())
    return digest.hexdigest()


def _save(done: Featurised, file: Path) -> None:
    words = {"smiles": done.smiles, "errors": done.errors, "warnings": done.warnings}
    done.store.save(file, {"texts": json.dumps([words, _checksum(done.store, words)])})


def _open(file: Path) -> Featurised | None:
    """What `_save` wrote; None where there is nothing, or it is damaged."""
    try:
        words, checksum = json.loads(saved_words(file)["texts"])
        store = MoleculeStore.open(file)
        if _checksum(store, words) != checksum:
            return None
        warnings = [tuple(entry) for entry in words["warnings"]]
        return Featurised(store, words["smiles"], words["errors"], warnings)
    except (OSError, SafetensorError, ValueError, LookupError, TypeError, AttributeError):
        return None


def _checksum(store: MoleculeStore, words: dict[str, list]) -> int:
    """CRC-32 of all that is kept: a damaged file has another."""
    return crc32(json.dumps(words).encode(), store.checksum())
