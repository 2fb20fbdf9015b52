"""`gtx models`."""

from __future__ import annotations

from argparse import Namespace

from gtx.cli.parser import Option
from gtx.cli.printing import console

EXAMPLES = """
examples:
  gtx models
  gtx train data.csv --target-columns y --model gps --out run/
"""
CLOSED_FORM = (
    (
        "kernel",
        "no network: ridge regression with a kernel of substructures, descriptors and embeddings, in closed form",
        "Griffiths et al. 2023 (arXiv:2212.04450)",
    ),
    ("tanimoto", "the same of substructures alone: the Tanimoto kernel of their counts", "Ralaivola et al. 2005"),
)
NOTES = """
gtx models prints for each architecture a description, its source, whether it reads coordinates, and its number of
weights with the default arguments.
"""


USAGE = "gtx models"
OPTIONS: list[Option] = []


def run(arguments: Namespace) -> int:
    """Print the architectures there are, what each needs, and its number of weights at its defaults."""
    import torch
    from rich.table import Table

    from gtx.models import ARCHITECTURES
    from gtx.molecules import Featuriser

    featuriser = Featuriser()
    sizes = {name: getattr(featuriser, name) for name in ("atom_sizes", "bond_sizes", "num_descriptors")}
    table = Table(title="gtx train --model NAME", show_edge=False, pad_edge=False)
    screen = console()
    table.add_column("name", no_wrap=True)
    table.add_column("what")
    table.add_column("source", width=18 if screen.width < 120 else None)  # (arXiv:1234.56789)
    for column in ("coordinates", "weights"):
        table.add_column(column, no_wrap=True)
    for name, entry in ARCHITECTURES.items():
        with torch.device("meta"):  # counted, not made
            model = entry.make(1, **sizes)
        weights = sum(parameter.numel() for parameter in model.parameters())
        table.add_row(name, entry.about, entry.source, entry.coordinates, f"{weights:,}")
    for row in CLOSED_FORM:
        table.add_row(*row, "none", "0")
    screen.print(table)
    return 0
