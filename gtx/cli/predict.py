"""`gtx predict`."""

from __future__ import annotations

import sys
from argparse import Namespace

from gtx.cli.parser import Parser
from gtx.cli.printing import note

EXAMPLES = """
Every input row comes out, in order and with its cells as they were. After them come <target>_pred (and, where the model
has them, _std, _low and _high), an error where the row could not be used, and a warning where the molecule has
something that training did not have. If the table holds the target, the scores are printed too. A model that writes
sequences gives <target>_pred, its <target>_log_probability and, for SMILES, <target>_valid: 1 if it is a molecule, 0 if
not.

Standard input may hold whatever a file may: a table with a header, SMILES with or without names, an SDF, packed by gzip
or not. In a Parquet file the predictions are numbers, and the columns of a Parquet table keep their types.

examples:
  gtx predict run/model.gtx molecules.csv --out predictions.csv
  gtx predict run/model.gtx library.parquet --out predictions.parquet
  cat smiles.txt | gtx predict run/model.gtx -
  gtx predict run/model.gtx "CC(=O)Oc1ccccc1C(=O)O"
  gtx predict run/model.gtx molecules.csv --neighbours 3 --out predictions.csv
  gtx predict writer/model.gtx molecules.csv --beams 5 --out products.csv
"""


def add(parser: Parser) -> None:
    """Options."""
    parser.usage = "gtx predict MODEL MOLECULES [options]"
    parser.epilog = EXAMPLES
    parser.add_argument("model", metavar="MODEL", help="a model file, such as run/model.gtx")
    parser.add_argument(
        "molecules", metavar="MOLECULES", help="a table, a SMILES file or an SDF; - for standard input; or one SMILES"
    )
    parser.add_argument(
        "--out", default="-", metavar="FILE", help=".csv, .tsv or .parquet; default: standard output, as CSV"
    )
    parser.add_argument(
        "--smiles-column",
        metavar="NAME",
        help="the column with the SMILES; default: the name it had in training, or found by its name or its cells",
    )
    parser.add_argument(
        "--smiles-columns",
        nargs="+",
        metavar="NAME",
        help="for a model of several molecules a row: their columns, in the order of training; default: the names they "
        "had there",
    )
    parser.add_argument(
        "--beams",
        type=int,
        metavar="N",
        help="for a model that writes sequences: how many unfinished sequences it follows; default: 1",
    )
    parser.add_argument(
        "--neighbours",
        type=int,
        metavar="N",
        help="also write the N most similar training molecules of each molecule, with what was measured of them, and a "
        "column similarity, from 0 to 1: how near the nearest is",
    )
    parser.add_argument(
        "--on-error",
        choices=["report", "fail"],
        default="report",
        help="report: a bad row gets an error and the others are predicted; fail: stop at the first bad row",
    )
    parser.add_argument(
        "--workers",
        type=int,
        metavar="N",
        help="processes that read and predict; default: as many as there are cores, none for less than 10,000 rows",
    )
    parser.add_argument(
        "--device", metavar="NAME", help="where to compute: cpu, cuda or cuda:1; default: a GPU if there is one"
    )


def run(arguments: Namespace) -> int:
    """Predict, and print how many rows could not be read; status 2 if none of them could."""
    from gtx.cli.scores import metric_lines
    from gtx.prediction import WithNeighbours, load, predict_table

    predictor = load(arguments.model, arguments.device, arguments.beams)
    if arguments.neighbours is not None:
        predictor = WithNeighbours(predictor, arguments.neighbours)
    outcome = predict_table(
        predictor,
        arguments.molecules,
        arguments.out,
        smiles_column=arguments.smiles_column,
        smiles_columns=arguments.smiles_columns,
        on_error=arguments.on_error,
        workers=arguments.workers,
        progress=sys.stderr.isatty(),
    )
    note(outcome.ledger.summary())
    for line in (*outcome.notes, *(metric_lines(outcome.metrics) if outcome.metrics else ())):
        note(line)
    if 0 < outcome.ledger.rows == outcome.ledger.num_errors:
        note("gtx: no row can be used; the column 'error' of the output says why")
        return 2
    return 0
