"""Prediction of a folder of tables, shard by shard."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from gtx.bulk.tables import Journal, Library, Shard, ShardResult, check_outside, check_unchanged, owned_folder
from gtx.bulk.workers import (
    Engine,
    InProcess,
    LibraryOutcome,
    Processes,
    RayEngine,
    ShardJob,
    ShardWorker,
    process_library,
    shard_result,
)
from gtx.data import RowLog
from gtx.data.columns import Row, Table
from gtx.data.featurising import default_chunk_size, default_worker_count
from gtx.data.table_writer import TableWriter, output_header
from gtx.errors import InputError
from gtx.files import whole_file
from gtx.prediction.foundation import FOUNDATION_MODEL, resolve_model_path
from gtx.prediction.loading import load_predictor
from gtx.prediction.streaming import (
    EVERY_ROW,
    Chunk,
    PredictorLike,
    RowSelection,
    open_for_model,
    predict_rows,
    predict_stream,
    rank_value,
)

SHARD_ROWS = 50_000
BEST = "top.parquet"


def predict_folder_of_tables(
    model: str | os.PathLike[str],
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    smiles_column: str | None = None,
    smiles_columns: Sequence[str] | None = None,
    beams: int | None = None,
    device: str | None = None,
    on_error: Literal["report", "fail"] = "report",
    selection: RowSelection = EVERY_ROW,
    workers: int | None = None,
    engine: Literal["ray"] | None = None,
    address: str | None = None,
    shard_rows: int = SHARD_ROWS,
    progress: bool = False,
    load: Callable[..., PredictorLike] = load_predictor,
) -> LibraryOutcome:
    """Predict all tables of a folder, shard by shard; each Parquet file that is written is complete.

    The output files for a table, one after the other, equal the output of `predict_table` for the table. A second call
    resumes an interrupted prediction and keeps finished shards. If a worker dies, another worker processes the shard,
    and a row that kills two workers gets an error. The memory does not depend on the number and the lengths of the
    tables.

    Args:
        model: path of a model file, or `foundation`.
        source: path of a folder, or of one file.
        out: path of the output folder. The predictions for `a/b.csv` are written to `a/b.csv-000000000000.parquet` and
            so on, named by the first row. With `selection.top`, the best rows are collected in `top.parquet`.
        smiles_column, smiles_columns, on_error: as in `predict_table`.
        beams, device: as in `gtx.load`.
        selection: rows to write; by default all rows.
        workers: number of processes, or of actors of Ray; by default one per core; 0 for the current process.
        engine: "ray" for actors of Ray, see `gtx.bulk.workers.RayEngine`; None for processes of this machine.
        address: address of a Ray cluster.
        shard_rows: number of rows of a shard. With multiples of 500, predictions equal those of `predict_table` to the
            last bit.
        progress: whether a progress bar is shown.
        load: function that opens the model file, called with `device` and `beams`; for a model or a task of your own.

    Raises:
        InputError: the model, the folder or an option cannot be used, or nothing can be written; with "fail", a row
            cannot be used. Finished shards stay.
    """
    if shard_rows < 1:
        raise InputError(f"shard_rows: expected 1 or more, got {shard_rows}")
    if engine not in (None, "ray") or (address and engine is None):
        purpose = "to which the address belongs, " if address else ""
        raise InputError(f"engine: expected 'ray', {purpose}got {engine!r}")
    library, outputs = Library.at(source), Outputs(Path(out), selection)
    check_outside(source, outputs.folder, "predictions")
    file = model if model == FOUNDATION_MODEL else Path(model).resolve()
    opening = partial(load, file, device=device, beams=beams)
    # actors may have a GPU that this machine lacks
    predictor = load_predictor(file, device="cpu", beams=beams) if engine == "ray" else opening()
    columns = MoleculeColumns(smiles_column, list(smiles_columns) if smiles_columns else None)
    facts = {
        "model": hashlib.sha256(resolve_model_path(file).read_bytes()).hexdigest(),
        "library": str(library.root.resolve()),
        "shard_rows": shard_rows,
        "answers": list(predictor.output_columns(())),
        "beams": beams,
        **columns._asdict(),
        **asdict(selection),
    }
    where = outputs.folder if selection.top is None else outputs.folder / BEST
    outcome = LibraryOutcome(where, len(library.files), library.left_out, problems=library.problems)
    job = Prediction(
        root=library.root.resolve(),
        parts=outputs.parts.resolve(),
        on_error=on_error,
        load=opening,
        columns=columns,
        selection=selection,
    )

    def table(path: Path) -> Table:
        return open_for_model(predictor.header, path, *columns)

    def check(table: Table) -> None:
        job.selection.sieve(output_header(table.columns, list(predictor.output_columns(table.columns))))

    def engine_of(several: bool) -> Engine:
        if engine == "ray":
            return RayEngine(job, workers, address, gpus=device is None or not device.startswith("cpu"))
        return _local_engine(job, predictor, several, workers)

    with outputs.lock(facts):
        done = outputs.done(library)
        label = "Predicting" if progress else None
        process_library(library, shard_rows, done, table, engine_of, outcome, check, label)
        if selection.top is not None:
            order = {name: i for i, name in enumerate(library.files)}
            outcome.kept = outputs.gather(sorted(outcome.done, key=lambda shard: (order[shard.file], shard.first)))
    return outcome


def _local_engine(job: Prediction, predictor: PredictorLike, several: bool, workers: int | None) -> Engine:
    """Choose this process if it has a GPU or there is one shard, and otherwise several processes."""
    if predictor.device.type != "cpu" or workers == 0 or not several:
        job = job.with_readers(workers)
        return InProcess(job, lambda: ShardPredictor(job, predictor))
    return Processes(job, default_worker_count() if workers is None else workers)


# --- A worker: read, predict, write a shard.

FOOTER = "gtx"
"""Key in the Parquet footer of a JSON object with `shard` and `done`, the fields of `Shard` and `ShardResult`."""


class MoleculeColumns(NamedTuple):
    """Columns of molecules, as `gtx.prediction.predict_table` takes them."""

    smiles_column: str | None = None
    smiles_columns: list[str] | None = None


@dataclass(frozen=True, kw_only=True)
class Prediction(ShardJob):
    """Job of predicting all shards.

    Attributes:
        load: opens the model; called once by each worker.
        columns: the columns of molecules.
        selection: rows to write.
        readers: processes that read for a worker; None as in `gtx.prediction.predict_table`.
    """

    load: Callable[[], PredictorLike]
    columns: MoleculeColumns = field(default_factory=MoleculeColumns)
    selection: RowSelection = EVERY_ROW
    readers: int | None = 0

    def worker(self) -> ShardPredictor:
        """Make a worker that loads the model."""
        return ShardPredictor(self)

    def with_readers(self, readers: int | None) -> Prediction:
        return replace(self, readers=readers)


class ShardPredictor(ShardWorker):
    """Worker that predicts shards with a model that is loaded once.

    Args:
        job: the work.
        predictor: the model, if it is loaded already. A worker that loads it has one thread.
    """

    job: Prediction

    def __init__(self, job: Prediction, predictor: PredictorLike | None = None) -> None:
        if predictor is None:
            torch.set_num_threads(1)  # the workers use the other cores
            predictor = job.load()
        self.predictor = predictor
        super().__init__(job, lambda path, first: open_for_model(predictor.header, path, *job.columns, first=first))

    def write(self, shard: Shard, table: Table, journal: Journal, row_log: RowLog) -> ShardResult:
        named = self.predictor.output_columns(table.columns)
        header = output_header(table.columns, list(named))
        sieve = self.job.selection.sieve(header)
        tracked = journal.tracked(table, default_chunk_size(self.predictor.header.featuriser), self._try_row)
        readers = 0 if journal.deaths else self.job.readers
        writing = TableWriter(self.job.parts / shard.part, header, named, table.schema)
        with writing as writer, closing(predict_rows(self.predictor, tracked, row_log, readers)) as parts:
            for _, lines, _ in parts:
                for line in sieve.select(lines):
                    writer.write(*line)
            for line in sieve.best():
                writer.write(*line)
            done = shard_result(shard, row_log, sieve.written)
            writer.footer[FOOTER] = json.dumps({"shard": shard, "done": done})
        return done

    def _try_row(self, row: Row) -> None:
        list(predict_stream(self.predictor, [row_chunk([row])], 0))


def row_chunk(rows: Sequence[Row]) -> Chunk:
    """Return the molecules, coordinates and features of rows, as `predict_stream` takes them."""
    texts: list[Any] = [row.readable for row in rows]  # a tuple of texts for several components
    return texts, [row.coordinates for row in rows], [row.features for row in rows]


# --- The output folder.


@dataclass(frozen=True)
class Outputs:
    """Output folder of predictions.

    Attributes:
        folder: holds `_gtx.json`, and `top.parquet` if the selection has `top`.
        selection: rows to write.
    """

    folder: Path
    selection: RowSelection

    @property
    def parts(self) -> Path:
        """Folder of the shards; with `top` a subfolder that readers of data sets skip."""
        return self.folder if self.selection.top is None else self.folder / "_shards"

    def lock(self, facts: dict[str, Any]) -> AbstractContextManager[None]:
        """Lock the folder, see `gtx.bulk.tables.owned_folder`."""
        return owned_folder(self.folder, facts, "other predictions")

    def done(self, library: Library) -> dict[Shard, ShardResult]:
        """Read the finished shards; an output that cannot be read is left out, and so written again.

        Raises:
            InputError: the table of an output has changed, or does not exist any more.
        """
        found = {}
        for path in sorted(self.parts.rglob("*.parquet")):
            try:
                footer = json.loads(pq.read_metadata(path).metadata[FOOTER.encode()])
                shard, done = Shard(*footer["shard"]), ShardResult(*footer["done"])
            except (OSError, ValueError, LookupError, TypeError, pa.ArrowException):
                continue
            check_unchanged(library, shard, path)
            found[shard] = done
        return found

    def gather(self, shards: Sequence[Shard]) -> int:
        """Write the best rows of all shards to `top.parquet`, and return their number.

        Raises:
            InputError: the columns of the files have different types.
        """
        assert self.selection.by is not None, "top needs by, which Selection.read checks"
        best: pa.Table | None = None
        for shard in shards:
            part = pq.ParquetFile(self.parts / shard.part).read()
            try:
                joined = part if best is None else pa.concat_tables([best, part], promote_options="permissive")
            except pa.ArrowException as reason:
                raise InputError(f"the tables have columns of one name and different types: {reason}") from None
            cells = joined.column(self.selection.by).to_pylist()
            scores = np.array([rank_value(cell, self.selection.lowest) for cell in cells])
            order = np.argsort(-scores, kind="stable")  # ties keep their order
            best = joined.take(order[: self.selection.top])
        if best is None:
            return 0
        with whole_file(self.folder / BEST) as file:
            pq.write_table(best.replace_schema_metadata(None), file)
        return len(best)
