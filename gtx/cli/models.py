"""`gtx models`."""

from __future__ import annotations

import sys
from argparse import Namespace

from gtx.cli.parser import Parser

EXAMPLES = """
It prints what each architecture is, its source, whether it uses coordinates, and its number of weights at its defaults.

example:
  gtx train data.csv --target-columns y --model gps --out run/
"""


def add(parser: Parser) -> None:
    """No options."""
    parser.usage, parser.epilog = "gtx models", EXAMPLES


def run(arguments: Namespace) -> int:
    """Print the architectures there are, what each needs, and its number of weights at its defaults."""
    from rich.console import Console
    from rich.table import Table

    from gtx.architectures import DESCRIBED, SOLVED

    table = Table("name", "what", "source", "coordinates", "parameters", title="gtx train --model NAME")
    for name, entry in (DESCRIBED | SOLVED).items():
        table.add_row(name, entry.about, entry.source, entry.coordinates, f"{entry.weights:,}")
    Console(width=None if sys.stdout.isatty() else 180).print(table)
    return 0
