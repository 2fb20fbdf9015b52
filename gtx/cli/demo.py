"""`gtx demo`."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from gtx.base.files import example_file
from gtx.cli.parser import options_of
from gtx.cli.printing import note, say
from gtx.settings import Name, option

EXAMPLES = """
examples:
  gtx demo
  gtx demo --out first/
"""
NOTES = """
gtx demo trains on 600 molecules whose solvation free energy in water is known, predicts 24 others, and says what to
open and what to type next. It takes about a minute on two cores.

gtx train xtb9 --epochs 20 --out xtb9/ is larger: five properties of 11,495 molecules, about eight minutes on one
core.
"""
EPOCHS = 60
"""Those of `gtx train`, so that the scores are those of its first command in the README."""
PLAN = """\
gtx demo: about a minute on two cores
  1. train a model on the 600 molecules of {table}
  2. predict the 24 molecules of {molecules}"""
NEXT = """
open   {out}/report.html    how good the model is: scores, figures, the molecules with the largest errors
       {predictions}    each molecule with its prediction and 90 % interval, or the reason why there is none

type   gtx predict {model} "CC(=O)Oc1ccccc1C(=O)O"
       gtx explain {model} "CC(=O)Oc1ccccc1C(=O)O" --out aspirin.svg
       gtx serve {model}    a web page on which you draw molecules
       gtx train YOUR.csv --target-columns NAME --out run/
       gtx train xtb9 --epochs 20 --out xtb9/    five properties of 11,495 molecules, eight minutes"""


USAGE = "gtx demo [options]"


@dataclass(frozen=True)
class DemoOptions:
    """Options of the command."""

    out: Name = option("demo", "the output folder; it is created if necessary", metavar="FOLDER")
    epochs: int = option(EPOCHS, "passes over the training molecules")
    overwrite: bool = option(False, "delete the run in the output folder and start again")


OPTIONS = options_of(DemoOptions, "options")


def run(arguments: Namespace) -> int:
    """Train on one example table, predict the other, and print what to do with the results."""
    out = Path(arguments.out)
    table, molecules = example_file("solvation.csv"), example_file("molecules.csv")
    predictions = out / "molecules_predicted.csv"
    for line in PLAN.format(table=table, molecules=molecules).splitlines():
        note(line)
    from gtx.cli.train import train_and_print
    from gtx.training import TrainSettings
    from gtx.training_data import DataSettings

    data = DataSettings(str(table), ("dG_water",), units={"dG_water": "kcal/mol"})
    train_and_print(data, TrainSettings(epochs=arguments.epochs), arguments.out, overwrite=arguments.overwrite)
    from gtx.prediction import load_predictor, predict_table

    outcome = predict_table(load_predictor(out / "model.gtx"), str(molecules), str(predictions))
    note(outcome.row_log.summary())
    for line in NEXT.format(out=out, model=quote(f"{out}/model.gtx"), predictions=predictions).splitlines():
        say(line)
    return 0
