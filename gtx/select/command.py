"""`gtx select`."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from gtx.base.errors import InputError
from gtx.base.files import atomic_file
from gtx.cli.parser import options_of
from gtx.cli.printing import note, say
from gtx.settings import Name, option, word

if TYPE_CHECKING:
    from gtx.select.selecting import Replay

ABOUT = "choose the molecules of a library to measure next"
EXAMPLES = """
examples:
  gtx select run/model.gtx library.csv --number 96 --out plate.csv
  gtx select run/model.gtx library/ --number 96 --out plate.csv
  gtx select run/model.gtx library.csv --number 9 --for best --out plate.csv
"""
NOTES = """
With --for accuracy, gtx chooses the molecules that lower the mean variance of the predictions over the library most.
The kernel model is a Gaussian process: it yields the variance of every prediction, and the change of the variance by a
measurement, whatever its value. gtx therefore chooses one molecule after the other without training. With --for best,
gtx chooses the molecules with the highest predictions, and writes for each the probability to be the best so far; not
for targets that were learned minus a reference per element (gtx train --element-reference).

The variance is larger for molecules for which networks of several folds disagree. gtx leaves out training molecules and
repeated molecules; of a model file that does not list all training molecules, those that the kernel cannot tell from
one. It writes the rows in the order of the choice, with their cells, the prediction and a reason.

A simulation on the rows to which the kernel model was fitted compares the same choice with random rows; --figure draws
the simulation.
"""

FIGURES = (".svg", ".png", ".pdf")

USAGE = "gtx select MODEL LIBRARY --number N --out FILE [options]"


@dataclass(frozen=True)
class SelectOptions:
    """Options of the command."""

    model: str = word("MODEL", "a model file of gtx train")
    library: str = word("LIBRARY", "a table, a SMILES file or an SDF; or a folder of them")
    number: int = option(MISSING, "number of molecules to choose")
    out: Name = option(MISSING, "table to write: .csv, .tsv or .parquet", metavar="FILE")
    goal: Literal["accuracy", "best"] = option(
        "accuracy",
        "accuracy: choose molecules that lower the error over the library; best: choose molecules with the best values",
        flag="--for",
    )
    lowest: bool = option(False, "with --for best: the lowest value is the best")
    target: str | None = option(None, "the target, if the model has several")
    smiles_column: str | None = option(None, "the column with the SMILES; default: as in the training table")
    figure: str | None = option(None, "draw the simulation: .svg, .png or .pdf", metavar="FILE")
    workers: int | None = option(None, "number of processes that read and predict")


OPTIONS = options_of(SelectOptions, "options")


def run(arguments: Namespace) -> int:
    """Choose, write the rows and print a summary."""
    from gtx.data.rows import plural
    from gtx.prediction import load_predictor
    from gtx.select.selecting import select

    if arguments.figure and Path(arguments.figure).suffix not in FIGURES:
        raise InputError(f"--figure: expected a name that ends in {', '.join(FIGURES)}, got {arguments.figure}")
    how = {name: getattr(arguments, name) for name in ("goal", "target", "lowest", "smiles_column", "workers")}
    plate = select(load_predictor(arguments.model), arguments.library, arguments.number, arguments.out, **how)
    for name, row_log in plate.row_logs.items():
        note(row_log.summary() if len(plate.row_logs) == 1 else f"{name}: {row_log.summary()}")
    for why, count in plate.left_out.items():
        note(f"left out: {plural(count, 'molecule')}, {why}")
    if plate.unknown:
        note(f"warning: training molecules may be among the chosen ones: {plate.unknown}")
    if len(plate.picks) < arguments.number:
        note(f"--number: fewer than {arguments.number:,} molecules can be chosen; all {len(plate.picks):,} are")
    say(f"{len(plate.picks)} of {plate.considered:,} molecules: {arguments.out}")
    say(f"kernel to the most similar other molecule of the plate: {plate.similarity:.2f} on average, of 0 to 1")
    if plate.replay is None:
        note("no simulation: the kernel model was fitted to too few rows")
        return 0
    quantity = "RMSE, share of the target's spread" if arguments.goal == "accuracy" else "share of the best tenth found"
    first, last = plate.replay.measured[0], plate.replay.measured[-1]
    say(f"simulation on known rows, {first} to {last} measured; mean {quantity}:")
    for strategy in plate.replay.curves:
        say(f"  {strategy:<11} {plate.replay.area(strategy):.3f}")
    if arguments.figure:
        draw(plate.replay, quantity, arguments.figure)
        say(f"figure: {arguments.figure}")
    return 0


def draw(replay: Replay, quantity: str, file: str) -> None:
    """Draw the curves of a replay."""
    from gtx.report.gallery import figure_of, panel

    with panel("Simulation on known rows", "molecules measured", quantity) as axes:
        for strategy, heights in replay.curves.items():
            axes.plot(replay.measured, heights, label=strategy)
        axes.legend(frameon=False)
    with atomic_file(file) as opened:
        figure_of(axes).savefig(opened, format=Path(file).suffix[1:])
