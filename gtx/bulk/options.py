"""Options of `gtx predict` for folders, and their prediction.

Its imports wait until the command runs, since `gtx --help` imports this file.
"""

from __future__ import annotations

from argparse import Namespace
from functools import partial

from gtx.cli.parser import Parser
from gtx.cli.printing import note, shows_progress
from gtx.errors import InputError
from gtx.termination import Terminated

FOLDER_EXAMPLES = """
  gtx predict run/model.gtx library/ --out predictions/
  gtx predict run/model.gtx library/ --top 1000 --by y_pred --out best/
  gtx predict run/model.gtx library/ --engine ray --out predictions/
"""
FOLDER_NOTES = """
MOLECULES may be a folder of such files. --out is then a folder of Parquet files, written shard by shard; run the same
command again to resume. No scores are printed for a folder.
"""


def add_folder_options(parser: Parser) -> None:
    """Add the options of `gtx predict` for folders."""
    parser.examples = f"{parser.examples.rstrip()}{FOLDER_EXAMPLES}"
    parser.epilog = f"{(parser.epilog or '').rstrip()}\n{FOLDER_NOTES}"
    group = parser.add_argument_group("folders")
    group.add_argument(
        "--engine",
        choices=["ray"],
        help="predict a folder with Ray actors, on one or several machines; default: processes of this machine",
    )
    group.add_argument(
        "--address", metavar="TEXT", help="address of a running Ray cluster; default: start Ray on this machine"
    )
    group.add_argument(
        "--shard-rows", type=int, metavar="N", help="number of rows in each Parquet file; default: 50,000"
    )


def run_predict_folder(arguments: Namespace, molecules: str) -> int:
    """Predict a folder, or a file by Ray; return 2 if a file or all rows could not be used."""
    from gtx.bulk.predicting import predict_folder_of_tables
    from gtx.cli.predict import opened, selected, status

    if arguments.out == "-":
        raise InputError("--out is missing: the predictions of a folder are written to a folder")
    rows = {} if arguments.shard_rows is None else {"shard_rows": arguments.shard_rows}
    try:
        outcome = predict_folder_of_tables(
            arguments.model,
            molecules,
            arguments.out,
            smiles_column=arguments.smiles_column,
            smiles_columns=arguments.smiles_columns,
            beams=arguments.beams,
            device=arguments.device,
            on_error=arguments.on_error,
            selection=selected(arguments),
            workers=arguments.workers,
            engine=arguments.engine,
            address=arguments.address,
            progress=shows_progress(),
            load=partial(
                opened,
                neighbours=arguments.neighbours,
                members=arguments.members,
                domain=arguments.domain,
            ),
            **rows,
        )
    except (KeyboardInterrupt, Terminated):
        note("gtx: predictions so far are kept; run the same command again to resume")
        raise
    for line in outcome.summary_lines("rows written as Parquet"):
        note(line)
    return 2 if outcome.problems else status(outcome.row_log)
