"""How much one row may hold, so that no file fills the memory, however small it is on disk.

Whoever needs more sets these, as in `gtx.data.limits.LONGEST_ROW = 2**26`, before a table is opened.
"""

from __future__ import annotations

LONGEST_ROW = 2**23  # characters of a line, of a record quoted over several lines, of the cells of a Parquet row
LONGEST_RECORD = 10_000  # lines that one quoted cell may span; beyond, its quote counts as never closed
MOST_COLUMNS = 100_000
HEAVIEST = 2**25  # bytes, about, of rows that are in hand together


def too_long() -> str:
    """What is wrong with a row that is longer than that."""
    return f"has more than {LONGEST_ROW:,} characters; its cells are left out"


def too_many_columns(count: int) -> str:
    """What is wrong with a table of more columns than that."""
    return f"{count:,} columns or more came; the limit is {MOST_COLUMNS:,}"
