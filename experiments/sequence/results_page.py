"""The results of all sequence tasks as one page, `experiments/results/sequence.md`.

python -m experiments.sequence.results_page
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from experiments import archive
from experiments.archive import RESULTS

Run = Mapping[str, Any]

INTRODUCTION = """# From molecules to sequences

The encoder-decoder Transformer on five tasks, each trained by one command on a processor alone. Wrong answers, invalid
SMILES among them, are listed in the last column of [runs.csv](runs.csv). Seconds are those of all epochs, validation
included; the machine did other work beside, so that processor seconds say what a run takes. This page is made anew by
`python -m experiments.sequence.results_page`.
"""


class PageSection(NamedTuple):
    """A task on the page.

    Attributes:
        title: its heading.
        aim: what was to be reached, in words, or none.
        columns: headings of its figures, and each figure of a run, in words.
    """

    title: str
    aim: str
    columns: Mapping[str, Callable[[Run], str]]


def percent_under(*keys: str) -> Callable[[Run], str]:
    """The share that is found under some keys, one after the other, in percent."""
    return lambda run: f"{_under(run, keys):.1%}" if _under(run, keys) is not None else "none"


def count_under(*keys: str) -> Callable[[Run], str]:
    """The number under some keys."""
    return lambda run: f"{_under(run, keys):,}"


def _under(run: Run, keys: tuple[str, ...]) -> Any:
    for key in keys:
        run = run[key]
    return run


MOLECULES = {
    "same molecule": percent_under("test", "same"),
    "apart from stereochemistry": percent_under("test", "same_constitution"),
    "the very text": percent_under("test", "exact"),
    "invalid": count_under("test", "invalid"),
    "test rows": count_under("test", "rows"),
}
EXACT = {"exact": percent_under("test_exact"), "test rows": count_under("rows", "test")}
TASKS = {
    "copying": PageSection("Copying a string", "99% exact", EXACT),
    "addition": PageSection("Adding two three-digit numbers", "95% exact", EXACT),
    "smiles-xtb9": PageSection("Graph to canonical SMILES, xtb9", "90% the same molecule", MOLECULES),
    "smiles-zinc12k": PageSection("Graph to canonical SMILES, ZINC-12k", "none", MOLECULES),
    "hydrolysis": PageSection(
        "Graph to the products of hydrolysis",
        "80% exact",
        {
            "all products right": percent_under("test", "same"),
            "the very text": percent_under("test", "exact"),
            "invalid": count_under("test", "invalid"),
            "test rows": count_under("test", "rows"),
        },
    ),
    "language": PageSection(
        "A language model of ZINC's SMILES",
        "none",
        {
            "valid": percent_under("valid"),
            "unique among valid": percent_under("unique"),
            "novel among unique": percent_under("novel"),
            "samples": count_under("samples"),
        },
    ),
}
COST = {
    "parameters": count_under("parameters"),
    "seconds": count_under("seconds"),
    "processor seconds": count_under("cpu_seconds"),
}


def sequence_page(results: Path) -> str:
    """The page in Markdown, of the tasks that were run.

    Args:
        results: the folder of all results.
    """
    parts = [INTRODUCTION]
    for name, task in TASKS.items():
        if runs := archive.runs(results, "sequence", name):
            parts.append(section(name, task, runs))
    return "\n".join(parts)


def section(name: str, task: PageSection, runs: Sequence[Run]) -> str:
    """A task: its figures, the command beside them, and its learning curves."""
    columns = {"run": None, **task.columns, **COST}
    first = runs[0]
    lines = [f"## {task.title}", "", f"Aim: {task.aim}. `{first['command']}`", ""]
    lines += [f"| {' | '.join(columns)} |", f"|---|{'--:|' * (len(columns) - 1)}"]
    for run in runs:
        cells = [run["name"], *(show(run) for show in [*task.columns.values(), *COST.values()])]
        lines.append(f"| {' | '.join(cells)} |")
    lines += kinds(runs)
    machine = first["machine"]
    where = f"{machine['processor']}, {machine['threads']} of {machine['cores']} cores"
    lines += ["", f"{first['date']}, commit {first['commit']}, {where}.", ""]
    lines += [f"![Learning curves on validation rows.](sequence/{name}.svg)", ""]
    return "\n".join(lines)


def kinds(runs: Sequence[Run]) -> list[str]:
    """Test rows kind by kind, where there are kinds."""
    lines = []
    for run in runs:
        for kind, score in run.get("test_by_kind", {}).items():
            cells = f"{score['same']:.1%} | {score['same_constitution']:.1%} | {score['invalid']} | {score['rows']:,}"
            lines.append(f"| {kind} | {cells} |")
    head = ["", "| test rows | same molecule | apart from stereochemistry | invalid | rows |", "|---|--:|--:|--:|--:|"]
    return head + lines if lines else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder of all results")
    results = parser.parse_args().results
    (results / "sequence.md").write_text(sequence_page(results))


if __name__ == "__main__":
    main()
