"""Make a run, score it, and write its line and its predictions."""

from __future__ import annotations

import hashlib
import os
import platform
import resource
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments import archive
from experiments.archive import ROOT, KeptPredictions
from experiments.public_sets import FitResult, LoadedRun

if TYPE_CHECKING:
    from gtx.dataset import Dataset


def execute(
    loaded: LoadedRun,
    fit_predict: Callable[[LoadedRun], FitResult],
    command: str,
    results: Path,
    overwrite: bool = False,
    threads: int = 1,
    measured: bool = False,
) -> dict[str, Any]:
    """Do one run in this process, and give what is written of it.

    Args:
        loaded: the run and its molecules.
        fit_predict: trains a model, and predicts all molecules.
        command: that makes it again.
        results: the folder of all results.
        overwrite: begin anew, whatever the folder of the run holds.
        threads: it computes with.
        measured: keep the targets of the test rows too, for a set that is no table.
    """
    from gtx.dataset import sha256

    run, dataset = loaded.run, loaded.dataset
    if overwrite:
        shutil.rmtree(loaded.folder, ignore_errors=True)
    resumed = loaded.folder.exists()  # then the seconds are those of the last part alone
    loaded.folder.mkdir(parents=True, exist_ok=True)
    wall, processor = time.perf_counter(), _processor_seconds()
    answer = fit_predict(loaded)
    wall, processor = time.perf_counter() - wall, _processor_seconds() - processor
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
        **scores,
        "parameters": answer.parameters,
        "settings": dict(answer.settings),
        "seconds": round(wall, 1),
        "cpu_seconds": round(processor, 1),
        "resumed": resumed,
        **answer.figures,
        "sha256": {"data": sha256(loaded.data.data), "split": split_digest(dataset)},
        **circumstances(command, threads, answer.versions),
    }
    test = dataset.split["test"]
    y = dataset.y[test] if measured else None
    archive.put(results, result, KeptPredictions(dataset.rows[test], tuple(loaded.names), answer.prediction[test], y))
    return result


def split_digest(dataset: Dataset) -> str:
    """SHA-256 of lines `<row of the table, from 0> <part>`, in the table's order."""
    parts = {int(dataset.rows[i]): part for part, index in dataset.split.items() for i in index}
    return hashlib.sha256("".join(f"{row} {parts[row]}\n" for row in sorted(parts)).encode()).hexdigest()


def circumstances(command: str, threads: int = 1, versions: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Machine, versions (some beyond gtx's own), commit, date and command of a run."""
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


def _processor_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)
