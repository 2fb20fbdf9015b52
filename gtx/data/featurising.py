"""Featurising: texts to molecules, in this process or in workers, with a cache."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar
from zlib import crc32

import numpy as np
import torch
from loky import ProcessPoolExecutor, get_reusable_executor
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from safetensors import SafetensorError
from torch_geometric.data import Data

from gtx.base.errors import InputError, printable
from gtx.data.store import MoleculeStore, stored_texts
from gtx.molecules import FeaturisedMolecules, Featuriser
from gtx.molecules.perception import Text, featurise_texts

# --- Worker processes: their number, a stream of work through them, and shutdown.

Result = TypeVar("Result")
Chunk = tuple[Any, ...]

DEADLY = "has ended two worker processes that read it, and was not tried again"
_POLL = 0.5  # seconds between a worker's checks that its parent still runs


def default_worker_count() -> int:
    """Return the default number of worker processes: the number of CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def make_process_pool(count: int, begin: Callable[..., object] | None = None, *arguments: Any) -> ProcessPoolExecutor:
    """Make a pool of worker processes that end with this process, even if it is killed by SIGKILL.

    The processes are those of loky, which need no `if __name__ == "__main__"` in a user's script. Each calls `begin`
    with the arguments at its start.
    """
    return ProcessPoolExecutor(count, initializer=_begin, initargs=(os.getpid(), begin, *arguments))


@contextmanager
def open_process_pool(count: int) -> Iterator[ProcessPoolExecutor]:
    """Make a pool of worker processes for a block, whose end ends them; one that dies is an `InputError`."""
    pool = make_process_pool(count)
    try:
        yield pool
    except BrokenProcessPool:
        raise InputError("a worker process died, perhaps for lack of memory; run the same command again") from None
    finally:
        pool.shutdown(kill_workers=True)


def _begin(parent: int, begin: Callable[..., object] | None, *arguments: Any) -> None:
    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_POLL)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    if begin is not None:
        begin(*arguments)


def map_in_workers(function: Callable[..., Result], chunks: Iterable[Chunk], workers: int) -> Iterator[Result]:
    """Call `function(*chunk)` for every chunk in worker processes, and yield the results in order.

    If a worker dies, each submitted chunk is computed again in a single process. If the single process dies too, each
    row of the chunk is tried alone. A text that kills a process is left out, and its entry in the `errors` of the
    result is `DEADLY`; it is an `InputError` if processes end that have begun nothing, or at a chunk of which no row is
    the cause, or whose result has no `errors`.

    Chunks are tuples of sequences with an entry for each row, or None; texts come first. Only a few are taken from the
    iterator before they are needed, so memory is bounded.
    """
    chunks = iter(chunks)
    single = _SingleWorker()

    def shared_pool() -> ProcessPoolExecutor:  # its processes outlive the call; broken ones are replaced
        return get_reusable_executor(workers, initializer=_begin, initargs=(os.getpid(), None))

    def submit(chunk: Chunk) -> Future:
        try:
            return shared_pool().submit(function, *chunk)
        except BrokenProcessPool as error:  # a process died just now
            failed: Future = Future()
            failed.set_exception(error)
            return failed

    waiting = deque((chunk, submit(chunk)) for chunk in islice(chunks, 2 * workers))
    try:
        while waiting:
            chunk, future = waiting.popleft()
            try:
                result = future.result()
            except BrokenProcessPool:
                result = _retry(single, function, chunk)
            waiting.extend((chunk, submit(chunk)) for chunk in islice(chunks, 1))
            yield result
    except BaseException:  # nobody reads on, after an error or a signal: the workers must not either
        shared_pool().shutdown(kill_workers=True)
        raise
    finally:
        single.close()


class _SingleWorker:
    """Single worker process, which is replaced when it has died."""

    pool: ProcessPoolExecutor | None = None

    def run(self, function: Callable[..., Result], chunk: Chunk) -> Result:
        """Return `function(*chunk)`; `BrokenProcessPool` if the process died."""
        if self.pool is None:
            self.pool = make_process_pool(1)
            try:
                self.pool.submit(os.getpid).result()
            except BrokenProcessPool:
                raise InputError("worker processes end before they begin: is there memory enough?") from None
        try:
            return self.pool.submit(function, *chunk).result()
        except BrokenProcessPool:
            self.close()
            raise

    def dies(self, function: Callable[..., object], chunk: Chunk) -> bool:
        """Return whether the process dies in `function(*chunk)`."""
        try:
            self.run(function, chunk)
        except BrokenProcessPool:
            return True
        return False

    def close(self) -> None:
        if self.pool is not None:
            self.pool.shutdown(kill_workers=True)
            self.pool = None


