import gzip
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pandas as pd
import pytest

import gtx
from gtx.base.errors import InputError
from gtx.prediction import FolderOutcome, Predictor, RowSelection, predict_folder, predict_table
from tests.forks import until
from tests.training.distributed import FORKS

from .dying import MODEL, dying, predict_until_killed

TABLES = {"a.csv": "a.csv", "c.parquet": "c.parquet", "more/b.smi.gz": "more/b.smi.gz.csv"}
"""Tables of the library, and the names of their outputs."""


@pytest.fixture
def library(tmp_path) -> Path:
    """Three tables of three kinds, two of them with broken rows, a damaged one, and a note."""
    folder = tmp_path / "library"
    (folder / "more").mkdir(parents=True)
    texts = [f"{'C' * (1 + i % 6)}{'NOS'[i % 3]}" for i in range(19)] + ["C1CC", "C[Si]", "", "CCO"]
    rows = [f'{text},"{i}\n{i}"' for i, text in enumerate(texts)]
    (folder / "a.csv").write_text("\n".join(["smiles,note", *rows, ""]))
    packed = gzip.compress("".join(f"{'C' * (1 + i % 5)}Cl number {i}\n" for i in range(20)).encode())
    (folder / "more" / "b.smi.gz").write_bytes(packed)
    frame = pd.DataFrame({"id": range(12), "smiles": ["C" * (1 + i) for i in range(11)] + ["C(C"]})
    frame.to_parquet(folder / "c.parquet", index=False)
    (folder / "damaged.csv.gz").write_bytes(packed[:-20])
    (folder / "README.txt").write_text("nothing to predict")
    return folder


@pytest.fixture(scope="module")
def model() -> Predictor:
    return gtx.load(MODEL, device="cpu")


@pytest.fixture
def predict(model: Predictor, library: Path, tmp_path) -> Callable[..., FolderOutcome]:
    """Predict the library into `out`, with these options."""

    def predict(predictor: Any = model, **options: Any) -> FolderOutcome:
        return predict_folder(predictor, library, tmp_path / "out", **options)

    return predict


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def alone(model: Predictor, library: Path, folder: Path) -> dict[str, bytes]:
    """The outputs of the tables, each predicted alone."""
    for table, name in TABLES.items():
        predict_table(model, library / table, folder / name, workers=0)
    return contents(folder)


def test_each_table_has_the_output_that_it_has_alone_and_a_damaged_one_is_named(
    predict: Callable, model: Predictor, library: Path, tmp_path
) -> None:
    outcome = predict()
    expected = alone(model, library, tmp_path / "alone")
    found = contents(tmp_path / "out")
    assert {name: found[name] for name in expected} == expected
    assert set(found) - set(expected) == {"_gtx.json"}
    rows = {file: (table.row_log.rows, table.row_log.num_errors) for file, table in outcome.tables.items()}
    assert rows == {"a.csv": (23, 2), "c.parquet": (12, 1), "more/b.smi.gz": (20, 0)}
    assert list(outcome.problems) == ["damaged.csv.gz"] and "ended before the end" in outcome.problems["damaged.csv.gz"]
    assert outcome.others == ["README.txt"] and outcome.finished == []


def test_a_finished_output_is_not_made_again_unless_its_table_has_changed(predict, library, tmp_path) -> None:
    predict()
    made = {name: (tmp_path / "out" / name).stat().st_mtime_ns for name in TABLES.values()}
    again = predict()
    assert again.finished == sorted(TABLES) and not again.tables
    assert {name: (tmp_path / "out" / name).stat().st_mtime_ns for name in made} == made
    (tmp_path / "out" / "c.parquet").unlink()
    (tmp_path / "new.csv").write_text("smiles\nCCO\n")
    os.utime(tmp_path / "new.csv", (1, 1))
    (tmp_path / "new.csv").replace(library / "a.csv")  # older than its output, and yet another
    (library / "damaged.csv.gz").unlink()
    (library / "d.csv").write_text("smiles\nCCN\n")
    third = predict()
    assert sorted(third.tables) == ["a.csv", "c.parquet", "d.csv"] and third.finished == ["more/b.smi.gz"]
    assert len(pd.read_csv(tmp_path / "out" / "a.csv")) == 1 and not third.problems


