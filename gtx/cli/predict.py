"""`gtx predict`."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from functools import partial
from typing import TYPE_CHECKING

from gtx.cli.parser import Parser
from gtx.cli.printing import note
from gtx.errors import InputError
from gtx.termination import Terminated

if TYPE_CHECKING:
    from gtx.data.ledger import Ledger
    from gtx.prediction.answering import Answering

EXAMPLES = """
Every input row comes out, in order and with its cells as they were. After them come <target>_pred (and, where the model
has them, _std, _low and _high), an error where the row could not be used, and a warning where the molecule has
something that training did not have. If the table holds the target, the scores are printed too; where molecules of the
table trained the model, a line says how many, and the scores of the others stand below. A model that writes sequences
gives <target>_pred, its <target>_log_probability and, for SMILES, <target>_valid: 1 if it is a molecule, 0 if not.

Standard input may hold whatever a file may: a table with a header, SMILES with or without names, an SDF, packed by gzip
or not. In a Parquet file the predictions are numbers, and the columns of a Parquet table keep their types.

A folder is predicted shard by shard into a folder of Parquet files. The same command again goes on where it stopped.
Scores are not printed for a folder.

examples:
  gtx predict run/model.gtx molecules.csv --out predictions.csv
  gtx predict run/model.gtx library.parquet --out predictions.parquet
  cat smiles.txt | gtx predict run/model.gtx -
  gtx predict run/model.gtx "CC(=O)Oc1ccccc1C(=O)O" CCO
  gtx predict run/model.gtx molecules.csv --neighbours 3 --out predictions.csv
  gtx predict run/model.gtx molecules.csv --members --out predictions.csv
  gtx predict writer/model.gtx molecules.csv --beams 5 --out products.csv
  gtx predict run/model.gtx library.csv --filter "y_pred > 7 and y_std < 0.5" --out hits.csv
  gtx predict run/model.gtx library/ --out predictions/
  gtx predict run/model.gtx library/ --top 1000 --by y_pred --out best/
  gtx predict run/model.gtx library/ --engine ray --address auto --out predictions/
"""


def add(parser: Parser) -> None:
    """Options."""
    parser.usage = "gtx predict MODEL MOLECULES [SMILES ...] [options]"
    parser.epilog = EXAMPLES
    parser.add_argument("model", metavar="MODEL", help="a model file, such as run/model.gtx")
    parser.add_argument(
        "molecules",
        nargs="+",
        metavar="MOLECULES",
        help="a table, a SMILES file or an SDF; a folder of them; - for standard input; or SMILES, one or several",
    )
    parser.add_argument(
        "--out",
        default="-",
        metavar="FILE",
        help=".csv, .tsv or .parquet; default: standard output, as CSV; for a folder of molecules, a folder",
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
        "--members",
        action="store_true",
        help="also write what each member of an ensemble predicts: <target>_pred_1 and so on, of classes the "
        "probabilities before calibration",
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
    _add_selection(parser)
    _add_library(parser)


def _add_selection(parser: Parser) -> None:
    group = parser.add_argument_group("what is written")
    group.add_argument(
        "--filter",
        metavar="TEXT",
        help='only rows for which this holds: "NAME SIGN NUMBER", joined by "and"; signs are > >= < <= == !=',
    )
    group.add_argument("--top", type=int, metavar="N", help="only the best rows, so many, the best first; needs --by")
    group.add_argument("--by", metavar="NAME", help="the column that says how good a row is, such as y_pred")
    group.add_argument("--lowest", action="store_true", help="with --top: the lowest number is the best")


def _add_library(parser: Parser) -> None:
    group = parser.add_argument_group("folders")
    group.add_argument(
        "--engine",
        choices=["ray"],
        help="who works at a folder: Ray's actors, on one machine or many; default: processes of this machine",
    )
    group.add_argument("--address", metavar="TEXT", help="of a running Ray cluster; default: a Ray of this machine")
    group.add_argument("--shard-rows", type=int, metavar="N", help="rows of a Parquet file written; default: 50,000")


def run(arguments: Namespace) -> int:
    """Predict, and print how many rows could not be read; status 2 if none of them could."""
    molecules = arguments.molecules if len(arguments.molecules) > 1 else arguments.molecules[0]
    several = isinstance(molecules, list)
    if several and arguments.engine:
        raise InputError(f"--engine {arguments.engine} works at a folder or a file, not at several SMILES")
    if not several and (arguments.engine or os.path.isdir(molecules)):
        return _run_library(arguments, molecules)
    if given := [name for name in ("address", "shard_rows") if getattr(arguments, name) is not None]:
        raise InputError(f"--{given[0].replace('_', '-')} is for a folder of molecules, or --engine ray")
    from gtx.cli.scores import metric_lines
    from gtx.prediction import Selection, predict_table

    selection = Selection.read(arguments.filter, arguments.top, arguments.by, arguments.lowest)
    how = {"device": arguments.device, "beams": arguments.beams}
    predictor = opened(arguments.model, arguments.neighbours, arguments.members, **how)
    outcome = predict_table(
        predictor,
        molecules,
        arguments.out,
        smiles_column=arguments.smiles_column,
        smiles_columns=arguments.smiles_columns,
        on_error=arguments.on_error,
        selection=selection,
        workers=arguments.workers,
        progress=sys.stderr.isatty(),
    )
    note(outcome.ledger.summary())
    if not selection.keeps_all:
        note(f"{outcome.kept:,} of them are written")
    for line in (*outcome.notes, *(metric_lines(outcome.metrics) if outcome.metrics else ())):
        note(line)
    if outcome.overlap is not None:
        note(str(outcome.overlap))
        for line in metric_lines(outcome.overlap.metrics) if outcome.overlap.metrics else ():
            note(line)
    return _status(outcome.ledger)


def opened(model: str | os.PathLike[str], neighbours: int | None, members: bool, **options: object) -> Answering:
    """The model; beside its answers what each member predicts, and so many similar training molecules, if asked for."""
    from gtx.prediction import WithNeighbours, load

    predictor = load(model, **options)
    predictor = predictor.with_members() if members else predictor
    return predictor if neighbours is None else WithNeighbours(predictor, neighbours)


def _run_library(arguments: Namespace, molecules: str) -> int:
    from gtx.prediction import Selection, predict_library

    if arguments.out == "-":
        raise InputError("the predictions of a folder go to a folder: give --out")
    rows = {} if arguments.shard_rows is None else {"shard_rows": arguments.shard_rows}
    try:
        outcome = predict_library(
            arguments.model,
            molecules,
            arguments.out,
            smiles_column=arguments.smiles_column,
            smiles_columns=arguments.smiles_columns,
            beams=arguments.beams,
            device=arguments.device,
            on_error=arguments.on_error,
            selection=Selection.read(arguments.filter, arguments.top, arguments.by, arguments.lowest),
            workers=arguments.workers,
            engine=arguments.engine,
            address=arguments.address,
            progress=sys.stderr.isatty(),
            load=partial(opened, neighbours=arguments.neighbours, members=arguments.members),
            **rows,
        )
    except (KeyboardInterrupt, Terminated):
        note("gtx: what is predicted is kept; the same command goes on where it stopped")
        raise
    for line in outcome.told("rows written"):
        note(line)
    return 2 if outcome.problems else _status(outcome.ledger)


def _status(ledger: Ledger) -> int:
    if 0 < ledger.rows == ledger.num_errors:
        note("gtx: no row can be used; the column 'error' of the output says why")
        return 2
    return 0
