"""`gtx adapt`."""

from __future__ import annotations

from argparse import Namespace

from gtx.cli.options import add_workers
from gtx.cli.parser import Parser
from gtx.cli.printing import note, say

EXAMPLES = """
examples:
  gtx adapt foundation molecules.csv --out mine.gtx
  gtx train measured.csv --target-columns y --from mine.gtx --out run/
"""
NOTES = """
The pretrained model has learned RDKit's descriptors of drug-like molecules. Where yours are of another kind (peptides,
dyes, additives), it can learn the descriptors of yours first: gtx computes them, and no measured value is needed. Give
it all molecules you have, also those without a measurement. A tenth of them is held out and chooses the epoch.

Then start from the file that it wrote. The validation scores of both trainings show whether this is better than to
start from the foundation.

Run the same command again to resume an interrupted run.
"""


def add(parser: Parser) -> None:
    """Add the options of the command."""
    parser.usage = "gtx adapt MODEL MOLECULES --out FILE [options]"
    parser.examples, parser.epilog = EXAMPLES, NOTES
    parser.add_argument("model", metavar="MODEL", help="foundation, or a file that gtx adapt wrote")
    parser.add_argument("molecules", metavar="MOLECULES", help="a table, a SMILES file or an SDF")
    parser.add_argument("--out", required=True, metavar="FILE", help="the model file to write")
    parser.add_argument(
        "--smiles-column", metavar="NAME", help="the column with the SMILES; default: found by its name"
    )
    parser.add_argument("--epochs", type=int, default=10, metavar="N", help="passes over the molecules")
    parser.add_argument("--lr", type=float, default=3e-4, metavar="X", help="peak learning rate")
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="random seed of the held-out molecules and the batches"
    )
    add_workers(parser)
    parser.add_argument("--overwrite", action="store_true", help="start again, and replace the file")
    parser.add_argument("--threads", type=int, metavar="N", help="threads on a CPU; default: what PyTorch chooses")
    parser.add_argument(
        "--accelerator", default="auto", metavar="NAME", help="cpu, gpu, or auto: a GPU if there is one"
    )


def run(arguments: Namespace) -> int:
    """Adapt, and print how much better the descriptors are now."""
    from gtx.errors import InputError
    from gtx.training import TrainSettings
    from gtx.workflow import adapt_pretrained_model

    if not arguments.out.endswith(".gtx"):
        raise InputError(f"--out: expected the name of a model file that ends in .gtx, got {arguments.out!r}")
    names = ("epochs", "lr", "seed", "threads", "accelerator")
    settings = TrainSettings(**{name: getattr(arguments, name) for name in names}, clip=0.5)
    more = {name: getattr(arguments, name) for name in ("smiles_column", "workers", "overwrite")}
    done = adapt_pretrained_model(arguments.model, arguments.molecules, arguments.out, settings, **more)
    if done.was_finished or done.row_log is None:
        say(f"{arguments.out} is finished: adapted to {done.molecules} molecules; --overwrite adapts it again.")
    else:
        note(done.row_log.summary())
        for message in list(done.row_log.errors.values())[:5]:
            note(message)
    say(f"error of held-out molecules' descriptors, in sd: {done.before:.3f}, now {done.after:.3f}")
    say(f"model   {arguments.out}   (gtx train TABLE --target-columns NAME --from {arguments.out} --out FOLDER)")
    return 0
