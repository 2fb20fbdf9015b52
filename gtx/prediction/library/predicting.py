"""A folder of tables predicted: what is done stays done, the rest goes to workers."""

from __future__ import annotations

import hashlib
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Literal

from gtx.data import default_workers
from gtx.data.ledger import Ledger
from gtx.errors import InputError
from gtx.prediction.answering import Answering
from gtx.prediction.library.engines import Engine, Here, Processes, worked
from gtx.prediction.library.outputs import BEST, Outputs
from gtx.prediction.library.ray_engine import RayEngine
from gtx.prediction.library.shards import Library, Shard
from gtx.prediction.library.work import Done, Job
from gtx.prediction.loading import load
from gtx.prediction.packaged import FOUNDATION, model_path
from gtx.prediction.selecting import Selection
from gtx.prediction.streaming import EVERY_ROW, opened, output_header

SHARD_ROWS = 50_000


@dataclass
class LibraryOutcome:
    """What became of a library.

    Attributes:
        ledger: counts of rows and errors, those of earlier runs included; the messages are in the parts.
        files, shards: how many there are.
        before: how many of the shards were done already.
        kept: how many rows are written.
        where: the folder of the parts, or the file of the best.
        problems: files or shards that could not be predicted, in words.
        left_out: files that are no tables.
    """

    where: Path
    files: int
    left_out: list[str]
    ledger: Ledger = field(default_factory=Ledger)
    shards: int = 0
    before: int = 0
    kept: int = 0
    problems: list[str] = field(default_factory=list)

    def add(self, done: Done) -> None:
        """Take in a shard."""
        if done.problem:
            self.problems.append(done.problem)
            return
        self.shards += 1
        self.ledger.rows += done.rows
        self.ledger.kinds += Counter(done.kinds)
        self.ledger.warned += done.warned
        self.kept += done.kept


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
    if Path(source).is_dir() and outputs.folder.resolve().is_relative_to(library.root.resolve()):
        raise InputError(f"{out} is within {source}: predictions would be taken for molecules")
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
    with outputs.held(facts), ExitStack() as stack:
        before = outputs.done(library)
        outcome.before = len(before)
        bar = stack.enter_context(_bar(progress))
        shards = list(before)
        for shard, done in before.items():
            outcome.add(done)
            bar(shard.rows)
        todo = _todo(library, predictor, job, shard_rows, before, outcome.problems)
        first = list(islice(todo, 2))
        if first:
            if engine == "ray":
                working = RayEngine(job, workers, address, gpus=device is None or not device.startswith("cpu"))
            else:
                working = _plain(job, predictor, len(first), workers)
            stack.callback(working.close)
            for shard, done in worked(working, chain(first, todo)):
                outcome.add(done)
                shards += [shard] * (done.problem is None)
                bar(shard.rows)
        if selection.top is not None:
            place = {name: i for i, name in enumerate(library.files)}
            outcome.kept = outputs.gather(sorted(shards, key=lambda shard: (place[shard.file], shard.first)))
    return outcome


def _todo(
    library: Library,
    predictor: Answering,
    job: Job,
    size: int,
    before: dict[Shard, Done],
    problems: list[str],
) -> Iterator[Shard]:
    """The shards that are not done, drawn as they are needed; a file that is done is not opened."""
    known = defaultdict(list)
    for shard in before:
        known[shard.file].append(shard)
    for file in library.files:
        if _whole(known[file]):
            continue
        try:
            table = opened(predictor.header, library.root / file, **job.columns)
        except InputError as reason:
            problems.append(f"{file}: {reason}")
            continue
        # a column that there is not is the user's mistake, and no fault of the file
        job.selection.over(output_header(table.columns, predictor.output_columns(table.columns)))
        try:
            yield from (shard for shard in library.shards(file, table, size) if shard not in before)
        except InputError as reason:
            problems.append(f"{file}: {reason}")


def _whole(shards: Sequence[Shard]) -> bool:
    """Whether these shards of a file are all of it."""
    return sum(shard.rows for shard in shards) == max((s.first + s.rows for s in shards if s.last), default=-1)


def _plain(job: Job, predictor: Answering, shards: int, workers: int | None) -> Engine:
    """This process where one is enough or has the GPU, and otherwise processes beside it."""
    if predictor.device.type != "cpu" or workers == 0 or shards == 1:
        return Here(replace(job, readers=workers), predictor)
    return Processes(job, default_workers() if workers is None else workers)


@contextmanager
def _bar(shown: bool) -> Iterator[Callable[[int], None]]:
    """What is called with the number of rows whenever a shard is done."""
    if not shown:
        yield lambda rows: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    told = TextColumn("{task.completed:,.0f} rows in {task.fields[shards]:,} shards")
    with Progress(
        TextColumn("Predicting"), BarColumn(), told, TimeElapsedColumn(), console=Console(stderr=True)
    ) as bar:
        task, shards = bar.add_task("", total=None, shards=0), iter(range(1, 2**63))
        yield lambda rows: bar.update(task, advance=rows, shards=next(shards))
