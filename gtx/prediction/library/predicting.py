"""A folder of tables predicted: what is done stays done, the rest goes to workers."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Literal

from gtx.data import default_workers
from gtx.data.library.engines import Engine, Here, Processes
from gtx.data.library.folder import check_outside
from gtx.data.library.passing import LibraryOutcome, pass_through
from gtx.data.library.shards import Library
from gtx.data.rows import Table
from gtx.data.table_writer import output_header
from gtx.errors import InputError
from gtx.prediction.answering import Answering
from gtx.prediction.library.outputs import BEST, Outputs
from gtx.prediction.library.ray_engine import RayEngine
from gtx.prediction.library.work import Job, ShardWorker
from gtx.prediction.loading import load
from gtx.prediction.packaged import FOUNDATION, model_path
from gtx.prediction.selecting import Selection
from gtx.prediction.streaming import EVERY_ROW, opened

SHARD_ROWS = 50_000


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
        engine: "ray" has Ray's actors work, see `gtx.prediction.library.ray_engine`; None processes of this machine.
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
        raise InputError(f"engine: expected 'ray', {'to which the address belongs, ' * bool(address)}got {engine!r}")
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
    outcome = LibraryOutcome(where, len(library.files), library.left_out)
    job = Job(opening, library.root.resolve(), outputs.parts.resolve(), columns, on_error, selection)

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


def _plain(job: Job, predictor: Answering, several: bool, workers: int | None) -> Engine:
    """This process where one is enough or has the GPU, and otherwise processes beside it."""
    if predictor.device.type != "cpu" or workers == 0 or not several:
        job = replace(job, readers=workers)
        return Here(job, lambda: ShardWorker(job, predictor))
    return Processes(job, default_workers() if workers is None else workers)
