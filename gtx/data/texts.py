"""Targets that are texts: cells to texts, blanks and what cannot be used told apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gtx.data.columns import column_index
from gtx.data.ledger import Ledger
from gtx.data.rows import Row
from gtx.errors import InputError


def parse_texts(
    rows: Sequence[Row],
    columns: Sequence[str],
    name: str,
    ledger: Ledger,
    check: Callable[[str], None],
    trains: bool = True,
) -> list[str]:
    """The texts of a column, checked; white space around them is none of theirs.

    Args:
        rows: all rows of a table.
        columns: the names of their cells.
        name: the target column.
        ledger: gets a warning for an empty cell, and a row error for a text that `check` refuses.
        check: raises `InputError` with the reason.
        trains: the rows are for training, so that a column without texts is of no use.

    Returns:
        A text per row, empty where there is none or none that can be used, and for rows that came with an error.

    Raises:
        InputError: for a missing or repeated column, or one that is empty throughout.
    """
    place, texts = column_index(columns, name), []
    for row in rows:
        text = "" if row.error else row.cells[place].strip()
        if not text and not row.error:
            ledger.warn(row.number, name, row.cells[place], "there is no sequence to learn; the row is only predicted")
        try:
            if text:
                check(text)
        except InputError as reason:
            ledger.error(row.number, name, row.cells[place], str(reason), kind="with a bad target")
            text = ""
        texts.append(text)
    if trains and all(row.error or not row.cells[place].strip() for row in rows):
        raise InputError(f"target column {name!r} is blank in all of the {len(rows)} rows; sequences were expected")
    return texts
