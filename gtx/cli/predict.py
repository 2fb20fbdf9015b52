"""`gtx predict`."""

from __future__ import annotations

import os
from argparse import Namespace
from typing import TYPE_CHECKING

from gtx.cli.options import add_molecule_columns, add_on_error, add_workers
from gtx.cli.parser import Parser
from gtx.cli.printing import note, shows_progress
from gtx.errors import InputError, printable
from gtx.lazy import annex

if TYPE_CHECKING:
    from pathlib import Path

    from gtx.data.row_log import RowLog
    from gtx.prediction import RowSelection
    from gtx.prediction.streaming import PredictorLike

EXAMPLES = """
examples:
  gtx predict run/model.gtx molecules.csv --out predictions.csv
  gtx predict run/model.gtx library.parquet --out predictions.parquet
  cat smiles.txt | gtx predict run/model.gtx -
  gtx predict run/model.gtx "CC(=O)Oc1ccccc1C(=O)O" CCO
  gtx predict run/model.gtx molecules.csv --neighbours 3 --out predictions.csv
  gtx predict run/model.gtx molecules.csv --domain --out predictions.csv
  gtx predict run/model.gtx molecules.csv --members --out predictions.csv
  gtx predict run/model.gtx lib.csv --filter "y_pred > 7" --out hits.csv
"""
NOTES = """
The output keeps every input row, in order, with all its columns. It adds <target>_pred (and _std, _low and _high, if
the model has them), an error if the row could not be used, and a warning if the molecule has elements or other
features that no training molecule has, is far larger, or has a feature value far outside the training range. If the
table has the target, the scores are printed too, with the number of rows that cannot be scored, such as those with a
label that the model does not know; if some of its molecules were used for training, their number and the scores of the
others follow. A model that writes sequences adds <target>_pred, <target>_log_probability and, for SMILES,
<target>_valid: 1 if it is a molecule, 0 if not.

Standard input may hold whatever a file may: a table with a header, SMILES with or without names, an SDF, packed by gzip
or not. In a Parquet file the predictions are numbers, and the columns of a Parquet table keep their types.
"""
COMMON = (
    "model",
    "molecules",
    "out",
    "smiles_column",
    "neighbours",
    "domain",
    "members",
    "filter",
    "top",
    "by",
    "on_error",
    "workers",
    "device",
)


def add(parser: Parser) -> None:
    """Add the options of the command."""
    parser.usage = "gtx predict MODEL MOLECULES [SMILES ...] [options]"
    parser.examples, parser.epilog, parser.common = EXAMPLES, NOTES, COMMON
    parser.add_argument("model", metavar="MODEL", help="a model file, such as run/model.gtx")
    parser.add_argument(
        "molecules",
        nargs="+",
        metavar="MOLECULES",
        help="a table, a SMILES file or an SDF; - for standard input; or one or several SMILES",
    )
    parser.add_argument(
        "--out",
        default="-",
        metavar="FILE",
        help=".csv, .tsv or .parquet; default: standard output, as CSV",
    )
    several = ", in the order of training; default: the names in training"
    add_molecule_columns(parser, "its name in training, or ", several)
    parser.set_defaults(beams=None)
    if annex("sequence"):
        parser.add_argument(
            "--beams",
            type=int,
            metavar="N",
            help="for a model that writes sequences: width of the beam search; default: 1",
        )
    parser.add_argument(
        "--members",
        action="store_true",
        help="also write the prediction of each ensemble member: <target>_pred_1 and so on; for classes, the "
        "probabilities before calibration",
    )
    parser.add_argument(
        "--neighbours",
        type=int,
        metavar="N",
        help="also write the N most similar training molecules of each molecule, with their measured values, and a "
        "column with the similarity of the most similar one, from 0 to 1",
    )
    parser.add_argument(
        "--domain",
        action="store_true",
        help="also write how similar each molecule is to the training molecules (inside, edge or outside), and the "
        "error of the model on validation rows of the same similarity",
    )
    add_on_error(parser)
    add_workers(parser, "read and predict", "; none for fewer than 10,000 rows")
    parser.add_argument(
        "--device", metavar="NAME", help="device that computes: cpu, cuda or cuda:1; default: a GPU if there is one"
    )
    _add_selection(parser)
    if folders := annex("bulk.options"):
        folders.add_folder_options(parser)


