"""`gtx predict`."""

from __future__ import annotations

import sys
from argparse import Namespace

from gtx.cli.parser import Parser

EXAMPLES = """
Every input row comes out, in order, its cells as they were, with <target>_pred (and _std, _low, _high where the model
has them) or an error, and a warning where the molecule has something unseen in training. Where the table holds the
target, the scores are printed too. A model that writes sequences gives <target>_pred, its <target>_log_probability and,
of SMILES, <target>_valid, 1 if it is one and 0 if not.

examples:
  gtx predict run/model.gtx molecules.csv --out predictions.csv
  gtx predict run/model.gtx library.parquet --out predictions.parquet
  cat smiles.txt | gtx predict run/model.gtx -
  gtx predict run/model.gtx "CC(=O)Oc1ccccc1C(=O)O"
  gtx predict writer/model.gtx molecules.csv --beams 5 --out products.csv
"""


def add(parser: Parser) -> None:
    """Options."""
    parser.epilog = EXAMPLES
    parser.add_argument("model", help="a model file")
    parser.add_argument("molecules", help="a table, SMILES file or SDF; - for standard input; or one SMILES")
    parser.add_argument("--out", default="-", metavar="FILE", help=".csv, .tsv or .parquet; - is standard output")
    parser.add_argument("--smiles-column", metavar="NAME", help="default: as in the table the model was trained on")
    parser.add_argument(
        "--beams",
        type=int,
        metavar="N",
        help="beginnings that a model which writes sequences follows; default: 1",
    )
    parser.add_argument("--on-error", choices=["report", "fail"], default="report", help="what a bad row does")
    parser.add_argument("--workers", type=int, help="processes that read molecules; default: all cores")
    parser.add_argument("--device", help="as torch names it; default: a GPU if there is one")


def run(arguments: Namespace) -> int:
    """Predict, and print how many rows could not be read."""
    from gtx.cli.scores import metric_lines
    from gtx.prediction import load, predict_table

    predictor = load(arguments.model, arguments.device, arguments.beams)
    outcome = predict_table(
        predictor,
        arguments.molecules,
        arguments.out,
        smiles_column=arguments.smiles_column,
        on_error=arguments.on_error,
        workers=arguments.workers,
        progress=sys.stderr.isatty(),
    )
    print(outcome.ledger.summary(), file=sys.stderr)
    for line in (*outcome.notes, *(metric_lines(outcome.metrics) if outcome.metrics else ())):
        print(line, file=sys.stderr)
    return 0
