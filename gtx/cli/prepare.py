"""`gtx prepare`."""

from __future__ import annotations

import sys
from argparse import Namespace

from gtx.cli.options import add_reading, featuriser_from
from gtx.cli.parser import Parser
from gtx.cli.printing import note
from gtx.termination import Terminated

EXAMPLES = """
For sets that do not fit into memory. gtx reads every molecule once and keeps what it found as tensors on disk. Then
gtx train takes the folder in place of a table.

A shard is so many rows of a file. Of a.csv, a.csv-000000000000.parquet in the store has all cells of the rows, the
canonical SMILES, and for a row that could not be used its error. _molecules/a.csv-000000000000.safetensors has the
molecules. Columns may be added to the Parquet files, so that new targets need no new reading of molecules.

The same command again goes on where it stopped. Shards of other options or of a file that has changed are refused.

examples:
  gtx prepare molecules.csv --out store/
  gtx prepare library/ --out store/ --workers 16
  gtx train store/ --target-columns y --out run/
"""


def add(parser: Parser) -> None:
    """Options."""
    parser.usage = "gtx prepare MOLECULES --out FOLDER [options]"
    parser.epilog = EXAMPLES
    parser.add_argument("molecules", metavar="MOLECULES", help="a table, a SMILES file or an SDF; or a folder of them")
    parser.add_argument("--out", required=True, metavar="FOLDER", help="the folder of the store; it need not exist")
    parser.add_argument(
        "--smiles-column", metavar="NAME", help="the column with the SMILES; default: found by its name or its cells"
    )
    parser.add_argument(
        "--smiles-columns",
        nargs="+",
        metavar="NAME",
        help="the columns of several molecules that belong together, such as solute solvent",
    )
    parser.add_argument(
        "--on-error",
        choices=["report", "fail"],
        default="report",
        help="report: a bad row gets an error and the others are read; fail: stop at the first bad row",
    )
    parser.add_argument(
        "--shard-rows",
        type=int,
        metavar="N",
        help="rows of a shard; training holds 8 shards in memory; default: 10,000",
    )
    add_reading(parser)


def run(arguments: Namespace) -> int:
    """Read the molecules, and print how many could not be read; status 2 if a file or all rows could not."""
    from gtx.data import prepare

    rows = {} if arguments.shard_rows is None else {"shard_rows": arguments.shard_rows}
    try:
        outcome = prepare(
            arguments.molecules,
            arguments.out,
            featuriser=featuriser_from(vars(arguments)),
            smiles_column=arguments.smiles_column,
            on_error=arguments.on_error,
            workers=arguments.workers,
            progress=sys.stderr.isatty(),
            **rows,
        )
    except (KeyboardInterrupt, Terminated):
        note("gtx: what is read is kept; the same command goes on where it stopped")
        raise
    for line in outcome.told("molecules"):
        note(line)
    return 2 if outcome.problems or not outcome.kept else 0