def _add_selection(parser: Parser) -> None:
    group = parser.add_argument_group("what is written")
    group.add_argument(
        "--filter",
        metavar="TEXT",
        help='write only rows that meet conditions "NAME SIGN NUMBER", joined by "and"; signs: > >= < <= == !=',
    )
    group.add_argument("--top", type=int, metavar="N", help="write only the N best rows, the best first; needs --by")
    group.add_argument("--by", metavar="NAME", help="the column that ranks the rows, such as y_pred")
    group.add_argument("--lowest", action="store_true", help="with --top: the lowest number is the best")


def run(arguments: Namespace) -> int:
    """Predict, and print how many rows could not be read; status 2 if none of them could."""
    check_order(arguments.model, arguments.molecules[0])
    molecules = arguments.molecules if len(arguments.molecules) > 1 else arguments.molecules[0]
    several = isinstance(molecules, list)
    if not several and (os.path.isdir(molecules) or getattr(arguments, "engine", None)):
        return annex("bulk.options", f"{printable(molecules)}, a folder,").run_predict_folder(arguments, molecules)
    for name in ("engine", "address", "shard_rows"):
        if getattr(arguments, name, None) is not None:
            single = "or one file" if name == "engine" else "or a file with --engine ray"
            raise InputError(f"--{name.replace('_', '-')} is for a folder of molecules, {single}")
    from gtx.cli.printing import metric_lines
    from gtx.prediction import predict_table

    selection = selected(arguments)
    predictor = opened(
        arguments.model,
        arguments.neighbours,
        arguments.members,
        arguments.domain,
        device=arguments.device,
        beams=arguments.beams,
    )
    outcome = predict_table(
        predictor,
        molecules,
        arguments.out,
        smiles_column=arguments.smiles_column,
        smiles_columns=arguments.smiles_columns,
        on_error=arguments.on_error,
        selection=selection,
        workers=arguments.workers,
        progress=shows_progress(),
    )
    note(outcome.row_log.summary())
    known = predictor.header.task.metrics, predictor.header.units
    if not selection.keeps_all:
        note(f"{outcome.written:,} of them are written")
    for line in (*outcome.notes, *(metric_lines(outcome.metrics, *known) if outcome.metrics else ())):
        note(line)
    if outcome.overlap is not None:
        note(str(outcome.overlap))
        for line in metric_lines(outcome.overlap.metrics, *known) if outcome.overlap.metrics else ():
            note(line)
    return status(outcome.row_log)


def selected(arguments: Namespace) -> RowSelection:
    """Return the selection of rows that the options describe.

    Raises:
        InputError: --top, --by and --lowest do not fit together, or a value is unusable.
    """
    from gtx.prediction import RowSelection

    if (arguments.top is None) != (arguments.by is None):
        lone, other = ("--top", "--by NAME") if arguments.by is None else ("--by", "--top N")
        raise InputError(f"{lone}: expected with {other}, such as --top 100 --by y_pred, got {lone} alone")
    if arguments.lowest and arguments.top is None:
        raise InputError("--lowest: expected with --top N --by NAME, whose order it sets, got it without them")
    return RowSelection.read(arguments.filter, arguments.top, arguments.by, arguments.lowest)


def check_order(model: str, molecule: str) -> None:
    """Raise an `InputError` if the model and the molecules were given in each other's place."""
    if not os.path.exists(model) and os.path.isfile(molecule) and molecule.endswith(".gtx"):
        raise InputError(f"there is no model file {printable(model)!r}: the model comes first, then the molecules")


def opened(
    model: str | Path,
    neighbours: int | None,
    members: bool,
    domain: bool,
    device: str | None = None,
    beams: int | None = None,
) -> PredictorLike:
    """Load a model, with the predictions of its members and a comparison with training rows on request."""
    from gtx.prediction import NeighbourReportingPredictor, load_predictor

    predictor = load_predictor(model, device, beams)
    predictor = predictor.with_members() if members else predictor
    return (
        predictor if neighbours is None and not domain else NeighbourReportingPredictor(predictor, neighbours, domain)
    )


def status(row_log: RowLog) -> int:
    """Return the exit status; 2 if no row could be used."""
    if 0 < row_log.rows == row_log.num_errors:
        note("gtx: no row can be used; the column 'error' of the output has the reasons")
        return 2
    return 0
