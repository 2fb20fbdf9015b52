"""`gtx train`."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gtx.cli import importing
from gtx.cli.options import MOLECULES, PARTS, TABLE, RunOptions, settings_from, task_options, training_options
from gtx.cli.parser import options_of
from gtx.cli.printing import note, say, score_table
from gtx.settings import option
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
USAGE = "gtx train TABLE --target-columns NAME --out FOLDER [options]"


@dataclass(frozen=True)
class FitOptions(RunOptions):
    """Options of the start and the results of a training."""

    start: str | None = option(
        None,
        "fine-tune this model file, or foundation, the pretrained model that comes with gtx",
        flag="--from",
        metavar="MODEL",
        common=True,
    )
    new_head: bool = option(False, "with --from: initialise the head and the scales of all targets again")
    baselines: bool = option(
        True, "train a linear model, a random forest and a kernel model on the training rows, for comparison"
    )
    report: bool = option(True, "write report.html: scores, figures and the molecules with the largest errors")


OPTIONS = [
    *TABLE,
    *task_options([name for name in TASKS if name != "molecule-atom-bond"]),  # which the options of columns say
    *options_of(FitOptions, "results"),
    *PARTS,
    *MOLECULES,
    *training_options(),
]


def run(arguments: Namespace) -> int:
    """Train and print how good it is."""
    with importing():
        import gtx.workflow  # noqa: F401  # and all that it imports
    values = vars(arguments)
    how = {name: values[name] for name in ("overwrite", "start", "new_head", "baselines", "report")}
    return train_and_print(*settings_from(values), values["out"], **how)


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
