"""A folder of tables predicted: what is done stays done, the rest goes to workers."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from gtx.data import Ledger, chunk_size, default_workers
from gtx.data.columns import Row, Table
from gtx.data.table_writer import TableWriter, output_header
from gtx.errors import InputError
from gtx.files import whole_file
from gtx.library.tables import Done, Journal, Library, Shard, check_outside, check_unchanged, held
from gtx.library.workers import (
    Engine,
    Here,
    LibraryOutcome,
    Processes,
    RayEngine,
    ShardJob,
    ShardWorker,
    done_with,
    pass_through,
)
from gtx.prediction.foundation import FOUNDATION, model_path
from gtx.prediction.loading import load
from gtx.prediction.streaming import (
    EVERY_ROW,
    Answering,
    Selection,
    answer_stream,
    goodness,
    opened,
    predicted,
)

SHARD_ROWS = 50_000
BEST = "top.parquet"


def predict_library(
    model: str | os.PathLike[str],
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    smiles_column: str | None = None,
    smiles_columns: Sequence[str] | None = None,
    beams: int | None = None,
    device: str | None = None,
    on_error: Literal["report", "fail"] = "report",
    selection: Selection = EVERY_ROW,
    workers: int | None = None,
    engine: Literal["ray"] | None = None,
    address: str | None = None,
    shard_rows: int = SHARD_ROWS,
    progress: bool = False,
    load: Callable[..., Answering] = load,
) -> LibraryOutcome:
    """Predict all tables of a folder, shard by shard, into Parquet files that are whole or not there.

    The parts of a file, one after the other, hold what `predict_table` writes for it. Called again, it goes on: parts
    that are there are not made anew. Where a worker dies, its shard is given to another one, and a row of which two
    workers died gets an error. Memory depends neither on the number of files nor on their lengths.

    Args:
        model: a model file, or `foundation`.
        source: a folder, or one file.
        out: a folder; the predictions of `a/b.csv` go to `a/b.csv-000000000000.parquet` and so on, named by the number
            of rows before. With `selection.top` they are gathered in `top.parquet`.
        smiles_column, smiles_columns, on_error: as in `predict_table`.
        beams, device: as in `gtx.load`.
        selection: which rows are written; by default all.
        workers: processes, or actors of Ray. Default: all cores. 0 works in this process.
        engine: "ray" has Ray's actors work, see `gtx.library.workers.RayEngine`; None processes of this machine.
        address: of a Ray cluster.
        shard_rows: rows of a shard. Multiples of 500 give the numbers of `predict_table` to the last bit.
        progress: show a progress bar.
        load: opens the model file, called with `device` and `beams`; for a model or a task of your own.

    Raises:
        InputError: the model, the folder or an option cannot be used, or nothing can be written; with "fail", a row
            cannot be used. What has been done until then stays.
    """
    if shard_rows < 1:
        raise InputError(f"shard_rows: expected 1 or more, got {shard_rows}")
    if engine not in (None, "ray") or (address and engine is None):
        purpose = "to which the address belongs, " if address else ""
        raise InputError(f"engine: expected 'ray', {purpose}got {engine!r}")
    library, outputs = Library.at(source), Outputs(Path(out), selection)
    check_outside(source, outputs.folder, "predictions")
    file = FOUNDATION if model == FOUNDATION else Path(model).resolve()
    opening = partial(load, file, device=device, beams=beams)
    # an actor may have the GPU that this machine has not
    predictor = load(file, device="cpu", beams=beams) if engine == "ray" else opening()
    columns = {"smiles_column": smiles_column, "smiles_columns": smiles_columns and list(smiles_columns)}
    facts = {
        "model": hashlib.sha256(model_path(file).read_bytes()).hexdigest(),
        "library": str(library.root.resolve()),
        "shard_rows": shard_rows,
        "answers": list(predictor.output_columns(())),
        "beams": beams,
        **columns,
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
        return opened(predictor.header, path, **columns)

    def check(table: Table) -> None:
        job.selection.over(output_header(table.columns, predictor.output_columns(table.columns)))

    def engine_of(several: bool) -> Engine:
        if engine == "ray":
            return RayEngine(job, workers, address, gpus=device is None or not device.startswith("cpu"))
        return _plain(job, predictor, several, workers)

    with outputs.held(facts):
        done = outputs.done(library)
        label = "Predicting" if progress else None
        pass_through(library, shard_rows, done, table, engine_of, outcome, check, label)
        if selection.top is not None:
            place = {name: i for i, name in enumerate(library.files)}
            outcome.kept = outputs.gather(sorted(outcome.done, key=lambda shard: (place[shard.file], shard.first)))
    return outcome


def _plain(job: Prediction, predictor: Answering, several: bool, workers: int | None) -> Engine:
    """This process where one is enough or has the GPU, and otherwise processes beside it."""
    if predictor.device.type != "cpu" or workers == 0 or not several:
        job = replace(job, readers=workers)
        return Here(job, lambda: ShardPredictor(job, predictor))
    return Processes(job, default_workers() if workers is None else workers)


# --- A worker: read, predict, write the part.

FOOTER = "gtx"
"""Key of the footer of a part, a JSON object: `shard`, and `done` as `Done` has it."""


@dataclass(frozen=True, kw_only=True)
class Prediction(ShardJob):
    """Prediction of all shards.

    Attributes:
        load: gives the predictor; called once by each worker.
        columns: `smiles_column` and `smiles_columns`, as `gtx.prediction.predict_table` takes them.
        selection: which rows are written.
        readers: processes that read for a worker; 0 has none, None as `gtx.prediction.predict_table`.
    """

    load: Callable[[], Answering]
    columns: dict[str, object] = field(default_factory=dict)
    selection: Selection = EVERY_ROW
    readers: int | None = 0

    def worker(self) -> ShardPredictor:
        """A worker that loads the model."""
        return ShardPredictor(self)


class ShardPredictor(ShardWorker):
    """Predicts one shard after the other, with a model that is loaded once.

    Args:
        job: what there is to do.
        predictor: the model, where it is at hand. A worker that loads it has one thread.
    """

    def __init__(self, job: Prediction, predictor: Answering | None = None) -> None:
        if predictor is None:
            torch.set_num_threads(1)  # there are as many workers as are to compute
            predictor = job.load()
        self.predictor = predictor
        super().__init__(job, lambda path, first: opened(predictor.header, path, **job.columns, first=first))

    def write(self, shard: Shard, table: Table, journal: Journal, ledger: Ledger) -> Done:
        named = self.predictor.output_columns(table.columns)
        header = output_header(table.columns, named)
        sieve = self.job.selection.over(header)
        watched = journal.watched(table, chunk_size(self.predictor.header.featuriser), self._alone)
        readers = 0 if journal.deaths else self.job.readers
        writing = TableWriter(self.job.parts / shard.part, header, named, table.schema)
        with writing as writer, closing(predicted(self.predictor, watched, ledger, readers)) as parts:
            for _, lines, _ in parts:
                for line in sieve.passed(lines):
                    writer.write(*line)
            for line in sieve.best():
                writer.write(*line)
            done = done_with(shard, ledger, sieve.kept)
            writer.footer[FOOTER] = json.dumps({"shard": shard, "done": done})
        return done

    def _alone(self, row: Row) -> None:
        for _ in answer_stream(self.predictor, [([row.readable], [row.coordinates], [row.features])], 0):
            pass


# --- The folder of predictions.


@dataclass(frozen=True)
class Outputs:
    """A folder of parts.

    Attributes:
        folder: where `_gtx.json` is, and `top.parquet` where the best are asked for.
        selection: which rows are written.
    """

    folder: Path
    selection: Selection

    @property
    def parts(self) -> Path:
        """Where the parts are; beside the best of all, in a folder that no reader of data sets enters."""
        return self.folder if self.selection.top is None else self.folder / "_shards"

    def held(self, facts: dict[str, Any]) -> AbstractContextManager[None]:
        """Nobody else writes to the folder within, see `gtx.library.tables.held`."""
        return held(self.folder, facts, "other predictions")

    def done(self, library: Library) -> dict[Shard, Done]:
        """The shards that are done already. A part that cannot be read is done anew.

        Raises:
            InputError: a part belongs to a file that has changed, or is no more.
        """
        found = {}
        for path in sorted(self.parts.rglob("*.parquet")):
            try:
                said = json.loads(pq.read_metadata(path).metadata[FOOTER.encode()])
                shard, done = Shard(*said["shard"]), Done(*said["done"])
            except (OSError, ValueError, LookupError, TypeError, pa.ArrowException):
                continue
            check_unchanged(library, shard, path)
            found[shard] = done
        return found

    def gather(self, shards: Sequence[Shard]) -> int:
        """Write the best rows of all, out of the best of each shard, as `top.parquet`; how many they are.

        Raises:
            InputError: the columns of the files have different types.
        """
        best: pa.Table | None = None
        for shard in shards:
            part = pq.ParquetFile(self.parts / shard.part).read()
            try:
                joined = part if best is None else pa.concat_tables([best, part], promote_options="permissive")
            except pa.ArrowException as reason:
                raise InputError(f"the tables have columns of one name and different types: {reason}") from None
            cells = joined.column(self.selection.by).to_pylist()
            worth = np.array([goodness(cell, self.selection.lowest) for cell in cells])
            order = np.argsort(-worth, kind="stable")  # of equal ones the earlier comes first
            best = joined.take(order[: self.selection.top])
        if best is None:
            return 0
        with whole_file(self.folder / BEST) as file:
            pq.write_table(best.replace_schema_metadata(None), file)
        return len(best)
