"""`gtx predict`."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from gtx.base.errors import InputError, Terminated, printable
from gtx.cli import importing
from gtx.cli.options import MOLECULES, TABLE, molecule_columns
from gtx.cli.parser import options_of
from gtx.cli.printing import note, shows_progress
from gtx.settings import Name, option, word

if TYPE_CHECKING:
    from gtx.data.rows import RowLog
    from gtx.prediction import ModelFileHeader, Predictor, RowSelection, TableOutcome

EXAMPLES = """
examples:
  gtx predict run/model.gtx molecules.csv --out predictions.csv
  gtx predict run/model.gtx library.parquet --out predictions.parquet
  cat smiles.txt | gtx predict run/model.gtx -
  gtx predict run/model.gtx "CC(=O)Oc1ccccc1C(=O)O" CCO
  gtx predict run/model.gtx molecules.csv --neighbours 3 --out predictions.csv
  gtx predict run/model.gtx molecules.csv --domain --out predictions.csv
  gtx predict run/model.gtx molecules.csv --members --out predictions.csv
  gtx predict run/model.gtx library/ --out predictions/
  gtx predict run/model.gtx library/ --top 1000 --by y_pred --out best/
"""
NOTES = """
The output keeps every input row, in order, with all its columns. It adds <target>_pred (and _std, _low and _high, if
the model has them), an error if the row could not be used, and a warning if the molecule has elements or other
features that no training molecule has, is far larger, or has a feature value far outside the training range. If the
table has the target, the scores are printed too, with the number of rows that cannot be scored, such as those with a
label that the model does not know; if some of its molecules were used for training, their number and the scores of the
others follow. A model that writes sequences adds <target>_pred, <target>_log_probability and, for SMILES,
<target>_valid: 1 if it is a molecule, 0 if not.

By default, the columns of molecules have their names in training; several are given in the order of training. From
10,000 rows on, several processes read and predict the molecules, see --workers.

Standard input may hold whatever a file may: a table with a header, SMILES with or without names, an SDF, packed by gzip
or not. In a Parquet file the predictions are numbers, and the columns of a Parquet table keep their types.

