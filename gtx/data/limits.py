"""Limits on the size of one row, so that no file fills the memory, however small it is on disk.

To raise one, set e.g. `gtx.data.limits.LONGEST_ROW = 2**26` before a table is opened.
"""

from __future__ import annotations

LONGEST_ROW = 2**23  # characters of a line, of a record quoted over several lines, of the cells of a Parquet row
LONGEST_RECORD = 10_000  # lines that one quoted cell may span; beyond, its quote counts as never closed
MOST_COLUMNS = 100_000
HEAVIEST = 2**25  # bytes, about, of rows that are in hand together


def too_long() -> str:
    """Describe the error of a row above the limit."""
    return f"has more than {LONGEST_ROW:,} characters; its cells are left out"


def too_many_columns(count: int) -> str:
    """Describe the error of a table with too many columns."""
    return f"{count:,} columns or more came; the limit is {MOST_COLUMNS:,}"
