from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gtx
from gtx.bulk import predict_folder_of_tables, predicting
from gtx.bulk.predicting import ShardPredictor
from gtx.bulk.tables import Shard
from gtx.bulk.workers import InProcess, LibraryOutcome, WorkerDied
from gtx.data.featurising import DEADLY
from gtx.errors import InputError
from gtx.prediction import RowSelection, predict_table

from .conftest import MODEL, dying

pytestmark = pytest.mark.slow

FILES = ["a.csv", "c.parquet", "more/b.smi.gz"]


@pytest.fixture
def predict(library: Path, tmp_path: Path) -> Callable[..., LibraryOutcome]:
    """Of the library, in this process unless told otherwise."""
    usual = {"device": "cpu", "workers": 0, "shard_rows": 10}
    return lambda **options: predict_folder_of_tables(MODEL, library, tmp_path / "out", **usual | options)


def parts(out: Path, file: str) -> pa.Table:
    """The parts of a file, one after the other."""
    paths = sorted((out / file).parent.glob(f"{Path(file).name}-*.parquet"))
    return pa.concat_tables([pq.ParquetFile(path).read().replace_schema_metadata(None) for path in paths])


def alone(library: Path, file: str, tmp_path: Path) -> pa.Table:
    """What `gtx predict` writes for a file."""
    predict_table(gtx.load(MODEL, device="cpu"), library / file, tmp_path / "one.parquet", workers=0)
    return pq.ParquetFile(tmp_path / "one.parquet").read().replace_schema_metadata(None)


def test_the_parts_of_a_file_are_what_is_predicted_for_the_file_alone(
    predict: Callable, library: Path, tmp_path: Path
) -> None:
    outcome = predict()
    for file in FILES:
        assert parts(tmp_path / "out", file).equals(alone(library, file, tmp_path)), file
    assert outcome.row_log.summary().startswith("55 rows: 52 read, 3 errors (3 with an unusable molecule")
    assert (outcome.files, outcome.shards, outcome.before, outcome.kept) == (3, 7, 0, 55)
    assert outcome.left_out == ["README.txt"] and not outcome.problems
    assert not [p for p in (tmp_path / "out").rglob(".*") if p.name != ".gtx.lock"]
    everything = pd.read_parquet(tmp_path / "out")  # a data set of files; nothing else is in the way
    assert len(everything) == 55


def test_what_is_done_is_not_done_again(
    predict: Callable, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of_ten_atoms(store: Any) -> None:
        if (store.sizes == 10).any():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        predict(load=dying(of_ten_atoms))
    done = sorted(path.name for path in (tmp_path / "out").rglob("*.parquet"))
    assert done == ["a.csv-000000000000.parquet", "a.csv-000000000010.parquet", "a.csv-000000000020.parquet"]
    assert not list((tmp_path / "out").rglob(".*.part")) and not list((tmp_path / "out").rglob(".*.journal"))
    (tmp_path / "out" / done[1]).write_bytes(b"PAR1 damaged")
    (tmp_path / "out" / ".x.1.part").write_text("of a process that was killed")
    shards, own = [], ShardPredictor.work
    monkeypatch.setattr(ShardPredictor, "work", lambda self, shard: shards.append(shard[::2]) or own(self, shard))
    outcome = predict()
    c, b = ("c.parquet", 0), ("more/b.smi.gz", 0)
    assert shards == [("a.csv", 10, False), (*c, False), (c[0], 10, True), (*b, False), (b[0], 10, True)]
    assert outcome.before == 2 and outcome.row_log.rows == 55
    assert all(parts(tmp_path / "out", file).equals(alone(library, file, tmp_path)) for file in FILES)
    shards.clear()
    monkeypatch.setattr(predicting, "open_for_model", None)  # nothing is read
    again = predict()
    assert not shards and again.before == 7 and again.row_log.summary() == outcome.row_log.summary()
    (library / "d.csv").write_text("smiles\nCCO\n")
    monkeypatch.undo()
    assert predict().shards == 8


def test_predictions_of_something_else_are_left_alone(predict: Callable, library: Path, tmp_path: Path) -> None:
    predict()
    with pytest.raises(InputError, match=r"holds other predictions with .*: shard_rows .10 there, 20 now.\. Choose"):
        predict(shard_rows=20)
    with pytest.raises(InputError, match=r"holds other predictions with .*: conditions "):
        predict(selection=RowSelection.read("y_pred > 1"))
    (library / "a.csv").write_text("smiles\nC\n")
    with pytest.raises(InputError, match=r"a\.csv has changed since .*a\.csv-000000000000.parquet was written"):
        predict()
    (library / "a.csv").unlink()
    with pytest.raises(InputError, match=r"a\.csv is not there any more, but .* was written: remove its parts"):
        predict()
    (tmp_path / "out" / "_gtx.json").unlink()
    with pytest.raises(InputError, match="holds other files: give another --out"):
        predict()


def test_a_file_that_cannot_be_read_is_told_and_the_others_are_predicted(
    predict: Callable, library: Path, tmp_path: Path
) -> None:
    whole = (library / "more" / "b.smi.gz").read_bytes()
    (library / "more" / "b.smi.gz").write_bytes(whole[:-20])
    (library / "b.csv").write_text("x,y\n1,2\n")
    outcome = predict()
    assert outcome.problems[0].startswith("b.csv: which column holds the SMILES?")
    assert outcome.problems[1].startswith("more/b.smi.gz: cannot read ")
    assert len(outcome.problems) == 2 and outcome.row_log.rows == 35
    with pytest.raises(InputError, match=r"a\.csv: row 20, "):
        predict_folder_of_tables(MODEL, library, tmp_path / "failing", workers=0, on_error="fail", device="cpu")


def test_each_file_of_a_folder_counts_once_and_what_is_no_file_is_named(
    predict: Callable, library: Path, tmp_path: Path
) -> None:
    (library / "round").symlink_to(library)
    (library / "more" / "round").symlink_to("..")
    (library / "again.csv").symlink_to("a.csv")
    (library / "gone.csv").symlink_to("nowhere.csv")
    (library / "itself.csv").symlink_to("itself.csv")
    os.mkfifo(library / "pipe.csv")
    outcome = predict()
    assert outcome.row_log.rows == 55 and outcome.files == 3
    nothing = "a link to nothing"
    assert outcome.problems == [f"gone.csv: {nothing}", f"itself.csv: {nothing}", "pipe.csv: no regular file"]


def test_the_best_of_a_library_are_those_of_all_its_tables_sorted(
    predict: Callable, library: Path, tmp_path: Path
) -> None:
    name = f"{gtx.load(MODEL).header.targets[0]}_pred"
    selection = RowSelection.read(f"{name} > -100", 7, name, lowest=True)
    outcome = predict(selection=selection, shard_rows=5)
    tables = [alone(library, file, tmp_path) for file in FILES]
    whole = pa.concat_tables(tables, promote_options="permissive").to_pandas()
    expected = whole.sort_values(name, kind="stable").head(7)
    assert len(expected) == 7 and outcome.path == tmp_path / "out" / "top.parquet"
    pd.testing.assert_frame_equal(pd.read_parquet(outcome.path), expected.reset_index(drop=True))
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "out"), pd.read_parquet(outcome.path))
    with pytest.raises(InputError, match="there is no column 'y'"):
        predict_folder_of_tables(
            MODEL, library, tmp_path / "other", selection=RowSelection(top=1, by="y"), device="cpu"
        )


