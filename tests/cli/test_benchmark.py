"""`gtx benchmark` as a user meets it."""

import json
from pathlib import Path

import numpy as np
import pytest

from gtx.cli import main
from gtx.report.comparison import compare
from gtx.tasks import Regression
from tests.tables import TINY_WORDS, molecules, read, write

from .victim import killed_after_a_split

pytestmark = pytest.mark.slow

METHODS = ["gtx", "mean", "ridge", "random_forest", "kernel"]
BROKEN, BAD_CELL, BLANK, TWICE = 3, 5, 7, 11  # rows that something is the matter with


@pytest.fixture(scope="module")
def words(tmp_path_factory) -> list[str]:
    rows = molecules(60)[["smiles", "gap"]].to_numpy().tolist()
    rows[BROKEN][0], rows[BAD_CELL][1], rows[BLANK][1] = "C1CC", "high", ""
    rows[TWICE][0] = rows[TWICE - 1][0]
    file = write(tmp_path_factory.mktemp("benchmark") / "data.csv", rows, ["smiles", "gap"])
    more = ["--test-folds=2", "--repeats=2", "--workers=0"]
    return ["benchmark", str(file), "--target-columns", "gap", *more, *TINY_WORDS]


@pytest.fixture(scope="module")
def out(words: list[str], tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("out") / "bench"
    assert main([*words, "--out", str(out)]) == 0
    return out


def test_every_row_has_numbers_or_an_error(words: list[str], out: Path) -> None:
    given, rows = read(Path(words[1])), read(out / "predictions.csv")
    assert [(row["smiles"], row["gap"]) for row in rows] == [(row["smiles"], row["gap"]) for row in given]
    numbers = [[row[f"gap_{method}"] for method in METHODS] for row in rows]
    for i, row in enumerate(rows):
        assert all(numbers[i]) != bool(row["error"]) or i == BLANK
    assert "unclosed ring" in rows[BROKEN]["error"] and "not a finite number" in rows[BAD_CELL]["error"]
    assert not any(numbers[BLANK])
    assert rows[BLANK]["warning"] == "row 8: there is no target value; the row is in no fold"
    assert rows[TWICE]["gap_gtx"] == rows[TWICE - 1]["gap_gtx"]  # one fold held both, each time


def test_the_table_is_that_of_the_predictions(words: list[str], out: Path) -> None:
    record = json.loads((out / "benchmark.json").read_text())
    splits = [json.loads((out / "splits" / name / "result.json").read_text()) for name in ("0-0", "0-1", "1-0", "1-1")]
    scores = [split["scores"] for split in splits]
    assert [split["scores"] for split in record["splits"]] == scores
    table = compare(scores, 1.0, ["rmse", "mae", "r2"])
    assert record["table"] == table
    written = read(out / "benchmark.csv")
    assert [row["method"] for row in written] == METHODS * 3
    assert float(written[2]["p"]) == pytest.approx(table[2]["p"], rel=1e-5) and written[0]["p"] == ""
    for half in (splits[:2], splits[2:]):  # each repeat tests every molecule once
        tested = np.sort(np.concatenate([split["test"] for split in half]))
        assert np.array_equal(tested, np.unique(tested)) and len(tested) == 57
    rows = [row for i, row in enumerate(read(out / "predictions.csv")) if i not in (BROKEN, BAD_CELL)]
    y = np.array([[float(row["gap"] or "nan")] for row in rows])
    split = splits[1]
    first = split["test"][0]
    for method in METHODS:
        predicted = np.array(split["predictions"][method])
        assert Regression(["gap"]).objective.evaluate(y[split["test"]], predicted) == split["scores"][method]
        again = next(other for other in splits[2:] if first in other["test"])
        (other,) = again["predictions"][method][again["test"].index(first)]
        assert float(rows[first][f"gap_{method}"]) == pytest.approx((predicted[0, 0] + other) / 2, rel=1e-6)
    assert record["data"]["sha256"] and record["test_folds"] == 2 and record["settings"]["epochs"] == 3
    assert (out / "benchmark.png").stat().st_size > 10_000


def test_the_same_command_reads_what_is_there_and_others_are_refused(words: list[str], out: Path, capsys) -> None:
    before = {file: file.stat().st_mtime_ns for file in out.glob("splits/*/result.json")}
    table = (out / "benchmark.csv").read_bytes()
    assert main([*words, "--out", str(out)]) == 0
    said = capsys.readouterr()
    assert "60 rows: 58 read, 2 errors" in said.err and "2 × 2 random folds of 28 to 29 molecules" in said.err
    assert "4 splits are few: with more --repeats the intervals become narrower" in said.err
    assert "Random forest" in said.out
    assert "interval" in said.out and "…" not in said.out
    assert "difference: RMSE of gtx minus that of the method" in " ".join(said.out.split())
    assert {file: file.stat().st_mtime_ns for file in before} == before
    assert (out / "benchmark.csv").read_bytes() == table
    assert main([*words, "--out", str(out), "--test-folds=3"]) == 2
    error = capsys.readouterr().err
    assert "folds (2 there, 3 now)" in error and "--overwrite" in error and "Traceback" not in error
    assert (out / "benchmark.csv").read_bytes() == table  # a refused command takes nothing away


def test_a_killed_benchmark_goes_on_to_the_numbers_of_an_uninterrupted_one(words, out, tmp_path) -> None:
    again = [*words, f"--out={tmp_path / 'killed'}"]
    killed_after_a_split([*again, "--jobs=2"])
    assert list(tmp_path.glob("killed/splits/*/result.json")) and not (tmp_path / "killed" / "benchmark.json").exists()
    assert main(again) == 0
    for name in ("predictions.csv", "benchmark.csv"):
        assert (tmp_path / "killed" / name).read_bytes() == (out / name).read_bytes()


def test_what_cannot_be_is_one_line(words: list[str], tmp_path, capsys) -> None:
    for word, message in (
        ("--repeats=1000000000", "repeats: expected 1 to 10,000, got 1000000000"),
        ("--test-folds=100", "100 folds need as many groups of rows that stay together, and there are 56"),
        ("--on-error=fail", 'row 4, column "smiles", value "C1CC": cannot be read: unclosed ring'),
    ):
        assert main([*words, "--out", str(tmp_path / "x"), word]) == 2
        error = capsys.readouterr().err
        assert message in error and error.count("\n") == 1
