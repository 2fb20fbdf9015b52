"""What commands print: lines and tables of scores; names and cells of the user's never become control characters."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TextIO

from gtx.base.errors import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from gtx.tasks import Metric

WIDE = 180
"""Characters of a line where output goes to a file or a pipe, which has no width of its own."""
_quiet = False
_flags: Mapping[str, str] = {}


def say(line: str, file: TextIO | None = None) -> None:
    """Print one line, on standard output unless told otherwise; a terminal's lines end between words.

    A parameter of Python at the start of an error, `gtx: top: ...`, or in backquotes is printed as the option: --top.
    """
    line = re.sub(r"(?<=^gtx: )\w+(?=:)|`\w+`", lambda name: _flags.get(name[0].strip("`"), name[0]), line)
    stream, line = file or sys.stdout, printable(line, None)
    if stream.isatty():
        width = shutil.get_terminal_size().columns
        line = "\n".join(textwrap.wrap(line, width, break_on_hyphens=False, break_long_words=False)) or line
    print(line, file=stream)


def note(line: str) -> None:
    """Print one line beside the results, on standard error; with --quiet nothing."""
    if not _quiet:
        say(line, sys.stderr)


def prepare(quiet: bool, flags: Mapping[str, str]) -> None:
    """Turn `note` off or on, and set the spellings of the options of a command, by name."""
    global _quiet, _flags
    _quiet, _flags = quiet, flags


def shows_progress() -> bool:
    """Return True if progress is wanted and there is a terminal to show it."""
    return not _quiet and sys.stderr.isatty()


def console() -> Console:
    """Make a console of rich on standard output, for tables."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else WIDE)


def print_fitting(build: Callable[[int], Table], most: int) -> int:
    """Print the table of the most columns that the console has room for; return their number, at least 1.

    Args:
        build: makes the table of some number of columns, or at least as narrow as with one more.
        most: largest number of columns.
    """
    screen = console()
    for columns in range(most, 0, -1):
        table = build(columns)
        if table.__rich_measure__(screen, screen.options).maximum <= screen.width:
            break
    screen.print(table)
    return columns


def cell(text: str) -> str:
    """Escape a text for rich, for which square brackets would be markup; line feeds stay."""
    from rich.markup import escape

    return "\n".join(escape(printable(line, None)) for line in text.split("\n"))


def folded(name: str, width: int) -> str:
    """Break a name into lines of at most `width` characters, after a space, an underscore, a full stop or a hyphen.

    Only a word that is longer than a line is broken within.
    """
    lines = [""]
    for word in re.findall(rf"[^\s_.-]{{1,{width}}}|[\s_.-]", name):
        if len(lines[-1] + word.rstrip()) > width:
            lines.append("")
        lines[-1] += word
    return "\n".join(line.strip() for line in lines)


def name_width() -> int:
    """Return the characters of a line of a target's name in a table on the console."""
    return max(16, console().width // 5)


# --- Scores, as a table on the terminal.

MANY, MOST = 6, 20
"""With more targets than `MANY` one metric is shown of each, and of no more than `MOST` targets any."""


def score_table(
    metrics: Mapping[str, Any], kinds: Mapping[str, Metric], units: Mapping[str, str] | None = None
) -> None:
    """Print test scores of the model beside the baselines, the best in bold: of several targets first their mean.

    Methods that a narrow terminal has no room for are named below the table.

    Args:
        metrics: as in `metrics.json`.
        kinds: the metrics of the task, by name.
        units: of targets, by name.
    """
    from rich.table import Table

    from gtx.report.kinds import TITLES

    scored = (part for part in ("test", "val") if any(metrics[part].get(name) is not None for name in kinds))
    part = next(scored, "train")
    if part != "test":
        bounds = sum(scores.get("bounds", 0) for scores in metrics["test"]["per_target"].values())
        why = f"all {bounds:,} test values are bounds, and scores are of exact values" if bounds else "no test values"
        say(f"no test scores: {why}")
    title = "out-of-fold" if part == "val" and metrics.get("folds", 1) > 1 else part
    methods = {"gtx": metrics[part]}
    methods |= {TITLES.get(name, name).lower(): scores[part] for name, scores in metrics.get("baseline", {}).items()}
    rows = list(_score_rows(methods, kinds, units or {}))

    def build(columns: int) -> Table:
        table = Table(title=f"{title} scores")
        table.add_column("target", no_wrap=True)  # names are folded
        table.add_column("metric")
        for method in list(methods)[:columns]:  # names give way, numbers do not
            table.add_column("\n".join(textwrap.wrap(method, 10)), justify="right", no_wrap=True)
        for cells in rows:
            table.add_row(*cells[: columns + 2]) if cells else table.add_section()
        return table

    left = list(methods)[print_fitting(build, len(methods)) :]
    hints = [f"no room for {', '.join(left)}"] if left else []
    if (count := len(metrics[part]["per_target"])) > MANY:
        hints.append(f"of {count} targets one metric each{f', and {MOST} of them' if count > MOST else ''}")
    if hints:
        say(f"{'; '.join(hints)}; metrics.json has all scores")


def _score_rows(
    methods: Mapping[str, Mapping[str, Any]], kinds: Mapping[str, Metric], units: Mapping[str, str]
) -> Iterator[list[str]]:
    """Yield the cells of each row: target, metric, and the score of each method; an empty row after each section."""
    from gtx.data.rows import percent

    scores = methods["gtx"]
    names, shown, width = list(scores["per_target"]), [name for name in kinds if name in scores], name_width()
    many = len(names) > MANY
    same_unit = len({units.get(name) for name in names}) == 1 and names[0] in units  # else errors have no mean
    means = [name for name in shown if kinds[name].summed] or [m for m in shown if same_unit or not kinds[m].in_units]
    for target in [*([None] if means and len(names) > 1 else []), *names[: MOST if many else None]]:
        if target is None:
            title, columns, own = "all" if kinds[means[0]].summed else "mean", list(methods.values()), means
        else:
            title, columns = cell(folded(target, width)), [method["per_target"][target] for method in methods.values()]
            own = [name for name in shown if name in columns[0]][: 1 if many else None]
        for metric in own:
            values = [column[metric] for column in columns]
            best = (min if kinds[metric].lower else max)((v for v in values if v is not None), default=None)
            unit = units.get(target or names[0], "") if kinds[metric].in_units else ""
            cells = ["-" if v is None else f"[bold]{v:.4g}[/]" if v == best else f"{v:.4g}" for v in values]
            yield [title if metric == own[0] else "", cell(f"{metric} {unit}".strip()), *cells]
        if target is not None and (kept := columns[0].get("bounds")):
            yield ["", f"{kept} bounds kept", percent(columns[0]["bounds_kept"])]
        if target is None or not many:
            yield []


def metric_lines(metrics: Mapping[str, Any], kinds: Mapping[str, Metric], units: Mapping[str, str]) -> Iterator[str]:
    """Yield the scores of each target that has one, in a line; those in the target's unit with it."""
    for target, scores in metrics["per_target"].items():
        unit = units.get(target, "")
        texts = [
            f"{name} {value:.4g} {unit if name in kinds and kinds[name].in_units else ''}".rstrip()
            for name, value in scores.items()
            if value is not None
        ]
        if texts:
            yield f"{target}: {', '.join(texts)}"
