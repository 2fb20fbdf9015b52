"""What was measured, as JSON and as tables; and the machine it was measured on."""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from experiments.speed.cases import cores

ROOT = Path(__file__).parents[2]
KEPT, QUICK = ROOT / "experiments" / "results" / "speed", ROOT / "runs" / "speed"


class Table(NamedTuple):
    """A table of a page.

    Attributes:
        title: its heading.
        columns: their names.
        rows: their cells.
        note: a line or two below the heading: what was done, what is counted.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""

    def markdown(self) -> str:
        """The table in Markdown, below its heading and its note."""
        lines = [f"### {self.title}", ""] + ([self.note, ""] if self.note else [])
        lines += [_row(self.columns), _row(["---"] + ["--:"] * (len(self.columns) - 1))]
        return "\n".join([*lines, *map(_row, self.rows)]) + "\n"


def folder(options: argparse.Namespace) -> Path:
    """Where results go."""
    return Path(options.out) if options.out else QUICK if options.quick else KEPT


def write(
    topic: str,
    about: str,
    options: argparse.Namespace,
    records: Sequence[Mapping[str, Any]],
    tables: Sequence[Table],
    pictures: Sequence[str] = (),
    **more: Any,
) -> None:
    """Write `<topic>.json` and print its tables.

    Args:
        topic: the script's name; a GPU's results stand beside the CPU's.
        about: what was measured, the first paragraph of the script.
        options: what `cases.options` read.
        records: what `cases.race` gave.
        tables: the records as a reader wants them.
        pictures: files beside the JSON.
        more: further plain values.
    """
    name = topic if options.device == "cpu" else f"{topic}-{options.device}"
    file = folder(options) / f"{name}.json"
    result = {
        "topic": name,
        "about": about.strip().split("\n\n")[0].replace("\n", " "),
        "machine": machine(options),
        "versions": versions(),
        "commit": _commit(),
        "date": date.today().isoformat(),
        "command": _command(),
        "tables": [table._asdict() for table in tables],
        "pictures": list(pictures),
        "records": list(records),
        **more,
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(result, indent=1) + "\n")
    for table in tables:
        print(table.markdown(), flush=True)


def machine(options: argparse.Namespace) -> dict[str, Any]:
    """Processor, cores, memory, system, accelerator."""
    found = {
        "processor": _processor(),
        "cores": cores(),
        "threads": options.threads,
        "clock": options.clock,
        "memory_GiB": _memory(),
        "memory_limit_GiB": round(options.memory, 1),
        "system": f"{platform.system()} {platform.machine()}",
    }
    if options.device.startswith("cuda"):
        import torch

        found["device"] = torch.cuda.get_device_name()
    return found


def versions() -> dict[str, str]:
    """Of gtx, Python and the libraries."""
    from gtx.prediction import library_versions

    return library_versions()


def milliseconds(record: Mapping[str, Any]) -> str:
    """The median time of a record, or why there is none."""
    return record["failed"] if "failed" in record else f"{record['seconds'] * 1e3:.3g} ms"


def megabytes(record: Mapping[str, Any]) -> str:
    """The peak memory of a record."""
    return "" if "failed" in record else f"{record['peak'] / 2**20:,.0f} MiB"


def ratio(one: Mapping[str, Any] | None, other: Mapping[str, Any] | None, key: str = "seconds") -> str:
    """How many times as much `one` takes as `other`; of times, the median over the turns they took one after the other.

    Args:
        one: a record.
        other: a record.
        key: what of them.
    """
    if not one or not other or "failed" in one or "failed" in other or not other[key]:
        return ""
    if key == "seconds" and len(one["turns"]) == len(other["turns"]):
        return f"{statistics.median(a / b for a, b in zip(one['turns'], other['turns'], strict=True)):.2f}x"
    return f"{one[key] / other[key]:.2f}x"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    named = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()


def _memory() -> float | None:
    info = Path("/proc/meminfo")
    return round(int(info.read_text().split()[1]) / 2**20, 1) if info.exists() else None


def _command() -> str:
    """As it would be typed at the root of the repository."""
    words = [f"experiments.speed.{Path(sys.argv[0]).stem}", *sys.argv[1:]]
    return f"python -m {' '.join(words)}"


def _commit() -> str | None:
    """The commit measured, with a plus if files had changed since."""
    try:
        words = ["git", "-C", str(ROOT), "describe", "--always", "--abbrev=10", "--dirty=+", "--exclude=*"]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
