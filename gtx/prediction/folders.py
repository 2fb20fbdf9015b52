"""Prediction of a folder, its tables in turn or by Ray Data on a cluster; and of data frames of Ray, Dask and Spark."""

from __future__ import annotations

import csv
import hashlib
import heapq
import json
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import torch

from gtx.base.errors import InputError, first_line, printable
from gtx.base.files import LOCK, check_same, lock_folder, read_plain, write_text
from gtx.base.schema import check, integer
from gtx.data.cells import cell_text
from gtx.data.rows import ARROW, RowLog, Table, find_column, first_side
from gtx.data.table_writer import PARQUET_ENDINGS, TEXT_ENDINGS, TableWriter, output_header, refuse_input_as_output
from gtx.prediction.foundation import FOUNDATION_MODEL
from gtx.prediction.inputs import smiles_place
from gtx.prediction.model_file import ModelFileHeader
from gtx.prediction.predictor import Predictor, load_predictor
from gtx.prediction.streaming import EVERY_ROW, RowSelection, TableOutcome, make_table, predict_rows, predict_table

TABLES = (*TEXT_ENDINGS, ".smi", ".smiles", ".ism", ".sdf", ".sd")
"""File name extensions of tables beside those of Parquet; `.gz` may follow."""
SETTINGS = "_gtx.json"
"""File in the output folder with what its predictions depend on; readers of data sets skip the name."""
BEST = "top.csv"


def find_tables(root: Path) -> tuple[list[str], list[str], dict[str, str]]:
    """Find the tables in a folder and its subfolders, one or more; hidden files and folders are ignored.

    Returns:
        Names relative to the folder: of the tables, sorted; of files that are no tables; and of folders and tables that
        cannot be read, each with the reason.
    """
    files: list[str] = []
    others: list[str] = []
    problems: dict[str, str] = {}

    def unread(error: OSError) -> None:
        problems[Path(error.filename).relative_to(root).as_posix()] = str(error.strerror)

    if not root.is_dir():
        raise InputError(f"{root}: expected a folder of tables, and there is none")
    for folder, folders, names in os.walk(root, onerror=unread):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        links = [name for name in folders if Path(folder, name).is_symlink()]  # which may lead in a circle
        for path in (Path(folder, name) for name in sorted([*names, *links]) if not name.startswith(".")):
            name, lower = path.relative_to(root).as_posix(), path.name.lower()
            if path.is_dir():
                problems[name] = "is a link to a folder, which is not followed"
            elif not lower.endswith(PARQUET_ENDINGS) and not lower.removesuffix(".gz").endswith(TABLES):
                others.append(name)
            elif path.is_file():
                files.append(name)
            else:  # a pipe may never end
                problems[name] = "is no regular file" if path.exists() else "is a link to nothing"
    if not files:
        instead = f"; it has {printable([*others, *problems][0])}" if others or problems else ""
        endings = ", ".join(TABLES + PARQUET_ENDINGS)
        raise InputError(f"there is no table in {root}: expected {endings} (.gz){instead}")
    return sorted(files), others, problems


@dataclass(frozen=True)
class FolderOutcome:
    """Outcome of predicting a folder of tables.

    Attributes:
        tables: outcome of each table that was predicted, by name.
        finished: names of tables that an earlier call had predicted.
        problems: for tables that could not be predicted, the reason by name.
        others: names of files that are no tables.
        best: number of rows in `top.csv`; None for a selection without `top`.
    """

    tables: dict[str, TableOutcome]
    finished: list[str]
    problems: dict[str, str]
    others: list[str]
    best: int | None = None


