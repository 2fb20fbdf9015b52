"""Reading of tables into a store on disk: shards of molecules as flat tensors, each with its rows as Parquet."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from safetensors import SafetensorError

from gtx.bulk.tables import FACTS, Journal, Library, Shard, ShardResult, check_outside, check_unchanged, owned_folder
from gtx.bulk.workers import (
    Engine,
    InProcess,
    LibraryOutcome,
    Processes,
    ShardJob,
    ShardWorker,
    process_library,
    shard_result,
)
from gtx.data.columns import Row, Table
from gtx.data.featurising import default_chunk_size, default_worker_count
from gtx.data.row_log import RowLog
from gtx.data.store import MoleculeStore, stored_texts
from gtx.data.table_writer import TableWriter, find_unused_column_name, output_header, output_row
from gtx.data.tables import open_table
from gtx.data.targets import add_component_columns
from gtx.errors import InputError
from gtx.molecules import FeaturisedMolecules, Featuriser
from gtx.molecules.perception import featurise_texts

MOLECULES = "_molecules"
"""Folder of the tensors; readers of data sets skip it because of the underscore."""
SHARD_ROWS = 10_000
"""Rows of a shard: some 13 MB of drug-like molecules."""


def prepare_molecule_store(
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
    """Featurise the molecules of a table, or of all tables of a folder, into a store on disk for training.

    Each shard becomes two files. `a.csv-000000000000.parquet` has a row for each row of the table: its cells, the
    canonical SMILES, the error and the warning; the rows without an error are the molecules, in order.
    `_molecules/a.csv-000000000000.safetensors` has the molecules as `MoleculeStore.save` writes them. The file of
    molecules is written last, so a shard with this file is complete.

    A second call resumes an interrupted preparation and keeps finished shards. If a worker dies, another worker
    processes the shard, and a row that kills two workers gets an error. The memory does not depend on the number and
    the lengths of the tables.

    Args:
        source: path of a folder, or of one file.
        out: path of the folder of the store.
        featuriser: settings for reading molecules; by default those of `gtx train`.
        smiles_column: name of the column of SMILES; for the default, see `gtx.data.open_table`.
        on_error: "fail" stops at the first row that cannot be used; "report" records the error and continues.
        workers: number of processes; by default one per core; 0 for the current process.
        shard_rows: number of rows of a shard; training loads a few shards at a time.
        progress: whether a progress bar is shown.

    Raises:
        InputError: the folder or an option cannot be used, `out` holds something else, or nothing can be written; with
            "fail", a row cannot be used. Finished shards stay.
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
            return InProcess(job, job.worker)
        featurise_texts(featuriser, [])  # compiles the loops, so that the workers find them in the cache
        return Processes(job, default_worker_count() if workers is None else workers)

    with owned_folder(folder, facts, "another store"):
        label = "Reading molecules" if progress else None
        process_library(
            library, shard_rows, _finished_shards(library, folder), job.opened, engine, outcome, label=label
        )
    return outcome


@dataclass(frozen=True, kw_only=True)
class Preparation(ShardJob):
    """Job of reading all shards.

    Attributes:
        featuriser, smiles_column: as in `prepare_molecule_store`.
    """

    featuriser: Featuriser
    smiles_column: str | None = None

    def opened(self, path: Path, first: int = 0) -> Table:
        """Open a table, with its rows from `first` on."""
        own, *others = self.featuriser.components or (self.smiles_column,)
        table = open_table(path, own, first=first)
        return add_component_columns(table, others) if others else table

    def worker(self) -> ShardReader:
        """Make a worker."""
        return ShardReader(self, self.opened)


class ShardReader(ShardWorker):
    """Worker that reads the molecules of shards, and writes both files of each."""

    job: Preparation

    def write(self, shard: Shard, table: Table, journal: Journal, row_log: RowLog) -> ShardResult:
        path, size = self.job.parts / shard.part, default_chunk_size(self.job.featuriser)
        parts: list[FeaturisedMolecules] = []
        smiles = find_unused_column_name(table.columns, "canonical_smiles")
        header = output_header(table.columns, [smiles])
        tensors = (self.job.parts / MOLECULES / shard.part).with_suffix(".safetensors")
        tensors.unlink(missing_ok=True)  # of a damaged shard
        with TableWriter(path, header, schema=table.schema) as writer:
            for rows in journal.tracked(table, size, lambda row: self._read([row])).chunks(size):
                parts.append(found := self._read(rows))
                row_log.read(rows, table.smiles_column, found.errors, found.warnings)
                for row, text in zip(rows, found.smiles, strict=True):
                    writer.write(output_row(row, [text], *row_log.pop(row.number)), row.record)
            done = shard_result(shard, row_log, sum(len(found.atom_counts) for found in parts))
        words = {"shard": shard, "done": done, "column": table.smiles_column, "smiles": smiles, "error": header[-2]}
        MoleculeStore.from_flat(parts).save(tensors, {name: json.dumps(word) for name, word in words.items()})
        return done

    def _read(self, rows: Sequence[Row]) -> FeaturisedMolecules:
        coordinates = [row.coordinates for row in rows] if any(row.coordinates is not None for row in rows) else None
        return featurise_texts(self.job.featuriser, [row.readable for row in rows], coordinates)


class PreparedShard(NamedTuple):
    """Finished shard of a store.

    Attributes:
        shard, done: its rows and counts.
        tensors, rows: the files of the molecules and of the rows.
        column: the column of the molecules as they were in the table.
        smiles, error: the columns of canonical SMILES and of errors.
    """

    shard: Shard
    done: ShardResult
    tensors: Path
    rows: Path
    column: str
    smiles: str
    error: str


def prepared_shards(folder: Path) -> Iterator[PreparedShard]:
    """Yield the finished shards of a store, sorted by name."""
    for tensors in sorted((folder / MOLECULES).rglob("*.safetensors")):
        try:
            words = stored_texts(tensors)
            shard, done, *names = (json.loads(words[name]) for name in ("shard", "done", "column", "smiles", "error"))
            found = PreparedShard(Shard(*shard), ShardResult(*done), tensors, folder / Shard(*shard).part, *names)
        except (OSError, SafetensorError, ValueError, LookupError, TypeError):
            continue
        if found.rows.is_file():
            yield found


def is_prepared_store(source: str | os.PathLike[str]) -> bool:
    """Return whether a folder is a store of featurised molecules, as `prepare_molecule_store` makes them."""
    return Path(source).is_dir() and "hash" in store_facts(source)


def store_facts(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the options with which `prepare_molecule_store` made a store; empty if the folder is no store."""
    file = Path(folder) / FACTS
    try:
        found = json.loads(file.read_text()) if file.is_file() else {}
    except ValueError:
        raise InputError(f"{file} is damaged: prepare the molecules again") from None
    return found if isinstance(found, dict) else {}


def compute_store_checksum(folder: str | os.PathLike[str]) -> str:
    """Compute a hash of a store from the names, counts, sizes and times of its files."""
    digest = hashlib.sha256()
    for made in prepared_shards(Path(folder)):
        stat = made.rows.stat()
        digest.update(f"{made.shard.part} {made.done} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _finished_shards(library: Library, folder: Path) -> dict[Shard, ShardResult]:
    """Read the finished shards; one that cannot be read is left out, and so written again.

    Raises:
        InputError: the table of a shard has changed, or does not exist any more.
    """
    found = {}
    for made in prepared_shards(folder):
        check_unchanged(library, made.shard, made.tensors)
        found[made.shard] = made.done
    return found
