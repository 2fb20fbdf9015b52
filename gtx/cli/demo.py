"""`gtx demo`."""

from __future__ import annotations

from argparse import Namespace

from gtx.cli.parser import Parser
from gtx.cli.printing import say
from gtx.training import TrainSettings

EXAMPLES = """
examples:
  gtx demo
  gtx demo --epochs 5 --split scaffold --out quick/
"""
NOTES = """
gtx demo trains one model for all five targets of the bundled data set xtb9 (11,495 small molecules, GFN2-xTB), which
takes about eight minutes of one core. It then prints the test scores, and those of ridge regression and a random forest
on the same descriptors and on Morgan counts.
"""
EPOCHS = 20


def add(parser: Parser) -> None:
    """Add the options of the command."""
    parser.usage = "gtx demo [options]"
    parser.examples, parser.epilog = EXAMPLES, NOTES
    parser.add_argument("--out", default="demo", metavar="FOLDER", help="the output folder; it is created if necessary")
    parser.add_argument("--epochs", type=int, default=EPOCHS, metavar="N", help="passes over the training molecules")
    parser.add_argument(
        "--split", choices=["random", "scaffold"], default="random", help="one of the two fixed splits of the data set"
    )
    parser.add_argument("--overwrite", action="store_true", help="delete the run in the output folder and start again")


def run(arguments: Namespace) -> int:
    """Train on xtb9 and print the scores."""
    from gtx.cli.train import train_and_print
    from gtx.data.public_datasets import load_public_dataset
    from gtx.training_data import DataSettings

    xtb9 = load_public_dataset("xtb9")
    data = DataSettings(str(xtb9.path), xtb9.targets, split_column=f"split_{arguments.split}", units=dict(xtb9.units))
    settings = TrainSettings(epochs=arguments.epochs)
    status = train_and_print(data, settings, arguments.out, overwrite=arguments.overwrite)
    say(f'try     gtx predict {arguments.out}/model.gtx "CCO"')
    return status
