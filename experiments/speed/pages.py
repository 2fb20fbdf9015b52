"""What was measured of a topic, as a run of `runs.csv` with its records; the tables and the pages made of it."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pandas as pd
import torch

from experiments import archive
from experiments.record import circumstances
from experiments.speed.harness import MEMORY, TOPICS, Record

MACHINE = ("processor", "cores", "threads", "clock", "memory_GiB", "memory_limit_GiB", "system", "device", "cuda")
TITLES = {"speed": "How fast gtx is", "speed-cuda": "How fast gtx is on a GPU"}
PAGES = {"cpu": "speed", "cuda": "speed-cuda"}
"""By device."""


def keep(topic: str, options: argparse.Namespace, command: str, records: Sequence[Record]) -> None:
    """Put the results of a topic in the place of earlier ones."""
    results, page, made = options.out, PAGES[options.device], circumstances(command, options.threads)
    made["machine"] |= {"clock": options.clock, "memory_limit_GiB": round(options.memory / 2**30, 1)}
    made["machine"]["memory_GiB"] = round(MEMORY / 2**30, 1)
    if options.device == "cuda":
        made["machine"] |= {"device": torch.cuda.get_device_name(), "cuda": torch.version.cuda}
    run = {"recipe": "speed", "folder": page, "name": topic, "settings": {"topic": topic}, **made}
    archive.put(results, run | {"records": list(records)})


def write_page(results: Path, name: str) -> Path:
    """Write a page, where there are results for it; its file."""
    if text := page(results, name):
        (results / f"{name}.md").write_text(text)
    return results / f"{name}.md"


def page(results: Path, name: str) -> str:
    """All tables of a page, in Markdown; nothing where there are no results."""
    runs = archive.runs(results, "speed", name)
    by = "python -m experiments.speed --device cuda" if name == PAGES["cuda"] else "make bench"
    parts = [
        f"# {TITLES[name]}\n\nMeasured by `{by}` (`experiments/speed/`); times are medians, ratios those of runs that "
        "took turns, and memory is the peak above what was held before. Each topic says on what machine.\n"
    ]
    for run in sorted(runs, key=lambda run: (TOPICS.index(run["settings"]["topic"]), run["name"])):
        topic = import_module(f"experiments.speed.bench_{run['settings']['topic']}")
        about = topic.__doc__.strip().split("\n\n")[0].replace("\n", " ")
        facts = {key.replace("_", " "): run["machine"][key] for key in MACHINE if key in run["machine"]}
        machine = ", ".join(f"{key} {value}" for key, value in (facts | run["versions"]).items())
        made_at = f", commit {run['commit']}" if run.get("commit") else ""
        parts.append(f"## {run['name']}\n\n{about}\n\n{run['date']}{made_at}: {machine}. `{run['command']}`\n")
        parts += tables(topic, run["records"])
    return "\n".join(parts) if runs else ""


def tables(topic: ModuleType, records: Sequence[Record]) -> list[str]:
    """All tables of a topic."""
    return topic.tables(records) if hasattr(topic, "tables") else rival_tables(records, *topic.TABLE)


def table(title: str, rows: Sequence[Mapping[str, str]], note: str = "") -> str:
    """Rows of cells by their heads, below a heading and a note; a cell that a row lacks is empty."""
    frame = pd.DataFrame(rows).fillna("")
    lines = [f"### {title}", "", *([note, ""] if note else [])]
    for cells in (frame.columns, ["---", *["--:"] * (frame.shape[1] - 1)], *frame.to_numpy()):
        lines.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    return "\n".join(lines) + "\n"


def rival_tables(
    records: Sequence[Record],
    title: str,
    labels: Sequence[str],
    figures: Mapping[str, Callable[[Record], str] | None],
    split: str = "\n",
    prefix: str = "",
) -> list[str]:
    """A table for each step, a row for each case: its name, cut into the labels, and its figures.

    Args:
        records: of cases and steps.
        title: of the table, with {} for the step.
        labels: heads of the first columns.
        figures: of the others, by their heads; None for "time over ..." and "memory over ...", those of the rival.
            Where a case failed, the reason stands in place of the first.
        split: between the parts of a case's name.
        prefix: of the cases that are meant, left out of the labels.
    """
    own = [record for record in records if record["case"].startswith(prefix)]
    made = []
    for step in dict.fromkeys(record["step"] for record in own if record["step"] != "all") or ["all"][: len(own)]:
        found = {record["case"]: record for record in own if record["step"] in (step, "all")}
        rows = []
        for case, record in found.items():
            rows.append(dict(zip(labels, case.removeprefix(prefix).rsplit(split, len(labels) - 1), strict=True)))
            if "failed" in record:
                rows[-1] |= dict.fromkeys(figures, "") | {next(iter(figures)): record["failed"]}
                continue
            for head, figure in figures.items():
                over = ratio(record, found.get(record.get("rival")), "peak" if head.startswith("memory") else "seconds")
                rows[-1][head] = figure(record) if figure else "" if over is None else f"{over:.2f}x"
        made.append(table(title.format(step), rows))
    return made


def milliseconds(record: Record, count: int = 1) -> str:
    """The median time of a record, or that of one of so many."""
    return f"{record['seconds'] / count * 1e3:.3g} ms"


def microseconds(record: Record) -> str:
    """The median time per molecule."""
    return f"{record['seconds'] / record['molecules'] * 1e6:.3g} µs"


def megabytes(record: Record) -> str:
    """The peak memory of a record."""
    return f"{record['peak'] / 2**20:,.0f} MiB"


def molecule_rate(record: Record) -> str:
    """Molecules per second of a record."""
    return f"{record['molecules'] / record['seconds']:,.0f}"


def ratio(one: Record | None, other: Record | None, key: str = "seconds") -> float | None:
    """How many times as much `one` takes as `other`; of seconds, the median over turns; None where one is missing."""
    if not one or not other or "failed" in one or "failed" in other or not other[key]:
        return None
    if key == "seconds" and len(one["turns"]) == len(other["turns"]):
        return statistics.median(a / b for a, b in zip(one["turns"], other["turns"], strict=True))
    return one[key] / other[key]
