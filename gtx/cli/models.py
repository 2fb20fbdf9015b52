"""`gtx models`."""

from __future__ import annotations

from argparse import Namespace

from gtx.cli.parser import Parser
from gtx.cli.printing import console

EXAMPLES = """
examples:
  gtx models
  gtx train data.csv --target-columns y --model gps --out run/
"""
NOTES = """
It prints what each architecture is, its source, whether it uses coordinates, and its number of weights at its defaults.
"""


def add(parser: Parser) -> None:
    """No options."""
    parser.usage = "gtx models"
    parser.examples, parser.epilog = EXAMPLES, NOTES


def run(arguments: Namespace) -> int:
    """Print the architectures there are, what each needs, and its number of weights at its defaults."""
    from rich.table import Table

    from gtx.architectures import CLOSED_FORM_MODELS, DESCRIBED

    table = Table(title="gtx train --model NAME", show_edge=False)
    for column in ("name", "what", "source", "coordinates", "parameters"):
        table.add_column(column, overflow="fold", min_width=16 if column == "source" else None)  # arXiv:1234.56789
    for name, entry in (DESCRIBED | CLOSED_FORM_MODELS).items():
        table.add_row(name, entry.about, entry.source, entry.coordinates, f"{entry.weights:,}")
    console().print(table)
    return 0
