"""What was measured: `results/speed.csv`, a line for each case and step; the tables and the page made of it."""

from __future__ import annotations

import argparse
import shlex
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path

import torch

from experiments import archive
from experiments.archive import RESULTS, ROOT
from experiments.record import circumstances
from experiments.sheet import Sheet
from experiments.speed.harness import Record, Topic, options, race

TOPICS = ("layer", "floor", "encodings", "batches", "featurising", "training", "prediction", "decoding")
"""In the order of the page."""
FILE, PAGE, QUICK = "speed.csv", "speed", ROOT / "runs" / "speed"
SHEET = Sheet(("page", "topic", "case", "step", "failed"), ("seconds", "wall", "cpu", "runs", "peak", "turns"))
MACHINE = ("processor", "cores", "threads", "clock", "memory_GiB", "memory_limit_GiB", "system", "device")
TITLES = {"speed": "How fast gtx is", "speed-before": "How fast gtx was"}


def main(topic: Topic, words: Sequence[str] | None = None) -> None:
    """The command line of a script: measure all cases, and write down what was measured."""
    words = sys.argv[1:] if words is None else list(words)
    read = options(topic, words)
    write(topic, read, words, [record for group in topic.groups(read) for record in race(topic, group, read)])


def write(topic: Topic, read: argparse.Namespace, words: Sequence[str], records: Sequence[Record]) -> None:
    """Put records in the place of those of the same name, and print their tables."""
    results = Path(read.out) if read.out else QUICK if read.quick else RESULTS
    made = circumstances(shlex.join(["python", "-m", topic.script, *words]), read.threads)
    made["machine"] |= {"clock": read.clock, "memory_limit_GiB": round(read.memory, 1)}
    if (info := Path("/proc/meminfo")).exists():
        made["machine"]["memory_GiB"] = round(int(info.read_text().split()[1]) / 2**20, 1)
    if read.device.startswith("cuda"):
        made["machine"]["device"] = torch.cuda.get_device_name()
    run = {"recipe": "speed", "folder": PAGE, "name": read.name, "settings": {"topic": topic.name}, **made}
    with archive.lock(results):
        others = [line for line in SHEET.read(results / FILE) if (line["page"], line["topic"]) != (PAGE, read.name)]
        added = [{"page": PAGE, "topic": read.name, **record} for record in records]
        SHEET.write(results / FILE, [*others, *added])
    archive.put(results, run)
    print(*topic.tables(records), sep="\n", flush=True)


def speed_page(results: Path, name: str = PAGE) -> str:
    """All tables of a page, in Markdown."""
    parts = [
        f"# {TITLES[name]}\n\nMeasured by `make bench` (`experiments/speed/`); times are medians, ratios those of runs "
        "that took turns, and memory is the peak above what was held before. Each topic says on what machine.\n"
    ]
    lines = [line for line in SHEET.read(results / FILE) if line["page"] == name]
    runs = archive.runs(results, "speed", name)
    for run in sorted(runs, key=lambda run: (TOPICS.index(run["settings"]["topic"]), run["name"])):
        topic = import_module(f"experiments.speed.bench_{run['settings']['topic']}").TOPIC
        about = topic.about.strip().split("\n\n")[0].replace("\n", " ")
        parts.append(f"## {run['name']}\n\n{about}\n\n{_circumstances(run)}\n")
        parts += topic.tables([line for line in lines if line["topic"] == run["name"]])
    return "\n".join(parts)


def _circumstances(run: Record) -> str:
    words = [f"{key.replace('_', ' ')} {run['machine'][key]}" for key in MACHINE if run["machine"].get(key) is not None]
    words += [f"{library} {version}" for library, version in run["versions"].items()]
    made_at = f", commit {run['commit']}" if run.get("commit") else ""
    return f"{run['date']}{made_at}: {', '.join(words)}. `{run['command']}`"


Figure = Callable[[Record], str]


def rival_table(
    records: Sequence[Record], title: str, labels: Sequence[str], figures: Mapping[str, Figure], split: str = "\n"
) -> str:
    """A table in Markdown, a row a record: its case, cut into the labels, and its figures.

    Args:
        records: of different cases.
        title: of the table.
        labels: heads of the first columns.
        figures: of the others, by their heads; of what failed, the reason stands in place of the first. "time over ..."
            and "memory over ..." are given as None: how many times as much it takes as its rival.
        split: between the parts of a case's name.
    """
    found = {record["case"]: record for record in records}
    rows = []
    for case, record in found.items():
        if "failed" in record:
            cells = [record["failed"], *[""] * (len(figures) - 1)]
        else:
            rival = found.get(record.get("rival"))
            keys = {head: "peak" if head.startswith("memory") else "seconds" for head in figures}
            cells = [_times(ratio(record, rival, keys[h])) if f is None else f(record) for h, f in figures.items()]
        rows.append([*case.rsplit(split, len(labels) - 1), *cells])
    return table(title, [*labels, *figures], rows)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], note: str = "") -> str:
    """A table in Markdown, below its heading and a note of a line or two."""
    lines = [f"### {title}", ""] + ([note, ""] if note else [])
    for cells in (columns, ["---", *["--:"] * (len(columns) - 1)], *rows):
        lines.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    return "\n".join(lines) + "\n"


def milliseconds(record: Record) -> str:
    """The median time of a record."""
    return f"{record['seconds'] * 1e3:.3g} ms"


def megabytes(record: Record) -> str:
    """The peak memory of a record."""
    return f"{record['peak'] / 2**20:,.0f} MiB"


def ratio(one: Record | None, other: Record | None, key: str = "seconds") -> float | None:
    """How many times as much `one` takes as `other`; of seconds, the median over the turns that they took in turn.

    None where a record is missing or failed.
    """
    if not one or not other or "failed" in one or "failed" in other or not other[key]:
        return None
    if key == "seconds" and len(one["turns"]) == len(other["turns"]):
        return statistics.median(a / b for a, b in zip(one["turns"], other["turns"], strict=True))
    return one[key] / other[key]


def _times(factor: float | None) -> str:
    return "" if factor is None else f"{factor:.2f}x"
