"""What is written of a run: its line and predictions in the archive, and a line in the ledger of test evaluations."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments import archive
from experiments.archive import ROOT, KeptPredictions
from experiments.public_sets import FitResult, LoadedRun, Run

if TYPE_CHECKING:
    from gtx.dataset import Dataset

LEDGER = "test_evaluations.csv"
LEDGER_COLUMNS = ("date", "commit", "folder", "model", "split", "seed", "metric", "test")


def write(
    loaded: LoadedRun,
    answer: FitResult,
    figures: Mapping[str, Any],
    command: str,
    results: Path,
    threads: int = 1,
    measured: np.ndarray | None = None,
) -> dict[str, Any]:
    """Score an answer on all parts of the split, and write it down.

    Args:
        loaded: the run and its molecules.
        answer: the predictions.
        figures: of the run: seconds and the like.
        command: that makes it again.
        results: the folder of all results.
        threads: it computed with.
        measured: the targets of the test rows `[n, T]`, of a set that is no table.
    """
    from gtx.dataset import sha256

    run, dataset = loaded.run, loaded.dataset
    scores = {
        part: dataset.task.evaluate(dataset.y[rows], answer.prediction[rows]) for part, rows in dataset.split.items()
    }
    if len(loaded.names) == 1:  # the scores of the one target are those of all
        scores = {part: {k: v for k, v in found.items() if k != "per_target"} for part, found in scores.items()}
    result = {
        "recipe": "benchmark",
        "folder": run.public_set.folder,
        "name": run.name,
        "set": run.public_set.name,
        "split": run.public_set.splits[run.split],
        "model": run.model,
        "seed": run.seed,
        "task": dataset.task.name,
        "metric": run.public_set.metric,
        "rows": {part: len(rows) for part, rows in dataset.split.items()},
        **{part: scores[part] for part in ("train", "val", "test")},
        "parameters": answer.parameters,
        "settings": dict(answer.settings),
        **figures,
        "sha256": {"data": sha256(loaded.data.data), "split": split_digest(dataset)},
        **circumstances(command, threads, answer.versions),
    }
    test = dataset.split["test"]
    results.mkdir(parents=True, exist_ok=True)
    enter(results / LEDGER, result)
    found = KeptPredictions(dataset.rows[test], tuple(loaded.names), answer.prediction[test], measured)
    archive.put(results, result, found)
    return result


def kept(run: Run, command: str, results: Path) -> dict[str, Any] | None:
    """A run that is there; if another command made it, that is said on stderr. None where it is not there."""
    result = archive.run_named(results, *run.key)
    if result is not None and result["command"] != command:
        print(
            f"{'/'.join(run.key)} is kept, made by `{result['command']}`; another --name keeps another run",
            file=sys.stderr,
        )
    return result


def split_digest(dataset: Dataset) -> str:
    """SHA-256 of lines `<row of the table, from 0> <part>`, in the table's order."""
    parts = {int(dataset.rows[i]): part for part, index in dataset.split.items() for i in index}
    return hashlib.sha256("".join(f"{row} {parts[row]}\n" for row in sorted(parts)).encode()).hexdigest()


def enter(ledger: Path, result: Mapping[str, Any]) -> None:
    """Add a line to the ledger: test rows were looked at once more. Lines are never removed."""
    values = {**result, "test": result["test"][result["metric"]]}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if not ledger.exists():
        writer.writerow(LEDGER_COLUMNS)
    writer.writerow(values[name] for name in LEDGER_COLUMNS)
    with ledger.open("a") as file:
        file.write(text.getvalue())


def circumstances(command: str, threads: int = 1, versions: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Where and by what a run is made.

    Args:
        command: that makes it again.
        threads: it computes with.
        versions: of libraries beyond those of gtx.
    """
    from gtx.prediction import library_versions

    return {
        "machine": machine(threads),
        "versions": library_versions() | dict(versions or {}),
        "commit": commit(),
        "date": date.today().isoformat(),
        "command": command,
    }


def machine(threads: int = 1) -> dict[str, Any]:
    """Processor, cores and system, and the threads a run computed with."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    named = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "processor": named[0] if named else platform.processor() or platform.machine(),
        "cores": cores,
        "system": f"{platform.system()} {platform.machine()}",
        "threads": threads,
    }


def commit() -> str | None:
    """The commit that was run, with a plus if files had changed since; None outside a repository."""
    words = ["git", "-C", str(ROOT), "describe", "--always", "--abbrev=10", "--dirty=+", "--exclude=*"]
    try:
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
