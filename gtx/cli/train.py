"""`gtx train`."""

from __future__ import annotations

from argparse import BooleanOptionalAction, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gtx.cli.imports import importing
from gtx.cli.options import add_parts, add_reading, add_run, add_settings, add_table, add_task, settings_from
from gtx.cli.parser import Parser
from gtx.cli.printing import note, say, score_table
from gtx.settings.tasks import TASKS

if TYPE_CHECKING:
    from gtx.settings.training import TrainSettings
    from gtx.training_data import DataSettings

EXAMPLES = """
examples:
  gtx train examples/solvation.csv --target-columns dG_water --out run/
  gtx train esol --out run/
  gtx train tox.csv --target-columns NR-AR NR-ER --split scaffold --out tox/
  gtx train a.csv --val b.csv --test c.csv --target-columns y --out run/
  gtx train data.csv --target-columns y --model gps --folds 5 --out gps/
  gtx train few.csv --target-columns y --from foundation --out tuned/
  gtx train molecules.sdf --target-columns energy --coordinates --out energies/
"""
NOTES = """
TABLE is a CSV or TSV file (separated by commas, semicolons or tabs; .gz too), a Parquet, SMILES or SDF file, or the
name of a public data set. gtx downloads esol, freesolv, lipo, bbbp, bace, tox21, qm9 and zinc12k; xtb9 comes with gtx.
An empty target cell is left out of the loss and the scores. A row that cannot be used is reported with its reason, and
the run goes on.

FOLDER then holds model.gtx (all that prediction needs), report.html, metrics.json, predictions.csv (every row with its
prediction and its part of the split), split.csv and config.yaml.

For a numeric target, gtx train also prints how good the model can get: the noise of repeated measurements, and a
forecast of the RMSE with twice the training rows, see docs/uncertainty.md.

Run the same command again to resume an interrupted run, or to print the scores of a finished one.

A GPU is used if there is one. --accelerator cpu trains on the CPU; --devices 2 trains on two GPUs. Under torchrun
several machines train together, see docs/scale.md.
"""
COMMON = (
    "data",
    "target_columns",
    "out",
    "overwrite",
    "config",
    "task",
    "smiles_column",
    "split",
    "split_column",
    "seed",
    "from",
    "model",
    "model_arguments",
    "epochs",
    "folds",
    "accelerator",
)


def add(parser: Parser) -> None:
    """Options of the data, the split and the run, then every field of `TrainSettings`."""
    parser.usage = "gtx train TABLE --target-columns NAME --out FOLDER [options]"
    parser.examples, parser.epilog, parser.common = EXAMPLES, NOTES, COMMON
    add_table(parser)
    add_task(parser, [word for word in TASKS if word != "molecule-atom-bond"])  # which the options of columns say
    run = add_run(parser)
    run.add_argument(
        "--from",
        metavar="MODEL",
        help="fine-tune this model file, or foundation, the pretrained model that comes with gtx",
    )
    run.add_argument(
        "--new-head",
        action="store_true",
        help="with --from: initialise the head and the scales of all targets again",
    )
    run.add_argument(
        "--baselines",
        action=BooleanOptionalAction,
        default=True,
        help="train a linear model, a random forest and a kernel model on the training rows, for comparison",
    )
    run.add_argument(
        "--report",
        action=BooleanOptionalAction,
        default=True,
        help="write report.html: scores, figures and the molecules with the largest errors",
    )
    split = add_parts(parser)
    split.add_argument(
        "--group-duplicates",
        action=BooleanOptionalAction,
        default=True,
        help="keep all rows of one molecule in one part of a random split",
    )
    add_reading(parser)
    add_settings(parser)


def run(arguments: Namespace) -> int:
    """Train and print how good it is."""
    with importing():
        import gtx.workflow  # noqa: F401  # and all that it imports
    values = vars(arguments)
    how = {
        "overwrite": values["overwrite"],
        "start": values["from"],
        "new_head": values["new_head"],
        "baselines": values["baselines"],
        "report": values["report"],
    }
    return train_and_print(*settings_of(arguments), values["out"], **how)


def settings_of(arguments: Namespace) -> tuple[DataSettings, TrainSettings]:
    """Make the settings of the data and of training."""
    values = vars(arguments)
    parts = {name: values[name] for name in ("split_column", "val", "test", "group_duplicates")}
    return settings_from(values, **parts, split_sizes=tuple(values["split_sizes"]))


def train_and_print(data: DataSettings, settings: TrainSettings, out: str, **options: Any) -> int:
    """Train, and print what was found of the data, the scores beside the baselines, and where the files are."""
    from gtx.workflow import train_model

    outcome = train_model(data, settings, out, tell=note, **options)
    if outcome is None:
        return 0
    if outcome.was_finished:
        say(f"The run in {out} is finished; --overwrite trains it again.")
    score_table(outcome.metrics, outcome.task.metrics, outcome.units)
    say(f"model   {Path(out) / 'model.gtx'}")
    if (report := Path(out) / "report.html").exists():
        say(f"report  {report}")
    return 0