# Workers that die


class Fragile(InProcess):
    """Workers of this process, of which only the work ends when they die."""

    started = 0

    def __init__(self, job: Any, start: Callable) -> None:
        super().__init__(job, lambda: self._counted(start))

    def _counted(self, start: Callable) -> ShardPredictor:
        self.started += 1
        return start()

    def submit(self, worker: ShardPredictor, shard: Shard) -> Any:
        try:
            return super().submit(worker, shard)
        except Death:
            return shard

    def result(self, given: Any) -> Any:
        if isinstance(given, Shard):
            raise WorkerDied
        return super().result(given)


class Death(BaseException):
    """Nothing that anybody handles."""


@pytest.fixture
def fragile(predict: Callable, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[LibraryOutcome, int]]:
    """The library predicted by workers that die of what raises `Death`, and how many there were."""
    made: list[Fragile] = []
    monkeypatch.setattr(predicting, "InProcess", lambda *given: made.append(Fragile(*given)) or made[-1])

    def run(deadly: Callable[[Any], None]) -> tuple[LibraryOutcome, int]:
        return predict(load=dying(deadly)), made[-1].started

    return run


def test_a_worker_that_dies_costs_its_work_in_hand_alone(fragile: Callable, library: Path, tmp_path: Path) -> None:
    left = [5, 14]

    def now_and_then(store: Any) -> None:
        left[:] = [count - 1 for count in left]
        if 0 in left:
            raise Death

    outcome, workers = fragile(now_and_then)
    assert workers == 3 and not outcome.problems
    for file in FILES:
        assert parts(tmp_path / "out", file).equals(alone(library, file, tmp_path)), file


def test_a_row_that_kills_two_workers_has_an_error_and_the_others_are_predicted(
    fragile: Callable, library: Path, tmp_path: Path
) -> None:
    def of_ten_atoms(store: Any) -> None:
        if (store.sizes == 10).any():
            raise Death

    outcome, workers = fragile(of_ten_atoms)
    assert workers == 3 and outcome.row_log.error_counts == {"with an unusable molecule": 3, "with a broken row": 1}
    tables = parts(tmp_path / "out", FILES[1]), alone(library, FILES[1], tmp_path)
    found, whole = (table.to_pylist() for table in tables)
    assert found[9]["error"] == f"row 10: {DEADLY}" and found[9]["smiles"] == "C" * 10
    del found[9], whole[9]
    frames = map(pd.DataFrame, (found, whole))
    pd.testing.assert_frame_equal(*frames, rtol=1e-5)  # its neighbours were in hand without it
    assert not list((tmp_path / "out").rglob(".*.journal"))


def test_rows_that_kill_together_and_not_alone_are_told(fragile: Callable, tmp_path: Path) -> None:
    def of_two(store: Any) -> None:
        if {8, 9} <= set(store.sizes.tolist()):
            raise Death

    outcome, workers = fragile(of_two)
    assert outcome.problems == ["c.parquet: 3 workers died at rows 6 to 10"] and workers == 4
    assert outcome.row_log.rows == 45


@pytest.mark.usefixtures("forks")
def test_processes_are_killed_and_no_row_is_lost(predict: Callable, library: Path, tmp_path: Path) -> None:
    def of_ten_atoms(store: Any) -> None:
        if (store.sizes == 10).any():
            os.kill(os.getpid(), signal.SIGKILL)

    outcome = predict(load=dying(of_ten_atoms), workers=2)
    assert outcome.row_log.rows == 55 and not outcome.problems
    errors = parts(tmp_path / "out", FILES[1])["error"].to_pylist()
    assert errors[9] == f"row 10: {DEADLY}" and errors.count(None) == 10
