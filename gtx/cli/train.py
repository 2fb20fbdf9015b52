"""`gtx train`."""

from __future__ import annotations

import sys
from argparse import BooleanOptionalAction, Namespace
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from gtx.cli.parser import Parser, option_of
from gtx.training import TrainSettings

if TYPE_CHECKING:
    from gtx.data.named_sets import NamedSet
    from gtx.workflow import DataSettings

EXAMPLES = """
The table: CSV, TSV (comma, semicolon or tab; .gz too), Parquet, SMILES file or SDF, or the name of a public set
(esol, freesolv, lipo, bbbp, bace, tox21, qm9, zinc12k, mat/esol, scaffold/esol, ..., or the bundled xtb9).
Blank targets are masked. A row that cannot be used is reported with its reason and never stops the run.

examples:
  gtx train solubility.csv --target-columns logS --out run/
  gtx train tox.csv --target-columns NR-AR NR-ER --split scaffold --ensemble 5 --out tox/
  gtx train data.csv --target-columns y --split-column fold --out run/
  gtx train train.csv --val val.csv --test test.csv --target-columns y --out run/
  gtx train more.csv --target-columns y --from run/model.gtx --lr 3e-4 --out tuned/
  gtx train reactions.csv --task sequence --target-columns product --out writer/
  gtx train molecules.sdf --target-columns energy --coordinates --out energies/

The same command again goes on with an interrupted run, and says so of a finished one.
"""


def add(parser: Parser) -> None:
    """Options of the data, then every field of `TrainSettings`."""
    parser.epilog = EXAMPLES
    add_table(parser)
    add_task(parser, ["regression", "classification", "sequence"])
    parser.add_argument(
        "--tokens", choices=["smiles", "characters"], default="smiles", help="what a sequence is made of"
    )
    parser.add_argument("--max-tokens", type=int, default=256, help="longer sequences are errors")
    parser.add_argument("--split-column", metavar="NAME", help="a column that says train, val or test")
    parser.add_argument("--val", metavar="FILE", help="a table of validation rows")
    parser.add_argument("--test", metavar="FILE", help="a table of test rows")
    parser.add_argument(
        "--split-sizes", nargs=3, type=float, default=[0.8, 0.1, 0.1], metavar=("TRAIN", "VAL", "TEST"), help="shares"
    )
    parser.add_argument(
        "--group-duplicates",
        action=BooleanOptionalAction,
        default=True,
        help="keep the rows of one molecule in one part of a random split",
    )
    parser.add_argument("--from", metavar="MODEL", help="go on from a trained model: its architecture and featuriser")
    parser.add_argument("--baselines", action=BooleanOptionalAction, default=True, help="score ridge and forest beside")
    add_reading(parser)
    add_settings(parser)


def add_task(parser: Parser, tasks: list[str]) -> None:
    """What is learned."""
    parser.add_argument("--task", choices=tasks, help="default: classification if all targets are 0 or 1")


def add_table(parser: Parser) -> None:
    """Options of every command that learns from a table."""
    parser.add_argument("data", help="the table, or the name of a public set")
    parser.add_argument(
        "--target-columns", nargs="+", metavar="NAME", help="what to predict; a public set knows its own"
    )
    parser.add_argument("--out", required=True, metavar="FOLDER", help="where the run's files go")
    parser.add_argument("--smiles-column", metavar="NAME", help="holds the SMILES; default: the one called so")
    parser.add_argument("--split", choices=["random", "scaffold"], default="random", help="how rows are divided")
    parser.add_argument(
        "--split-seed", type=int, metavar="N", help="which of the random divisions; default: as --seed says"
    )
    parser.add_argument("--overwrite", action="store_true", help="start anew whatever the folder holds")


def add_reading(parser: Parser) -> None:
    """Options of how molecules are read."""
    parser.add_argument("--on-error", choices=["report", "fail"], default="report", help="what a bad row does")
    parser.add_argument("--max-atoms", type=int, default=1000, help="larger molecules are errors")
    parser.add_argument("--standardise", action="store_true", help="keep the largest fragment, neutralised")
    parser.add_argument("--coordinates", action="store_true", help="use coordinates, which every molecule then needs")
    parser.add_argument(
        "--conformers",
        action="store_true",
        help="make one conformer per molecule where none is given; implies --coordinates",
    )
    parser.add_argument("--hydrogens", action="store_true", help="make hydrogens atoms of the graph")
    parser.add_argument("--descriptors", action=BooleanOptionalAction, default=True, help="cheap global features")
    parser.add_argument("--workers", type=int, help="processes that read molecules; default: all cores")


def add_settings(parser: Parser) -> None:
    """Every field of `TrainSettings`."""
    types = get_type_hints(TrainSettings)
    defaults = TrainSettings()
    for field in fields(TrainSettings):
        option = {"default": getattr(defaults, field.name), "help": field.metadata["help"].replace("%", "%%")}
        parser.add_argument(f"--{field.name.replace('_', '-')}", **option_of(types[field.name]), **option)


def run(arguments: Namespace) -> int:
    """Train and print how good it is."""
    given = vars(arguments)
    parts = {name: given[name] for name in ("split_column", "val", "test", "tokens", "max_tokens", "group_duplicates")}
    data, settings = asked(given, **parts, split_sizes=tuple(given["split_sizes"]))
    how = {"overwrite": given["overwrite"], "start": given["from"], "baselines": given["baselines"]}
    return train_and_tell(data, settings, given["out"], **how)


def asked(given: dict[str, Any], **more: Any) -> tuple[DataSettings, TrainSettings]:
    """What the options say of the data and of training; `more` is what only some commands know of the data."""
    from gtx.molecules import Featuriser
    from gtx.workflow import DataSettings

    settings = TrainSettings(**{field.name: given[field.name] for field in fields(TrainSettings)})
    named = resolve(given["data"])
    data = DataSettings(
        str(named.path) if named else given["data"],
        tuple(given["target_columns"] or (named and named.targets) or ()),
        smiles_column=given["smiles_column"] or (named and named.smiles_column),
        task=given["task"],
        split=given["split"],
        seed=settings.seed if given["split_seed"] is None else given["split_seed"],
        on_error=given["on_error"],
        featuriser=Featuriser(**{name: given[name] for name in _FEATURISER}),
        workers=given["workers"],
        units=dict(named.units) if named else {},
        **more,
    )
    return data, settings


_FEATURISER = ("max_atoms", "standardise", "coordinates", "hydrogens", "descriptors", "conformers")


def train_and_tell(data: DataSettings, settings: TrainSettings, out: str, **options: Any) -> int:
    """Train, and print what was found of the data, the scores beside the baselines, and where the files are."""
    from gtx.cli.scores import score_table
    from gtx.workflow import train

    outcome = train(data, settings, out, **options)
    if outcome is None:
        return 0
    for note in outcome.notes:
        print(note, file=sys.stderr)
    if outcome.was_finished:
        print(f"{out} holds this run, finished; --overwrite trains anew")
    score_table(outcome.metrics, data.units)
    print(f"model   {Path(out) / 'model.gtx'}")
    if (report := Path(out) / "report.html").exists():
        print(f"report  {report}")
    return 0


def resolve(name: str) -> NamedSet | None:
    """The public set of that name, its file at hand; None if there is none, or a file of that name."""
    if Path(name).exists():
        return None
    from gtx.data.named_sets import SETS, load_set

    return load_set(name) if name in SETS else None
