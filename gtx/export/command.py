"""`gtx export`."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import MISSING, dataclass

from gtx.cli.parser import options_of
from gtx.cli.printing import note, say
from gtx.settings import Name, option, word

ABOUT = "write a trained model to an ONNX file, which runs without torch"
EXAMPLES = """
examples:
  gtx export run/model.gtx --out model.onnx
  gtx export run/model.gtx --out model.onnx --check molecules.csv
"""
NOTES = """
The file contains the networks, the kernel model and the scales of the targets; it predicts the same as gtx predict. Its
inputs are the arrays of one molecule, as gtx.molecules makes them with RDKit and numpy.
gtx.export.running.ExportedModel runs the file with onnxruntime.

gtx compares the file with the model on training rows and unusual molecules, and writes no file if they differ.

Models that predict numbers or classes of molecules can be exported; docs/serving.md lists the others.
"""


USAGE = "gtx export MODEL --out FILE [options]"


@dataclass(frozen=True)
class ExportOptions:
    """Options of the command."""

    model: str = word("MODEL", "a model file of gtx train")
    out: Name = option(MISSING, "file to write: .onnx", metavar="FILE")
    check: str | None = option(None, "also compare the predictions for the molecules of this table", metavar="TABLE")
    smiles_column: str | None = option(
        None, "the column with the SMILES in the table of --check; default: as in the training table"
    )


OPTIONS = options_of(ExportOptions, "options")


def run(arguments: Namespace) -> int:
    """Export, and print what the file answers and how it was checked."""
    from gtx.data import open_table
    from gtx.data.rows import listed, plural
    from gtx.export.exporting import export_model
    from gtx.prediction import load_predictor

    model, molecules = load_predictor(arguments.model, "cpu"), []
    if arguments.check:
        table = open_table(arguments.check, arguments.smiles_column, model.header.smiles_column)
        molecules = [str(row.readable) for row in table.rows]
    done = export_model(model, arguments.out, molecules, note)
    say(f"{arguments.out}: {done.size / 1e6:.1f} MB, answers {listed(done.columns, 10)}")
    if done.unread:
        note(f"{plural(done.unread, 'molecule')} of {arguments.check} cannot be read: not compared")
    say(f"equal to the model on {done.checked:,} molecules: largest difference {done.difference:.1e} {done.unit}")
    return 0