def _retry(single: _SingleWorker, function: Callable[..., Result], chunk: Chunk) -> Result:
    """Return the result of a chunk that a worker was processing when it died."""
    with suppress(BrokenProcessPool):
        return single.run(function, chunk)
    by_row = all(column is None or isinstance(column, Sequence) for column in chunk)
    rows = range(len(chunk[0]) if by_row else 0)
    deadly = [i for i in rows if single.dies(function, tuple(column and column[i : i + 1] for column in chunk))]
    if deadly:
        texts = list(chunk[0])
        for i in deadly:
            texts[i] = "" if isinstance(texts[i], str) else ("",) * len(texts[i])
        with suppress(BrokenProcessPool):
            result = single.run(function, (texts, *chunk[1:]))
            if hasattr(result, "errors"):
                for i in deadly:
                    result.errors[i] = DEADLY
                return result
        raise InputError(f"{printable(str(chunk[0][deadly[0]]))} {DEADLY}")
    raise InputError(
        f"worker processes end at {f'{len(rows)} rows together, and at none alone' if rows else 'the same work'}: "
        "is there memory enough?"
    )


# --- Texts to a store: molecules are read and featurised in worker processes, and the result is cached by content.

Coordinates = Sequence[np.ndarray | None] | None


@dataclass(frozen=True)
class FeaturisationResult:
    """Result of featurising n texts: the readable molecules, and the errors and warnings of each text.

    Attributes:
        store: the m readable molecules, in order.
        smiles: canonical SMILES of each text, or None; all None if canonical SMILES were not requested.
        errors: for each text, the reason why the text could not be read, or None.
        warnings: list of warnings for each text.
    """

    store: MoleculeStore
    smiles: list[str | None]
    errors: list[str | None]
    warnings: list[tuple[str, ...]]

    @property
    def good(self) -> np.ndarray:
        """Indices of the texts that could be read, int64 `[m]`."""
        return np.flatnonzero([error is None for error in self.errors])

    @classmethod
    def join(cls, parts: Sequence[FeaturisedMolecules]) -> FeaturisationResult:
        """Concatenate the results of several chunks."""

        def chain(name: str) -> list:
            return [entry for part in parts for entry in getattr(part, name)]

        return cls(MoleculeStore.from_flat(parts), chain("smiles"), chain("errors"), chain("warnings"))


def default_chunk_size(featuriser: Featuriser) -> int:
    """Return the number of texts that a worker process featurises at a time: 500, or 20 if conformers are generated."""
    return 20 if featuriser.conformers else 500


def min_chunks_for_workers(featuriser: Featuriser) -> int:
    """Return the smallest number of chunks for which worker processes save time; starting the processes takes one or
    two seconds.
    """
    return 2 if featuriser.conformers else 20


def featurise_stream(
    featuriser: Featuriser,
    chunks: Iterable[tuple[Sequence[Text], Coordinates]],
    workers: int,
    *,
    smiles: bool = True,
) -> Iterator[FeaturisedMolecules]:
    """Featurise chunks of texts and their coordinates in worker processes, and yield the results in order.

    Chunks are taken from the iterator only when needed, so that memory is bounded. With 0 workers the current process
    reads. Canonical SMILES (`smiles`) take half as long as reading the molecules.
    """
    if workers < 0:
        raise InputError(f"workers: expected 0 or more, got {workers}")
    if workers == 0:
        for texts, coordinates in chunks:
            yield featurise_texts(featuriser, texts, coordinates, smiles=smiles)
        return
    featurise_texts(featuriser, [])  # compiles what is to be compiled, so that the workers need not, each for itself
    yield from map_in_workers(partial(featurise_texts, featuriser, smiles=smiles), chunks, workers)


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
) -> FeaturisationResult:
    """Featurise SMILES or mol blocks into a `MoleculeStore`, or load the result from the cache.

    Args:
        featuriser: settings of reading.
        texts: SMILES or mol blocks; for several components per row, tuples of texts.
        coordinates: for each text, positions of the atoms in Å as `Featuriser` expects them, or None.
        workers: number of processes; 0 uses the current process. By default one process per core, or 0 for fewer chunks
            than `min_chunks_for_workers`.
        cache: folder of stored results, each named by a hash of the featuriser, the texts and the coordinates. A
            damaged file is replaced.
        progress: whether a progress bar is shown.
        chunk: number of texts in a chunk, by default `default_chunk_size`.
        smiles: whether canonical SMILES are also computed, which takes half as long as reading the molecules.
        to_first_error: stop after the chunk with the first text that cannot be read; the result ends with this chunk.

    Raises:
        InputError: `texts` is one text, or has another object among texts; or there are more or fewer coordinates.
    """
    for i, text in enumerate([None] if isinstance(texts, str) else texts):
        if not isinstance(text, (str, tuple, list)):
            got = "one text" if isinstance(texts, str) else f"{printable(repr(text))} at {i}, counted from 0"
            raise InputError(f"expected a list of SMILES or mol blocks, got {got}")
    if coordinates is not None and len(coordinates) != len(texts):
        raise InputError(f"expected coordinates of {len(texts)} molecules, got {len(coordinates)}")
    chunk = chunk or default_chunk_size(featuriser)
    file = None if cache is None else Path(cache) / f"{_key(featuriser, texts, coordinates, smiles)}.safetensors"
    if file is not None and (cached := _open(file)) is not None:
        return cached
    if workers is None:
        workers = default_worker_count() if len(texts) >= min_chunks_for_workers(featuriser) * chunk else 0
    chunks = (
        (texts[i : i + chunk], None if coordinates is None else coordinates[i : i + chunk])
        for i in range(0, max(len(texts), 1), chunk)
    )
    stream = featurise_stream(featuriser, chunks, workers, smiles=smiles)
    label = "Making conformers" if featuriser.conformers else "Reading molecules"
    parts = []
    for part in show_progress(stream, len(texts), label, lambda part: len(part.errors)) if progress else stream:
        parts.append(part)
        if to_first_error and any(part.errors):
            return FeaturisationResult.join(parts)
    done = FeaturisationResult.join(parts)
    if file is not None:
        _save(done, file)
    return done


