"""Records of delimited text are the library's, whichever way they are read."""

from __future__ import annotations

import csv
import io
import random

import pytest

from gtx.data.delimited import records


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_cells_are_those_of_the_library(delimiter: str) -> None:
    """The library reads lines with a quote, a shortcut those without: the cells must not tell which."""
    draw = random.Random(0)
    plain = ["", " ", "C", "007", "nan", "x\0y", "ü\udc80", "\v", "\u2028", " a "]
    quoted = ['"a"', f'"a{delimiter}b"', '"a""b"', '"two\nlines"', '""', '"\r\n"']
    rows = (draw.choices(plain + quoted * (draw.random() < 0.2), k=draw.randrange(5)) for _ in range(2000))
    text = "".join(delimiter.join(row) + draw.choice(["\n", "\r\n", "\r"]) for row in rows)
    lines = list(io.StringIO(text, newline=""))
    expected = list(csv.reader(lines, delimiter=delimiter, strict=True))
    assert list(records(lines, delimiter)) == [(cells, None) for cells in expected]
