from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gtx.errors import InputError
from gtx.prediction import Predictor, RowFilter, predict_table

HEADER = ["id", "y_pred", "y std"]
ROWS = [["a", 3.0, 0.1], ["b", None, None], ["c", 8.0, 0.9], ["d", 8.0, 0.2], ["e", "-1e1", 0.2], ["f", math.nan, 0.0]]


def chosen(*words: object, **more: object) -> list[str]:
    sieve = RowFilter.read(*words, **more).sieve(HEADER)
    found = [cells[0] for cells, _ in sieve.select((row, None) for row in ROWS)] + [c[0] for c, _ in sieve.best()]
    assert sieve.written == len(found)
    return found


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (None, "abcdef"),
        ("y_pred > 7", "cd"),
        ("y_pred<=3", "ae"),
        ("y_pred != 8", "ae"),  # what has no number fulfils nothing
        ("y_pred == 8 and y std < 0.5", "d"),
        ("y_pred > -1e2 and y std >= .2", "cde"),
    ],
)
def test_rows_that_fulfil_all_conditions_are_kept_in_order(text: str | None, kept: str) -> None:
    assert chosen(text) == list(kept)


def test_the_best_rows_come_first_and_of_equal_ones_the_earlier() -> None:
    assert chosen(None, 3, "y_pred") == ["c", "d", "a"]
    assert chosen(None, 10, "y_pred", True) == ["e", "a", "c", "d"]
    assert chosen("y std < 0.5", 1, "y_pred") == ["d"]


def test_the_best_of_many_are_those_of_the_whole_table_sorted() -> None:
    values = np.random.default_rng(0).integers(0, 50, 1000)
    sieve = RowFilter(top=20, by="y").sieve(["y", "i"])
    assert not list(sieve.select(([float(y), i], None) for i, y in enumerate(values)))
    assert [cells[1] for cells, _ in sieve.best()] == np.argsort(-values, kind="stable")[:20].tolist()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["y_pred"], "expected a column, one of .* and a number, got 'y_pred'"),
        (["y_pred => 1"], "there is no column 'y_pred ='"),
        ([None, 3], "top and by belong together"),
        ([None, None, None, True], "lowest sets"),
        ([None, 3, "y_prod"], "there is no column 'y_prod'; did you mean 'y_pred'"),
    ],
)
def test_what_cannot_be_selected_is_said(words: list, message: str) -> None:
    with pytest.raises(InputError, match=message):
        chosen(*words)


def test_of_a_table_the_best_rows_are_written_with_the_types_of_its_columns(
    predictor: Predictor, tmp_path: Path
) -> None:
    frame = pd.DataFrame({"smiles": ["C" * (1 + i % 7) + "O" for i in range(30)] + ["C1CC"], "id": range(31)})
    frame.to_parquet(tmp_path / "in.parquet", index=False)
    every = predict_table(predictor, tmp_path / "in.parquet", tmp_path / "all.parquet")
    selection = RowFilter.read("id >= 3", 5, "gap_pred")
    best = predict_table(predictor, tmp_path / "in.parquet", tmp_path / "best.parquet", selection=selection)
    whole, found = pd.read_parquet(tmp_path / "all.parquet"), pd.read_parquet(tmp_path / "best.parquet")
    expected = whole[whole["id"] >= 3].sort_values("gap_pred", ascending=False, kind="stable").head(5)
    pd.testing.assert_frame_equal(found, expected.reset_index(drop=True))
    assert (every.written, best.written) == (31, 5) and best.ledger.summary() == every.ledger.summary()
