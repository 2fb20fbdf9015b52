"""One page out of the results."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.speed.results import Table

TOPICS = [
    "layer",
    "floor",
    "growth",
    "kernel",
    "encodings",
    "batches",
    "featurising",
    "training",
    "prediction",
    "decoding",
]


def page(folder: Path) -> str:
    """The tables of all JSON files in a folder, in Markdown, as a file beside the folder."""
    parts = [
        "# How fast gtx is\n\nMeasured by `make bench` (`experiments/speed/`); times are medians, ratios those of runs "
        "that took turns, and memory is the peak above what was held before. Each topic says on what machine.\n"
    ]
    files = sorted(folder.glob("*.json"), key=lambda file: _place(file.stem))
    for file in files:
        result = json.loads(file.read_text())
        if "tables" not in result:  # figures without a reader's table
            parts.append(f"## {file.stem}\n\n[{file.name}]({folder.name}/{file.name})\n")
            continue
        parts.append(f"## {file.stem}\n\n{result['about']}\n\n{_where(result)}\n")
        parts += [Table(**table).markdown() for table in result["tables"]]
        parts += [f"![{file.stem}]({folder.name}/{picture})\n" for picture in result.get("pictures", [])]
    return "\n".join(parts)


def _place(name: str) -> tuple[int, str]:
    topic = name.split("-")[0]
    return (TOPICS.index(topic) if topic in TOPICS else len(TOPICS)), name


def _where(result: Mapping[str, Any]) -> str:
    machine, versions = result.get("machine", {}), result.get("versions", {})
    words = [f"{key.replace('_', ' ')} {value}" for key, value in machine.items() if value is not None] + [
        f"{library} {version}" for library, version in versions.items()
    ]
    commit = f", commit {result['commit']}" if result.get("commit") else ""
    return f"{result.get('date', '')}{commit}: {', '.join(words)}. `{result.get('command', '')}`"