def predict_folder(
    predictor: Predictor,
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    selection: RowSelection = EVERY_ROW,
    on_error: Literal["report", "fail"] = "report",
    workers: int | None = None,
    engine: Literal["ray"] | None = None,
    address: str | None = None,
    gpus: bool = True,
    tell: Callable[[str, TableOutcome], object] = lambda file, outcome: None,
    **options: Any,
) -> FolderOutcome:
    """Predict the tables of a folder and its subfolders by `predict_table`, into a folder of tables of the same names.

    The output of a table is written completely or not at all. A second call keeps the outputs that are there, and
    predicts the other tables and those that have changed since. A table that cannot be read is left out, with the
    reason in `problems`.

    Args:
        predictor: the model.
        source: path of the folder.
        out: path of the output folder. The predictions for `a/b.csv` are written to `a/b.csv`, those for a SMILES file
            or an SDF `b.smi` to `b.smi.csv`. With `selection.top`, the best rows of all tables are written to
            `top.csv`, and those of each table to the subfolder `tables`.
        selection: rows to write; by default all rows.
        on_error: "fail" stops at the first row or table that cannot be used; "report" records the error and continues.
        workers: number of processes that read and predict a table, as in `predict_table`; with Ray one for each table.
        engine: "ray" to predict several tables at a time by Ray Data, on all machines of a cluster, which need the same
            paths to both folders.
        address: address of a Ray cluster, such as "auto"; by default Ray is started on this machine, and stopped at the
            end.
        gpus: whether Ray uses GPUs of the cluster, one for each table.
        tell: function that is called with the name and the outcome of each table.
        options: further options of `predict_table`, such as `smiles_column`.

    Raises:
        InputError: there is no table, `out` holds predictions by another model or with other options, or another
            process writes there; Ray is not installed, or there is none at the address; with "fail", a row or a table
            cannot be used. Finished outputs stay.
    """
    if engine not in (None, "ray"):
        raise InputError(f"engine: expected 'ray' or None, got {engine!r}")
    if address is not None and engine is None:
        raise InputError(f"address: expected with the engine 'ray', got {address!r} without it")
    check(workers, integer(0) | None, "workers")
    files, others, problems = find_tables(Path(source))
    root, out, selected = Path(source).resolve(), Path(out), selection.top is not None
    refuse_input_as_output(out, source)
    settings: dict[str, Any] = {"model": _checksum(predictor), "source": str(root)}
    settings["columns"] = list(predictor.output_columns(()))
    settings |= {name: options.get(name) for name in ("smiles_column", "smiles_columns")} | asdict(selection)
    options |= {"selection": selection, "on_error": on_error, "workers": workers}
    settings = json.loads(json.dumps(settings))  # as they will be read
    with lock_folder(out), _output_folder(out, settings):
        tables: dict[str, TableOutcome] = {}
        outputs = _outputs(files, out / "tables" if selected else out, selected, problems)
        finished = {file for file, output in outputs.items() if _is_newer(output, root / file)}
        rows = [
            {"file": file, "source": str(root / file), "out": str(output.resolve())}
            for file, output in outputs.items()
            if file not in finished
        ]
        with _cluster(address) if engine == "ray" and rows else nullcontext() as ray:
            by_row = partial(_predict, predictor=predictor, options=options)
            for row in map(by_row, rows) if ray is None else _predict_by_ray(ray, predictor, options, rows, gpus):
                file, outcome = row["file"], row["outcome"]
                if isinstance(outcome, TableOutcome):
                    tables[file] = outcome
                    tell(file, outcome)
                elif on_error == "fail":
                    raise InputError(f"{file}: {outcome}")
                else:
                    problems[file] = str(outcome)
        done = [output for file, output in outputs.items() if file in tables or file in finished]
        if not any(output.exists() for output in outputs.values()):
            (out / SETTINGS).unlink()  # no output depends on them: the command may be given again, mended
        best = _write_best(done, selection, out / BEST) if selected and done else None
    return FolderOutcome(tables, sorted(finished), problems, others, best)


def _predict(row: dict[str, Any], predictor: Predictor, options: Mapping[str, Any]) -> dict[str, Any]:
    """Predict the table `row["source"]` into `row["out"]`; return the row with its `TableOutcome` or `InputError`."""
    source, out = Path(row["source"]), Path(row["out"])
    before = _time_of_change(source)
    try:
        outcome = predict_table(predictor, source, out, **options)
        if _time_of_change(source) != before:
            out.unlink()  # it is newer than the table
            raise InputError("it changed while it was read: run the same command again")
        return row | {"outcome": outcome}
    except InputError as reason:
        return row | {"outcome": reason}