def test_a_run_that_is_interrupted_leaves_no_part_of_a_table_and_goes_on(predict, model, library, tmp_path) -> None:
    def interrupt(store: Any) -> None:
        if (store.sizes == 10).any():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        predict(dying(interrupt))
    assert set(contents(tmp_path / "out")) == {"_gtx.json", "a.csv"}
    (tmp_path / "out" / ".c.parquet.1.part").write_text("of a process that was killed")
    assert predict().finished == ["a.csv"]
    expected = alone(model, library, tmp_path / "alone")
    assert contents(tmp_path / "out").items() >= expected.items()
    assert set(contents(tmp_path / "out")) == {"_gtx.json", *expected}


def test_other_predictions_and_other_files_are_left_alone(predict, model, library, tmp_path) -> None:
    predict()
    before = contents(tmp_path / "out")
    other = gtx.load(MODEL, device="cpu")
    with_other_weights = next(other.members[0].parameters())
    with_other_weights.data += 1
    for different in ({"predictor": other}, {"smiles_column": "smiles"}, {"selection": RowSelection(top=2, by="y")}):
        with pytest.raises(InputError, match="out holds other predictions with other settings or data"):
            predict(**different)
    (tmp_path / "out" / "_gtx.json").unlink()
    (tmp_path / "out" / "more" / ".film.part").write_text("of another program")
    before = contents(tmp_path / "out")
    with pytest.raises(InputError, match="out holds other files: give another folder, or empty it"):
        predict()
    assert contents(tmp_path / "out") == before
    with pytest.raises(InputError, match="predictions would be taken for molecules"):
        predict_folder(model, library, library / "out")
    with pytest.raises(InputError, match=r"there is no table in .*expected .csv, .*; it has notes.txt"):
        (tmp_path / "notes").mkdir()
        (tmp_path / "notes" / "notes.txt").touch()
        predict_folder(model, tmp_path / "notes", tmp_path / "other")


def test_no_table_vanishes_unseen(predict: Callable, library: Path, tmp_path) -> None:
    (library / "round").symlink_to(library)
    (library / "gone.csv").symlink_to("nowhere.csv")
    (library / "linked.csv").symlink_to("a.csv")
    os.mkfifo(library / "pipe.csv")
    (library / "more" / "b.smi.gz.csv").write_text("smiles\nCCO\n")
    (library / ".hidden.csv").write_text("smiles\nCCO\n")
    outcome = predict()
    del outcome.problems["damaged.csv.gz"]
    assert outcome.problems == {
        "round": "is a link to a folder, which is not followed",
        "gone.csv": "is a link to nothing",
        "pipe.csv": "is no regular file",
        "more/b.smi.gz.csv": "its predictions would have the name of those of more/b.smi.gz: rename one of the tables",
    }
    assert sorted(outcome.tables) == sorted([*TABLES, "linked.csv"])


def test_tables_that_change_or_vanish_while_they_are_read_are_named(predict, library, tmp_path) -> None:
    def meddle(store: Any) -> None:
        if (store.sizes == 10).any():  # in c.parquet
            os.utime(library / "c.parquet")
            (library / "more" / "b.smi.gz").unlink(missing_ok=True)

    problems = predict(dying(meddle)).problems
    assert problems["c.parquet"] == "it changed while it was read: run the same command again"
    assert "no such file" in problems["more/b.smi.gz"] and set(contents(tmp_path / "out")) == {"_gtx.json", "a.csv"}
    assert list(predict().tables) == ["c.parquet"]


def test_with_fail_the_first_error_of_a_row_ends_the_run(predict: Callable) -> None:
    with pytest.raises(InputError, match=r"^a\.csv: row 20, column .smiles., value .C1CC.: "):
        predict(on_error="fail")


