"""`gtx info`."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass

from gtx.cli import importing
from gtx.cli.parser import options_of
from gtx.cli.printing import cell, console
from gtx.settings import word

EXAMPLES = """
examples:
  gtx info run/model.gtx
  gtx info foundation
"""
NOTES = """
gtx info prints the architecture, the targets, how molecules are read, the split, the intervals, the versions of the
libraries and the scores. For foundation, the pretrained model that comes with gtx, it also prints the data card.
"""


USAGE = "gtx info MODEL"


@dataclass(frozen=True)
class InfoOptions:
    """Options of the command."""

    model: str = word("MODEL", "a model file, such as run/model.gtx, or foundation")


OPTIONS = options_of(InfoOptions, "options")


def run(arguments: Namespace) -> int:
    """Print the header of a model file."""
    with importing():
        from rich.table import Table

        from gtx.cli.printing import MOST, metric_lines
        from gtx.data.rows import in_unit, listed
        from gtx.prediction.foundation import FOUNDATION_MODEL, read_model_card
        from gtx.prediction.model_file import read_model
        from gtx.tasks.numeric import is_numeric

    members, header, kernel_member = read_model(arguments.model)
    weights = sum(p.numel() for p in members[0].parameters())
    targets = [name + in_unit(header.units.get(name, "")) for name in header.targets]
    held = header.model["arguments"].get("rows")  # of a model that gradients do not train
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column()
    table.add_column(overflow="fold")  # a checksum is whole
    facts: dict[str, str | None] = {
        "task": header.task.name,
        "targets": ", ".join(targets[:MOST]) + (f" and {len(targets) - MOST} more" if targets[MOST:] else ""),
        "model": f"{header.model['name']}, "
        + (f"{len(members)} × {weights:,} weights" if held is None else f"{held:,} training molecules"),
        "blend": kernel_member.describe(header.task) if kernel_member and is_numeric(header.task) else None,
        "start": "\n".join(f"{k} {v}" for k, v in header.settings.get("start", {}).items()) or None,
        "foundation": (seen := header.settings.get("seen")) and f"pretrained on {seen} (test rows)",
        "SMILES column": header.smiles_column,
        "molecules": ", ".join(f"{k} {v}" for k, v in header.featuriser.to_dict().items() if v != []),
        "features": listed(header.features.columns) if header.features.columns else None,
        "training": "\n".join(header.extent.describe(header.featuriser.components)) if header.extent else None,
        "training rows": "none" if header.training is None else header.training.describe(),
        "domain": "\n".join(header.domain.describe(header.targets, header.units)) if header.domain else None,
        "split": ", ".join(str(v) if k == "how" else f"{k} {v}" for k, v in header.split.items()) or None,
        "learned": "\n".join(header.task.answers.notes()) or None,
        "versions": ", ".join(f"{k} {v}" for k, v in header.versions.items()),
    }
    if arguments.model == FOUNDATION_MODEL:
        facts |= read_model_card()
    for part in ("train", "val", "test"):
        if part in header.metrics:
            facts[f"{part} scores"] = (
                "\n".join(metric_lines(header.metrics[part], header.task.metrics, header.units)) or None
            )
    for name, fact in facts.items():
        if fact is None:
            continue
        table.add_row(f"[bold]{name}[/]", cell(fact))
    console().print(table)
    return 0