MOLECULES may be a folder of such files; --out is then a folder. Run the same command again to resume: tables that are
predicted already are not predicted again. A table that cannot be read is named, and the others are predicted.
"""
USAGE = "gtx predict MODEL MOLECULES [SMILES ...] [options]"


@dataclass(frozen=True)
class PredictOptions:
    """Options of the command, beside those by which molecules are read."""

    model: str = word("MODEL", "a model file, such as run/model.gtx")
    molecules: list[str] = word(
        "MOLECULES",
        "a table, a SMILES file or an SDF; a folder of them; - for standard input; or one or several SMILES",
    )
    out: Name = option("-", ".csv, .tsv or .parquet; default: standard output, as CSV", metavar="FILE", common=True)
    beams: int | None = option(None, "for a model that writes sequences: width of the beam search; default: 1")
    members: bool = option(
        False,
        "also write the prediction of each network: <target>_pred_1 and so on; for classes, the probabilities before "
        "calibration",
        common=True,
    )
    neighbours: int | None = option(
        None,
        "also write the N most similar training molecules of each molecule, with their measured values, and a column "
        "with the similarity of the most similar one, from 0 to 1",
        common=True,
    )
    domain: bool = option(
        False,
        "also write how similar each molecule is to the training molecules (inside, edge or outside), and the error "
        "of the model on validation rows of the same similarity",
        common=True,
    )
    device: str | None = option(
        None, "device that computes: cpu, cuda or cuda:1; default: a GPU if there is one", common=True
    )
    top: int | None = option(None, "write only the N best rows, the best first; needs --by", common=True)
    by: str | None = option(None, "the column that ranks the rows, such as y_pred", common=True)
    lowest: bool = option(False, "with --top: the lowest number is the best")
    engine: Literal["ray"] | None = option(
        None,
        "for a folder: predict several tables at a time by Ray Data, on one or several machines; default: one after "
        "the other",
    )
    address: str | None = option(
        None, "address of a running Ray cluster; default: start Ray on this machine", metavar="TEXT"
    )


READING = ("smiles_column", "smiles_columns", "reaction_column", "reaction_columns", "on_error", "workers")
OPTIONS = [
    *options_of(PredictOptions, "options"),
    *(replace(each, group="options") for each in (*TABLE, *MOLECULES) if each.name in READING),
]


def run(arguments: Namespace) -> int:
    """Predict, and print how many rows could not be read; status 2 if none of them could."""
    check_order(arguments.model, arguments.molecules[0])
    molecules = arguments.molecules if len(arguments.molecules) > 1 else arguments.molecules[0]
    folder = isinstance(molecules, str) and os.path.isdir(molecules)
    if not folder:
        for name in ("engine", "address"):
            if getattr(arguments, name) is not None:
                raise InputError(f"--{name} is for a folder of molecules, and {printable(str(molecules))} is none")
    elif arguments.out == "-":
        raise InputError("--out is missing: the predictions of a folder are written to a folder")
    with importing():
        from gtx.prediction import RowSelection, load_predictor, predict_table
    column, several = molecule_columns(vars(arguments))
    options = {
        "smiles_column": column,
        "smiles_columns": several,
        "on_error": arguments.on_error,
        "selection": RowSelection(arguments.top, arguments.by, arguments.lowest),
        "workers": arguments.workers,
        "progress": shows_progress(),
    }
    predictor = load_predictor(arguments.model, arguments.device, arguments.beams)
    if arguments.members:
        predictor = predictor.with_members()
    if arguments.domain or arguments.neighbours is not None:
        predictor = predictor.with_neighbours(arguments.neighbours, arguments.domain)
    if folder:
        return _run_folder(predictor, molecules, arguments, options)
    outcome = predict_table(predictor, molecules, arguments.out, **options)
    for line in outcome_lines(outcome, predictor.header, options["selection"]):
        note(line)
    return status([outcome.row_log])


def _run_folder(predictor: Predictor, folder: str, arguments: Namespace, options: dict[str, Any]) -> int:
    """Predict the tables of a folder; return 2 if a table or all rows could not be used."""
    from gtx.data.rows import plural
    from gtx.prediction import predict_folder
    from gtx.prediction.folders import BEST

    def tell(file: str, outcome: TableOutcome) -> None:
        for line in outcome_lines(outcome, predictor.header, options["selection"]):
            note(f"{file}: {line}")

    gpus = not (arguments.device or "").startswith("cpu")
    where = {"engine": arguments.engine, "address": arguments.address, "gpus": gpus}
    try:
        outcome = predict_folder(predictor, folder, arguments.out, **options, **where, tell=tell)
    except (KeyboardInterrupt, Terminated):
        note("gtx: the tables so far are kept; run the same command again to resume")
        raise
    before = f", {len(outcome.finished):,} predicted before" if outcome.finished else ""
    note(f"{plural(len(outcome.tables), 'table')} predicted{before}; written to {arguments.out}")
    if outcome.best is not None:
        note(f"the best {plural(outcome.best, 'row')} in {os.path.join(arguments.out, BEST)}")
    if outcome.others:
        more = f" and {len(outcome.others) - 1:,} more" if outcome.others[1:] else ""
        note(f"left out, as no tables: {outcome.others[0]}{more}")
    for file, reason in outcome.problems.items():
        note(f"gtx: {file}: {reason}")
    return status([table.row_log for table in outcome.tables.values()]) or (2 if outcome.problems else 0)


def outcome_lines(outcome: TableOutcome, header: ModelFileHeader, selection: RowSelection) -> Iterator[str]:
    """Yield what is said about a predicted table: rows and errors, notes, scores, the overlap with training rows."""
    from gtx.cli.printing import metric_lines

    known = header.task.metrics, header.units
    yield outcome.row_log.summary()
    if selection.top is not None:
        yield f"{outcome.written:,} of them are written"
    yield from outcome.notes
    yield from metric_lines(outcome.metrics, *known) if outcome.metrics else ()
    if outcome.overlap is not None:
        yield str(outcome.overlap)
        yield from metric_lines(outcome.overlap.metrics, *known) if outcome.overlap.metrics else ()


def check_order(model: str, molecule: str) -> None:
    """Raise an `InputError` if the model and the molecules were given in each other's place."""
    if not os.path.exists(model) and os.path.isfile(molecule) and molecule.endswith(".gtx"):
        raise InputError(f"there is no model file {printable(model)!r}: the model comes first, then the molecules")


def status(row_logs: Sequence[RowLog]) -> int:
    """Return the exit status; 2 if no row of any table could be used."""
    if 0 < sum(row_log.rows for row_log in row_logs) == sum(row_log.num_errors for row_log in row_logs):
        note("gtx: no row can be used; the column 'error' of the output has the reasons")
        return 2
    return 0
