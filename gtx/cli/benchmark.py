"""`gtx benchmark`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gtx.cli.options import MOLECULES, RUN, TABLE, SplitOptions, settings_from, task_options, training_options
from gtx.cli.parser import options_of
from gtx.cli.printing import cell, folded, name_width, note, print_fitting, say
from gtx.settings import option

if TYPE_CHECKING:
    from gtx.workflow.benchmark import Benchmark

EXAMPLES = """
examples:
  gtx benchmark examples/solvation.csv --target-columns dG_water --out bench/
  gtx benchmark tox.csv --target-columns NR-AR NR-ER --split scaffold --out b/
  gtx benchmark data.csv --target-columns y --repeats 3 --out bench/
  gtx benchmark freesolv --test-folds 10 --repeats 1 --out bench/
  gtx benchmark data.csv --target-columns y --model gps --out bench-gps/
"""
NOTES = """
Is gtx better than simple models on YOUR molecules, and by more than chance? The rows are divided into folds, several
times. Each fold is the test set once; a tenth of the other rows chooses the epoch, and the rest trains. gtx and the
baselines (the mean, a linear model and a random forest on Morgan counts and gtx's descriptors, and a kernel model)
learn from the same rows. One split cannot answer the question: on a few hundred molecules, the order of the methods
changes from split to split.

The table that is printed shows, for each method, the mean and the standard deviation of its test scores over all
splits, and gtx's score minus its score, with a 95% interval and a p value. They come from the corrected resampled
t-test (Nadeau & Bengio 2003), which takes into account that the training sets overlap; a plain t-test, or a bootstrap
over splits, finds differences that do not exist. If the interval contains 0, the difference is not significant. With
several targets there is also the mean over targets; because the units of targets differ, RMSE and MAE are then divided
by those of the mean predictor.

Random folds tell how well molecules like those of the table are predicted; all rows of one molecule stay in one fold.
Scaffold folds tell how well new ring systems are predicted, which is harder; molecules with one scaffold stay in one
fold. Likewise cluster keeps similar molecules in one fold, and group all rows with one cell in --split-by. A row that
cannot be used is reported with its reason, and the run goes on.

There are folds x repeats trainings. Fewer --epochs give a quick first impression, in which gtx looks worse than it is.
Run the same command again to resume an interrupted benchmark, or, with more --repeats, to extend a finished one.

FOLDER then holds benchmark.csv (the table), benchmark.png, benchmark.json (the scores of every split, the settings, the
SHA-256 of the data), and predictions.csv: every row as it was, with each method's prediction by models that did not
learn from this row, or an error.
"""
USAGE = "gtx benchmark TABLE --target-columns NAME --out FOLDER [options]"


@dataclass(frozen=True)
class FoldOptions(SplitOptions):
    """Options of the folds."""

    test_folds: int = option(5, "number of folds; each is the test set once", common=True)
    repeats: int = option(2, "number of times that the rows are divided into folds", common=True)
    jobs: int | None = option(
        None,
        "number of trainings at the same time, each in a process; default: one per core, at most 4; on a GPU, 1",
        common=True,
    )


OPTIONS = [
    *TABLE,
    *task_options(["regression", "classification", "multiclass"]),
    *RUN,
    *options_of(FoldOptions, "folds"),
    *MOLECULES,
    *training_options(),
]


def run(arguments: Namespace) -> int:
    """Cross-validate, and print the comparison."""
    from gtx.workflow.benchmark import benchmark

    values = vars(arguments)
    data, settings = settings_from(values)
    counts = {name: values[name] for name in ("test_folds", "repeats", "jobs", "overwrite")}
    result = benchmark(data, settings, values["out"], **counts)
    for line in result.notes:
        note(line)
    comparison_table(result, data.units)
    out = Path(values["out"])
    for what, name in (("table", "csv"), ("picture", "png"), ("everything", "json")):
        say(f"{what:<11}  {out / f'benchmark.{name}'}")
    say(f"predictions  {out / 'predictions.csv'}")
    return 0


def comparison_table(result: Benchmark, units: Mapping[str, str]) -> None:
    """Print each target's methods: scores over the splits, and gtx's leading metric minus theirs.

    On a narrow terminal, methods, scores and intervals are broken into two lines; metrics for which there is no room
    are named below the table.
    """
    from rich.table import Table

    from gtx.report.comparison import IN_UNITS, MEAN
    from gtx.report.kinds import TITLES, score, signed, titles

    every, width = titles(result.task.metrics), name_width()
    leading = next(iter(every))
    best_of = min if result.task.metrics[leading].lower else max
    caption = f"difference: {every[leading]} of gtx minus that of the method"
    if leading in IN_UNITS and any(row["target"] == MEAN for row in result.table):
        caption += "; mean of targets: RMSE and MAE divided by those of the training mean"

    def build(columns: int) -> Table:  # one more than metrics: all of them, each in one line
        metrics, between = list(every)[:columns], " " if columns > len(every) else "\n"
        table = Table(title="test scores, mean ± sd over splits", caption=caption)
        for name in ("target", "method"):
            table.add_column(name, no_wrap=True)
        for name in (*(every[metric] for metric in metrics), "difference", f"95%{between}interval", "p"):
            table.add_column(name, justify="right", no_wrap=True)
        for target in dict.fromkeys(row["target"] for row in result.table):
            own = {(row["method"], row["metric"]): row for row in result.table if row["target"] == target}
            means = {method: row["mean"] for (method, name), row in own.items() if name == leading}
            best = best_of((mean for mean in means.values() if mean is not None), default=None)
            title = folded(f"{target} {units.get(target, '')}".strip(), width)
            for method, mean in means.items():
                rows = [own[method, metric] for metric in metrics]
                cells = [f"{score(r['mean'], r['metric'])} ±{between}{score(r['sd'], r['metric'])}" for r in rows]
                cells[0] = f"[bold]{cells[0]}[/]" if mean == best else cells[0]
                difference, low, high, p = (rows[0][name] for name in ("difference", "low", "high", "p"))
                table.add_row(
                    cell(title),
                    TITLES.get(method, method).replace(" ", between),
                    *cells,
                    "" if difference is None else signed(difference),
                    "" if low is None else f"{signed(low)} to{between}{signed(high)}",
                    "" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}",
                )
                title = ""
            table.add_section()
        return table

    columns = print_fitting(build, len(every) + 1)
    if left := list(every.values())[columns:]:
        say(f"no room for {', '.join(left)}; benchmark.csv has all scores")
