"""Tables to a store on disk: molecules as flat tensors, shard by shard, and beside each shard its rows as Parquet."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from safetensors import SafetensorError

from gtx.data.columns import Row, Table
from gtx.data.featurising import chunk_size, default_workers
from gtx.data.ledger import Ledger
from gtx.data.store import MoleculeStore, saved_words
from gtx.data.table_writer import TableWriter, fresh_name, output_header, output_row
from gtx.data.tables import open_table
from gtx.data.targets import with_components
from gtx.errors import InputError
from gtx.library.tables import FACTS, Done, Journal, Library, Shard, check_outside, check_unchanged, held
from gtx.library.workers import (
    Engine,
    Here,
    LibraryOutcome,
    Processes,
    ShardJob,
    ShardWorker,
    done_with,
    pass_through,
)
from gtx.molecules import Featuriser, FlatMolecules, featurise_texts

MOLECULES = "_molecules"
"""The folder of the tensors, which readers of data sets pass over."""
SHARD_ROWS = 10_000
"""Of a shard: some 13 MB of drug-like molecules."""


def prepare(
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    featuriser: Featuriser | None = None,
    smiles_column: str | None = None,
    on_error: Literal["report", "fail"] = "report",
    workers: int | None = None,
    shard_rows: int = SHARD_ROWS,
    progress: bool = False,
) -> LibraryOutcome:
    """Read the molecules of a table, or of all tables of a folder, once, for trainings of any number.

    Each shard becomes two files. `a.csv-000000000000.parquet` has a row for each row of the table: its cells, the
    canonical SMILES, the error and the warning; the rows without an error are the molecules, in order.
    `_molecules/a.csv-000000000000.safetensors` has these as `MoleculeStore.save` writes them. It is written last, and a
    shard without it is not there.

    Called again, it goes on: shards that are there are not made anew. Where a worker dies, its shard is given to
    another one, and a row of which two workers died gets an error. Memory depends neither on the number of files nor on
    their lengths.

    Args:
        source: a folder, or one file.
        out: the folder of the store.
        featuriser: how molecules are read; default: as `gtx train` reads them.
        smiles_column: default as `gtx.data.open_table` says.
        on_error: "fail" stops at the first row that cannot be used.
        workers: processes. Default: all cores. 0 works in this process.
        shard_rows: rows of a shard; training holds a few shards at a time in memory.
        progress: show a progress bar.

    Raises:
        InputError: the folder or an option cannot be used, `out` holds something else, or nothing can be written; with
            "fail", a row cannot be used. What has been done until then stays.
    """
    if shard_rows < 1:
        raise InputError(f"shard_rows: expected 1 or more, got {shard_rows}")
    featuriser = featuriser or Featuriser()
    library, folder = Library.at(source), Path(out)
    check_outside(source, folder, "a store")
    facts = {
        "library": str(library.root.resolve()),
        "shard_rows": shard_rows,
        "smiles_column": smiles_column,
        "featuriser": featuriser.to_dict(),
        "hash": featuriser.hash,
        "reading": featuriser.cache_key,
    }
    job = Preparation(
        root=library.root.resolve(),
        parts=folder.resolve(),
        on_error=on_error,
        featuriser=featuriser,
        smiles_column=smiles_column,
    )
    outcome = LibraryOutcome(folder, len(library.files), library.left_out, problems=library.problems)

    def engine(several: bool) -> Engine:
        if workers == 0 or not several:
            return Here(job, job.worker)
        featurise_texts(featuriser, [])  # compiles what is to be compiled, so that the workers need not
        return Processes(job, default_workers() if workers is None else workers)

    with held(folder, facts, "another store"):
        label = "Reading molecules" if progress else None
        pass_through(library, shard_rows, _done(library, folder), job.opened, engine, outcome, label=label)
    return outcome


@dataclass(frozen=True, kw_only=True)
class Preparation(ShardJob):
    """Reading of all shards.

    Attributes:
        featuriser, smiles_column: as in `prepare`.
    """

    featuriser: Featuriser
    smiles_column: str | None = None

    def opened(self, path: Path, first: int = 0) -> Table:
        """A table, its rows from `first` on."""
        own, *others = self.featuriser.components or (self.smiles_column,)
        table = open_table(path, own, first=first)
        return with_components(table, others) if others else table

    def worker(self) -> ShardReader:
        """A worker."""
        return ShardReader(self, self.opened)


class ShardReader(ShardWorker):
    """Reads the molecules of one shard after the other, and writes both files of it."""

    def write(self, shard: Shard, table: Table, journal: Journal, ledger: Ledger) -> Done:
        path, parts, size = self.job.parts / shard.part, [], chunk_size(self.job.featuriser)
        smiles = fresh_name(table.columns, "canonical_smiles")
        header = output_header(table.columns, [smiles])
        tensors = (self.job.parts / MOLECULES / shard.part).with_suffix(".safetensors")
        tensors.unlink(missing_ok=True)  # of a shard that was damaged
        with TableWriter(path, header, schema=table.schema) as writer:
            for rows in journal.watched(table, size, lambda row: self._read([row])).chunks(size):
                parts.append(found := self._read(rows))
                ledger.read(rows, table.smiles_column, found.errors, found.warnings)
                for row, text in zip(rows, found.smiles, strict=True):
                    writer.write(output_row(row, [text], *ledger.pop(row.number)), row.record)
            done = done_with(shard, ledger, sum(len(found.atom_counts) for found in parts))
        words = {"shard": shard, "done": done, "column": table.smiles_column, "smiles": smiles, "error": header[-2]}
        MoleculeStore.from_flat(parts).save(tensors, {name: json.dumps(word) for name, word in words.items()})
        return done

    def _read(self, rows: Sequence[Row]) -> FlatMolecules:
        coordinates = [row.coordinates for row in rows] if any(row.coordinates is not None for row in rows) else None
        return featurise_texts(self.job.featuriser, [row.readable for row in rows], coordinates)


class PreparedShard(NamedTuple):
    """A shard that is done.

    Attributes:
        shard, done: as they are known.
        tensors, rows: the files of the molecules and of the rows.
        column: of the rows, the one with the molecules as they were given.
        smiles, error: the columns of canonical SMILES and of errors.
    """

    shard: Shard
    done: Done
    tensors: Path
    rows: Path
    column: str
    smiles: str
    error: str


def prepared_shards(folder: Path) -> Iterator[PreparedShard]:
    """The shards of a store that are whole, in the order of their names."""
    for tensors in sorted((folder / MOLECULES).rglob("*.safetensors")):
        try:
            words = saved_words(tensors)
            shard, done, *names = (json.loads(words[name]) for name in ("shard", "done", "column", "smiles", "error"))
            found = PreparedShard(Shard(*shard), Done(*done), tensors, folder / Shard(*shard).part, *names)
        except (OSError, SafetensorError, ValueError, LookupError, TypeError):
            continue
        if found.rows.is_file():
            yield found


def is_store(source: str | os.PathLike[str]) -> bool:
    """Whether this is a folder that `prepare` made."""
    return Path(source).is_dir() and "hash" in store_facts(source)


def store_facts(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """What `prepare` noted of a store: its options; empty if the folder is none."""
    file = Path(folder) / FACTS
    try:
        found = json.loads(file.read_text()) if file.is_file() else {}
    except ValueError:
        raise InputError(f"{file} is damaged: prepare the molecules again") from None
    return found if isinstance(found, dict) else {}


def store_marks(folder: str | os.PathLike[str]) -> str:
    """What tells the content of a store from any other: names, counts, sizes and times of its files, as a hash."""
    digest = hashlib.sha256()
    for made in prepared_shards(Path(folder)):
        stat = made.rows.stat()
        digest.update(f"{made.shard.part} {made.done} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _done(library: Library, folder: Path) -> dict[Shard, Done]:
    """The shards that are done already. One that cannot be read is done anew.

    Raises:
        InputError: one belongs to a file that has changed, or is no more.
    """
    found = {}
    for made in prepared_shards(folder):
        check_unchanged(library, made.shard, made.tensors)
        found[made.shard] = made.done
    return found
