"""`gtx join`."""

from __future__ import annotations

from argparse import Namespace

from gtx.cli.options import add_workers
from gtx.cli.parser import Parser
from gtx.cli.printing import note, say

EXAMPLES = """
examples:
  gtx join esol.csv freesolv.csv --out joined.csv
  gtx join mine.csv public.csv --by-file --split-column split --out joined.csv
  gtx train joined.csv --target-columns mine_y public_y --out run/
"""
NOTES = """
The joined table has a row for each molecule, with the target columns of all tables, blank where a table lacks the
molecule. Molecules are the same where gtx train finds duplicates: by canonical SMILES. Nothing is imputed; in training
a blank is left out of the loss.

Columns of the same name are one target. If tables give a molecule different values of it, each value has a row of its
own, and a warning; with --by-file columns of different files are different targets.

The row log is a table with a line for each input row: the rows of the joined table that hold its values, or the error
for which the row was left out, and warnings.
"""
MOST = 5  # errors, and warnings, that are printed


def add(parser: Parser) -> None:
    """Add the options of the command."""
    parser.usage = "gtx join TABLE TABLE [TABLE ...] --out FILE [options]"
    parser.examples, parser.epilog = EXAMPLES, NOTES
    parser.add_argument("tables", nargs="+", metavar="TABLE", help="tables, SMILES files or SDFs")
    parser.add_argument("--out", required=True, metavar="FILE", help="the joined table: .csv, .tsv or .parquet")
    parser.add_argument(
        "--row-log",
        metavar="FILE",
        help="table with the errors and warnings of all input rows; default: the name of --out with -row-log",
    )
    parser.add_argument(
        "--columns", nargs="+", metavar="NAME", help="columns to join; default: those whose cells are mostly numbers"
    )
    parser.add_argument("--by-file", action="store_true", help="put the name of the file before each column: esol_y")
    parser.add_argument(
        "--split-column",
        metavar="NAME",
        help="a column of the first table with train, val and test; the joined table has it as split, where molecules "
        "of the other tables alone are in train",
    )
    parser.add_argument(
        "--smiles-column", metavar="NAME", help="the column with the SMILES in all tables; default: found by its name"
    )
    parser.add_argument("--standardise", action="store_true", help="keep only the largest fragment, and neutralise it")
    add_workers(parser)


def run(arguments: Namespace) -> int:
    """Join, write the table and the row log, and print what became of the rows."""
    from pathlib import Path

    from gtx.data.joining import join_tables
    from gtx.data.table_writer import TableWriter, refuse_input_as_output
    from gtx.errors import InputError
    from gtx.molecules import Featuriser

    if arguments.out == "-":
        raise InputError("--out: expected the name of a file, got '-'")
    out = Path(arguments.out)
    base, _, ending = out.name.partition(".")
    row_log = arguments.row_log or str(out.with_name(f"{base}-row-log.{ending}"))
    if row_log == arguments.out:
        raise InputError(f"the table and its row log need files of their own, got {row_log!r} for both")
    for file in (out, row_log):
        refuse_input_as_output(file, *arguments.tables)
    names = ("columns", "smiles_column", "split_column", "by_file", "workers")
    featuriser = Featuriser(descriptors=False, standardise=arguments.standardise)
    options = {name: getattr(arguments, name) for name in names}
    joined = join_tables(arguments.tables, featuriser=featuriser, **options)
    with TableWriter(arguments.out, joined.columns) as writer:
        for cells in joined.rows:
            writer.write(cells)
    with TableWriter(row_log, ["table", "row", "molecule", "joined_rows", "error", "warning"]) as writer:
        for one in joined.outcomes:
            rows, warning = " ".join(map(str, one.joined)), "; ".join(one.warnings) or None
            writer.write([one.source, str(one.row), one.text, rows, one.error, warning])
    for line in joined.describe():
        say(line)
    errors = [f"{one.source}: {one.error}" for one in joined.outcomes if one.error]
    warnings = [f"{one.source}: {one.warnings[0]}" for one in joined.outcomes if one.warnings]
    for messages in (errors, warnings):
        for message in messages[:MOST]:
            note(message)
        if len(messages) > MOST:
            note(f"and {len(messages) - MOST} more in {row_log}")
    say(f"table   {arguments.out}   row log   {row_log}")
    return 0