def test_the_best_of_a_folder_are_those_of_all_its_tables_sorted(predict, model, library, tmp_path) -> None:
    outcome = predict(selection=RowSelection(top=7, by="gap_pred", lowest=True))
    alone(model, library, tmp_path / "alone")
    files = [tmp_path / "alone" / name for name in TABLES.values()]
    tables = [pd.read_parquet(file) if file.suffix == ".parquet" else pd.read_csv(file) for file in files]
    expected = pd.concat(tables).sort_values("gap_pred", kind="stable").head(7).reset_index(drop=True)
    found = pd.read_csv(tmp_path / "out" / "top.csv")
    assert outcome.best == len(found) == 7 and outcome.problems.keys() == {"damaged.csv.gz"}
    assert list(found) == ["smiles", "note", *list(found)[2:-2], "id", "name"]
    pd.testing.assert_frame_equal(found[list(expected)], expected, check_dtype=False, rtol=1e-6)


def test_the_best_keep_the_names_of_their_columns(model, tmp_path) -> None:
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "a.csv").write_text(",smiles, price,y,y\n7,CCO,2,a,b\n8,C1CC,4,c,d\n")
    (tmp_path / "library" / "b.csv").write_text("smiles,price\nCCO,3\n")
    predict_folder(model, tmp_path / "library", tmp_path / "out", selection=RowSelection(top=2, by="price"))
    header, *rows = (line.split(",") for line in (tmp_path / "out" / "top.csv").read_text().splitlines())
    assert header[:5] == ["", "smiles", " price", "y", "y"] and header[-1] == "price"
    assert rows[0][:5] == ["8", "C1CC", "4", "c", "d"] and rows[1][:2] + rows[1][-1:] == ["", "CCO", "3"]


def test_a_typo_in_the_column_of_the_best_rows_stands_in_no_ones_way(predict: Callable, tmp_path) -> None:
    outcome = predict(selection=RowSelection(top=3, by="gap_prde"))
    assert not outcome.tables and outcome.best is None and "gap_prde" in outcome.problems["a.csv"]
    assert predict(selection=RowSelection(top=3, by="gap_pred")).best == 3


# Ray, started for real.


@pytest.mark.slow
def test_ray_writes_what_one_process_does_though_a_worker_is_killed(
    ray_folder: Path, predict: Callable, model: Predictor, library: Path, tmp_path
) -> None:
    once = tmp_path / "killed"

    def kill_the_worker_of_ray(store: Any) -> None:
        if (store.sizes == 10).any() and not once.exists():
            once.touch()
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(60)  # until this process of its reading pool ends too

    told: list[str] = []
    outcome = predict(dying(kill_the_worker_of_ray), engine="ray", workers=1, tell=lambda file, _: told.append(file))
    assert once.exists()
    assert sorted(outcome.tables) == sorted(told) == sorted(TABLES) and list(outcome.problems) == ["damaged.csv.gz"]
    expected = alone(model, library, tmp_path / "alone")
    found = contents(tmp_path / "out")
    del found["_gtx.json"]
    assert found == expected
    again = predict(engine="ray")
    assert again.finished == sorted(TABLES) and not again.tables


@pytest.mark.slow
@pytest.mark.parametrize("engine", [None, "ray"])
def test_a_killed_run_leaves_no_process_and_goes_on(engine, predict, model, library, tmp_path) -> None:
    if engine:
        pytest.importorskip("ray", reason="Ray is not installed: in the folder of gtx, pip install '.[ray]'")
    out, mark = tmp_path / "out", str(uuid4())
    killed = FORKS.Process(target=predict_until_killed, args=(library, out, engine, mark))
    killed.start()
    killed.join(240)
    assert killed.exitcode == -signal.SIGKILL
    try:
        until(lambda: not processes(mark), 240)
    finally:
        for process in processes(mark):
            os.kill(process, signal.SIGKILL)
    made = {file: (out / name).stat().st_mtime_ns for file, name in TABLES.items() if (out / name).exists()}
    assert "c.parquet" not in made and predict().finished == sorted(made)
    assert {file: (out / TABLES[file]).stat().st_mtime_ns for file in made} == made
    assert contents(out) == alone(model, library, tmp_path / "alone") | {"_gtx.json": (out / "_gtx.json").read_bytes()}


def processes(mark: str) -> list[int]:
    """The running processes that have this mark in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"GTX_TEST={mark}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:  # of another user, or ended meanwhile
            continue
    return found