def show_progress(
    parts: Iterable[Result], total: int | None, label: str, size: Callable[[Result], int]
) -> Iterator[Result]:
    """Yield parts of some work, of a size each, with a progress bar on standard error."""
    columns = TextColumn(label), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=total)
        for part in parts:
            yield part
            bar.advance(task, size(part))


def _key(featuriser: Featuriser, texts: Sequence[Text], coordinates: Coordinates, smiles: bool) -> str:
    digest = hashlib.sha256(json.dumps([featuriser.cache_key, smiles, list(texts)]).encode())
    for position in coordinates or ():  # with its size: no two molecules may share the numbers in another way
        numbers = b"" if position is None else np.asarray(position, np.float32).tobytes()
        digest.update(f"{None if position is None else len(numbers)} ".encode() + numbers)
    return digest.hexdigest()


def _save(done: FeaturisationResult, file: Path) -> None:
    texts = {"smiles": done.smiles, "errors": done.errors, "warnings": done.warnings}
    done.store.save(file, {"texts": json.dumps([texts, _checksum(done.store, texts)])})


def _open(file: Path) -> FeaturisationResult | None:
    """Open a file that `_save` wrote; return None if there is none, or it is damaged."""
    try:
        texts, checksum = json.loads(stored_texts(file)["texts"])
        store = MoleculeStore.open(file)
        if _checksum(store, texts) != checksum:
            return None
        warnings = [tuple(entry) for entry in texts["warnings"]]
        return FeaturisationResult(store, texts["smiles"], texts["errors"], warnings)
    except (OSError, SafetensorError, ValueError, LookupError, TypeError, AttributeError):
        return None


def _checksum(store: MoleculeStore, texts: Mapping[str, object]) -> int:
    """Return the CRC-32 of the molecules and of the texts beside them, by which a damaged file is found."""
    return crc32(json.dumps(texts).encode(), store.checksum())


# --- Molecules of PyG's own data sets, read anew.


def from_pyg(molecules: Iterable[Data], featuriser: Featuriser | None = None) -> MoleculeStore:
    """Featurise PyG `Data` objects that hold a SMILES, such as those of `from_smiles` and `MoleculeNet`.

    gtx reads each molecule again from its SMILES, because PyG's codes of atoms and bonds differ from those of gtx.

    Args:
        molecules: `Data` objects with an attribute `smiles`; all or none have targets `y`, T numbers each.
        featuriser: settings for reading molecules; by default `Featuriser()`.

    Returns:
        The molecules in the same order; with targets `[M, T]` if they have any.

    Raises:
        InputError: a molecule has no SMILES, or one that cannot be read, or not as many targets as the others.
    """
    molecules = list(molecules)
    texts: list[str] = []
    for number, molecule in enumerate(molecules):
        text = getattr(molecule, "smiles", None)
        if not isinstance(text, str):
            expected = (
                "an attribute smiles that is a text, as torch_geometric.utils.from_smiles and MoleculeNet give it"
            )
            raise InputError(f"molecule {number}: expected {expected}, got {printable(repr(text))}")
        texts.append(text)
    done = featurise(featuriser or Featuriser(), texts)
    if bad := [number for number, error in enumerate(done.errors) if error]:
        first = f"molecule {bad[0]}, {printable(texts[bad[0]])!r}, {done.errors[bad[0]]}"
        raise InputError(f"{len(bad)} of {len(texts)} molecules cannot be read: {first}")
    targets = [getattr(molecule, "y", None) for molecule in molecules]
    sizes = [None if y is None else y.numel() for y in targets]
    if len(set(sizes)) > 1:
        other = next(number for number, size in enumerate(sizes) if size != sizes[0])
        raise InputError(f"molecule {other}: expected as many targets as molecule 0, {sizes[0]}, got {sizes[other]}")
    rows = [y.detach().double().reshape(-1).cpu() for y in targets if y is not None]
    return done.store.with_targets(torch.stack(rows)) if rows else done.store