# --- The output folder.


def _checksum(predictor: Predictor) -> str:
    """Return the SHA-256 of the header and of all weights of a model."""
    digest = hashlib.sha256(json.dumps(predictor.header.to_dict(), sort_keys=True).encode())
    for module in filter(None, (*predictor.members, predictor.kernel_member)):
        for tensor in module.state_dict().values():
            digest.update(tensor.cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()


@contextmanager
def _output_folder(out: Path, settings: dict[str, Any]) -> Iterator[None]:
    """Record what the predictions in a folder depend on; refuse one with other predictions, or other files. Before and
    after the block, remove what processes that were killed left.
    """
    file = out / SETTINGS
    if file.exists():
        check_same(read_plain(file), settings, f"{out} holds other predictions", "empty the folder")
    elif any(path.name != LOCK and not path.match(f".{SETTINGS}.*.part") for path in out.iterdir()):
        raise InputError(f"{out} holds other files: give another folder, or empty it")
    else:
        write_text(file, json.dumps(settings, indent=1))

    def sweep() -> None:
        for part in out.rglob(".*.part"):
            part.unlink(missing_ok=True)

    sweep()
    try:
        yield
    finally:
        sweep()


def _outputs(files: Sequence[str], folder: Path, as_csv: bool, problems: dict[str, str]) -> dict[str, Path]:
    """Name the output of each table; a table whose output is that of another one becomes a problem."""
    owner: dict[str, str] = {}
    for file in files:
        lower = file.lower()
        writable = lower.endswith(PARQUET_ENDINGS) or lower.removesuffix(".gz").endswith(tuple(TEXT_ENDINGS))
        name = file if writable and not as_csv else f"{file}.csv"
        if owner.setdefault(name, file) != file:
            problems[file] = f"its predictions would have the name of those of {owner[name]}: rename one of the tables"
    return {file: folder / name for name, file in owner.items()}


def _time_of_change(table: Path) -> int | None:
    """Return the time, in ns, at which a table was changed or moved to its place; None if it is gone."""
    with suppress(OSError):
        status = table.stat()
        return max(status.st_mtime_ns, status.st_ctime_ns)
    return None


def _is_newer(output: Path, table: Path) -> bool:
    """Return whether an output exists, and its table has not changed since."""
    changed = _time_of_change(table)
    return changed is not None and output.exists() and output.stat().st_mtime_ns >= changed


def _write_best(outputs: Sequence[Path], selection: RowSelection, path: Path) -> int:
    """Write the best rows of several outputs, the best first, and return their number; ties keep their order."""
    columns: dict[tuple[str, int], None] = {}  # a name, and how many columns before have it

    def rows() -> Iterator[tuple[float, dict[tuple[str, int], str]]]:
        for output in outputs:
            with output.open(encoding="utf-8", newline="") as file:
                header, *lines = csv.reader(file)
            by = find_column(header, selection.by or "")
            own = [(name, header[:i].count(name)) for i, name in enumerate(header)]
            columns.update(dict.fromkeys(own))
            yield from ((selection.rank(cells[by]), dict(zip(own, cells, strict=True))) for cells in lines)

    best = heapq.nlargest(selection.top or 0, rows(), key=lambda row: row[0])
    with TableWriter(path, [name for name, _ in columns]) as writer:
        for _, cells in best:
            writer.write([cells.get(place) for place in columns])
    return len(best)


# --- Ray Data.


def _predict_by_ray(
    ray: Any, predictor: Predictor, options: Mapping[str, Any], rows: Sequence[dict[str, Any]], gpus: bool
) -> Iterator[dict[str, Any]]:
    """Predict tables by tasks of Ray Data, one for each table, and yield them as they are done."""
    on_gpu = gpus and ray.cluster_resources().get("GPU", 0) > 0
    workers = options["workers"]
    # a molecule that ends its process must end that of the reading pool: Ray would repeat its own again and again
    options = {**options, "workers": None if on_gpu else 1, "progress": False}
    predicted = ray.data.from_items(list(rows), override_num_blocks=len(rows)).map(
        _predict,
        fn_kwargs={"predictor": predictor, "options": options},
        compute=ray.data.TaskPoolStrategy(size=workers or None),
        **({"num_gpus": 1} if on_gpu else {"num_cpus": 1}),
    )
    yield from predicted.iter_rows()


@contextmanager
def _cluster(address: str | None) -> Iterator[Any]:
    """Connect to a cluster of Ray, or start Ray on this machine; a connection that exists is used, and stays."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nobody is told of our user's work
    os.environ.setdefault("RAY_DATA_LOG_LEVEL", "ERROR")
    os.environ.setdefault("RAY_worker_niceness", "0")  # with Ray's 15 the tasks wait for everybody else
    try:
        import ray
        import ray.data
    except ImportError:
        raise InputError("the engine ray needs Ray: in the folder of gtx, pip install '.[ray]'") from None
    if ray.is_initialized():
        yield ray
        return
    handler = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address or "local", include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    except Exception as reason:  # of any type, such as a bare Exception where its processes are slow to start
        why = first_line(reason)
        raise InputError(f"there is no Ray at {address}: {why}" if address else f"Ray does not start: {why}") from None
    try:
        if handler is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)  # Ray's own ends this process at once, with a stack
        ray.data.DataContext.get_current().enable_progress_bars = False
        yield ray
    finally:
        ray.shutdown()


# --- Data frames, as Ray Data, Dask and Spark pass them to user functions.

_DTYPES = {float: "float64", bool: "boolean", str: "string"}  # also of frames without rows


class DataFramePredictor:
    """Callable that adds predictions to a data frame: `<target>_pred` and the like, `error` and `warning`.

    A pickled `DataFramePredictor` has a few hundred bytes; each process loads the model at the first prediction.

    Args:
        model: path of a model file that every machine can read, or `foundation`.
        smiles_column: name of the column of SMILES; for the default, see `gtx.prediction.predict_table`.
        options: further arguments of `gtx.load`, such as `device="cpu"`.
    """

    def __init__(self, model: str | Path, smiles_column: str | None = None, **options: Any) -> None:
        self.model: str | Path = model if model == FOUNDATION_MODEL else Path(model).resolve()
        self.smiles_column = smiles_column
        self.options: dict[str, Any] = options

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "predictor"}

    @cached_property
    def predictor(self) -> Predictor:
        """Predictor of the model, loaded at first use."""
        return load_predictor(self.model, **self.options)

    def __call__(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Predict the rows of a frame, for `map_batches` of Ray Data and `map_partitions` of Dask.

        Returns:
            The frame with its index and its columns, followed by the predictions: numbers as float64, texts as strings.
            A row that cannot be used has no numbers, and an `error` with the reason.

        Raises:
            InputError: the frame has no column of molecules, or lacks one that the model reads.
        """
        table = self._table(frame)
        named = self.predictor.output_columns(table.columns)
        header = output_header(table.columns, list(named))[len(table.columns) :]
        parts = predict_rows(self.predictor, table, RowLog(), workers=0)
        lines = [cells[len(table.columns) :] for _, lines, _ in parts for cells, _ in lines]
        answers = pd.DataFrame(lines, index=frame.index, columns=range(len(header)), dtype=object)
        types: dict[int, Any] = {i: _DTYPES[kind] for i, kind in enumerate([*named.values(), str, str])}
        answers = answers.astype(types)
        return frame.assign(**{name: answers[i] for i, name in enumerate(header)})

    def partitions(self, frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        """Predict one frame after the other, for `mapInPandas` of Spark."""
        return map(self, frames)

    def _table(self, frame: pd.DataFrame) -> Table:
        header: ModelFileHeader = self.predictor.header
        columns, components = list(map(str, frame.columns)), header.featuriser.components
        requested = components[0] if components else self.smiles_column
        usual, read = first_side(header.smiles_column), header.features.columns
        place = find_column(columns, requested.partition(ARROW)[0]) if requested else smiles_place(frame, usual, read)
        rows = frame.astype(object).where(frame.notna(), "").itertuples(index=False, name=None)
        return make_table(header, columns, place, (list(map(cell_text, row)) for row in rows), len(frame), requested)
