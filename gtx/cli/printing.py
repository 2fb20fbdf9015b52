"""What commands print: lines and tables of scores; names and cells of the user's never become control characters."""

from __future__ import annotations

import codecs
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from gtx.base.errors import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from gtx.tasks import Metric

WIDE = 180
"""Characters of a line where output goes to a file or a pipe, which has no width of its own."""
PLAIN = {"×": "x", "±": "+-", "−": "-", "–": "-", "…": "...", "²": "2", "³": "3", "µ": "u", "Å": "A", "→": "->"}
"""What stands for a character that the output does not know."""
_said = True


def say(line: str, file: TextIO | None = None) -> None:
    """Print one line, on standard output unless told otherwise; a terminal's lines end between words."""
    stream, line = file or sys.stdout, printable(line, None)
    if stream.isatty():
        width = shutil.get_terminal_size().columns
        line = "\n".join(textwrap.wrap(line, width, break_on_hyphens=False, break_long_words=False)) or line
    print(line, file=stream)


def note(line: str) -> None:
    """Print one line beside the results, on standard error; with --quiet nothing."""
    if _said:
        say(line, sys.stderr)


def in_words(stream: TextIO) -> None:
    """Have a stream that knows only some characters, such as ASCII, print others in those that it knows."""
    codecs.register_error("gtx", _plainer)
    if hasattr(stream, "reconfigure") and stream.errors == "strict":
        stream.reconfigure(errors="gtx")


def _plainer(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    characters = error.object[error.start : error.end]
    return "".join(PLAIN.get(character, "?") for character in characters), error.end


def be_quiet(quiet: bool) -> None:
    """Turn `note` off or on."""
    global _said
    _said = not quiet


def shows_progress() -> bool:
    """Return True if progress is wanted and there is a terminal to show it."""
    return _said and sys.stderr.isatty()


@contextmanager
def stages() -> Iterator[Callable[[str], None]]:
    """Yield a function that shows the stage of a long command: a line, or on a terminal a clock that runs beside it."""
    if not shows_progress():
        yield note
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("")
        yield lambda stage: progress.update(task, description=stage)


def console(**more: Any) -> Console:
    """Make a console of rich on standard output, for tables."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else WIDE, **more)


def fits(table: Table, screen: Console) -> bool:
    """Return True if a console is wide enough for the words of a table."""
    return table.__rich_measure__(screen, screen.options).minimum <= screen.width


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


def name_width(screen: Console) -> int:
    """Return the characters of a line of a target's name in a table on a console."""
    return max(16, screen.width // 5)


# --- Scores, as a table on the terminal.

METHODS = {
    "mean": "mean of training rows",
    "ridge": "ridge",
    "logistic": "logistic",
    "random_forest": "random forest",
    "kernel": "kernel ridge",
    "alike": "mean of those alike",
}


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
    part = next(
        (
            p
            for p in ("test", "val", "train")
            if any(metrics[p][name] is not None for name in kinds if name in metrics[p])
        ),
        "train",
    )
    screen = console()
    if part != "test":
        bounds = sum(scores.get("bounds", 0) for scores in metrics["test"]["per_target"].values())
        why = f"all {bounds:,} test values are bounds, and scores are of exact values" if bounds else "no test values"
        screen.print(f"no test scores: {why}", highlight=False, soft_wrap=True)
    rows = {"gtx": metrics[part]} | {METHODS.get(k, k): v[part] for k, v in metrics.get("baseline", {}).items()}
    fitting = list(rows)
    width, title = name_width(screen), part
    if part == "val" and metrics.get("folds", 1) > 1:
        title = "out-of-fold"
    table = _table(title, rows, fitting, kinds, units or {}, width)
    while not fits(table, screen) and len(fitting) > 1:
        fitting.pop()
        table = _table(title, rows, fitting, kinds, units or {}, width)
    screen.print(table)
    hints = [f"no room for {', '.join(left)}"] if (left := [name for name in rows if name not in fitting]) else []
    if (count := len(metrics[part]["per_target"])) > MANY:
        some = f", and {MOST} of them" if count > MOST else ""
        hints.append(f"of {count} targets one metric each{some}")
    if hints:
        screen.print(f"{'; '.join(hints)}; metrics.json has all scores", highlight=False, soft_wrap=True)


def _table(
    title: str,
    rows: Mapping[str, Mapping[str, Any]],
    methods: Sequence[str],
    kinds: Mapping[str, Metric],
    units: Mapping[str, str],
    width: int,
) -> Table:
    """Build the table of the scores of some methods; `width` is that of a line of a target's name."""
    from rich.table import Table

    names = list(rows["gtx"]["per_target"])
    shown = [name for name in kinds if name in rows["gtx"]]
    table = Table(title=f"{title} scores")
    table.add_column("target", no_wrap=True)  # names are folded
    table.add_column("metric")
    for method in methods:
        table.add_column(
            "\n".join(textwrap.wrap(method, 8)), justify="right", no_wrap=True
        )  # names give way, numbers do not
    same = len({units.get(name) for name in names}) == 1 and names[0] in units  # else errors have no mean
    together = [name for name in shown if kinds[name].summed] or [m for m in shown if same or not kinds[m].in_units]
    for target in [*([None] if together and len(names) > 1 else []), *names[: MOST if len(names) > MANY else None]]:
        own = together if target is None else [name for name in shown if name in rows["gtx"]["per_target"][target]]
        for metric in own[: 1 if target is not None and len(names) > MANY else None]:
            scores = [(row if target is None else row["per_target"][target])[metric] for row in rows.values()]
            defined = [score for score in scores if score is not None]
            best = (min if kinds[metric].lower else max)(defined, default=None)
            unit = units.get(names[0] if target is None else target, "") if kinds[metric].in_units else ""
            cells = ["-" if s is None else f"[bold]{s:.4g}[/]" if s == best else f"{s:.4g}" for s in scores]
            title = ("all" if kinds[metric].summed else "mean") if target is None else cell(folded(target, width))
            table.add_row(title if metric == own[0] else "", cell(f"{metric} {unit}".strip()), *cells[: len(methods)])
        if target is not None and (kept := rows["gtx"]["per_target"][target].get("bounds")):
            share = rows["gtx"]["per_target"][target]["bounds_kept"]
            table.add_row("", f"{kept} bounds kept", f"{share:.0%}", *[""] * (len(methods) - 1))
        if target is None or len(names) <= MANY:
            table.add_section()
    return table


def metric_lines(
    metrics: Mapping[str, Any], kinds: Mapping[str, Metric] | None = None, units: Mapping[str, str] | None = None
) -> list[str]:
    """Scores of a table, a line per target that has one; those in the target's unit with it."""

    def words(target: str, name: str, value: float) -> str:
        in_units = kinds and name in kinds and kinds[name].in_units
        return f"{name} {value:.4g} {(units or {}).get(target, '') if in_units else ''}".rstrip()

    return [
        f"{target}: " + ", ".join(words(target, name, value) for name, value in scores.items() if value is not None)
        for target, scores in metrics["per_target"].items()
        if any(value is not None for value in scores.values())
    ]
