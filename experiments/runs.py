"""A run: one model on one split of a public set, its molecules, and what is written of it."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments import tables
from experiments.tables import ROOT, Predictions
from gtx.data.public_datasets import load_public_dataset
from gtx.molecules import Featuriser
from gtx.prediction.model_file import package_versions
from gtx.tasks import Regression
from gtx.training_data import Dataset, DataSettings, hash_file, load_training_table

Fit = Callable[["Run"], tuple[np.ndarray, dict[str, Any]]]
"""Training of a run's model. It returns float64 predictions `[m, T]` of all molecules in the targets' own units (of
classes, the probability of 1), and what the line of the run says of the training: `parameters`, `settings`, ..."""


def read_set(name: str) -> pd.DataFrame:
    """Read the table of a named set; it is downloaded if it is not there."""
    path = load_public_dataset(name).path
    return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)


@dataclass(frozen=True)
class PublicSet:
    """A public set with its splits.

    Attributes:
        name: its name in `gtx.data.public_datasets`.
        metric: score that ranks the models; if it is `mae`, they are trained on the absolute error.
        splits: columns of the table that hold a split each.
        folder: its name in the results.
        featuriser: arguments of `gtx.molecules.Featuriser` that the rules of the benchmark demand.
        is_table: whether the molecules are a table, which has the measured values too.
    """

    name: str
    metric: str
    splits: tuple[str, ...]
    folder: str
    featuriser: Mapping[str, Any] = field(default_factory=dict)
    is_table: bool = True

    def data(self, split: int) -> DataSettings:
        """Describe the table with one of its splits; it is downloaded if it is not there."""
        named = load_public_dataset(self.name)
        return DataSettings(
            str(named.path),
            named.targets,
            task=Regression(named.targets, loss="mae") if self.metric == "mae" else None,
            smiles_column=named.smiles_column,
            split_column=self.splits[split],
            featuriser=Featuriser(**self.featuriser),
            units=dict(named.units),
        )

    def load(self, data: DataSettings, split: int, cache: Path) -> Dataset:
        """Read the molecules of one of its splits."""
        return load_training_table(data, cache=cache)


@dataclass
class Run:
    """A model, by its name, on one split (by number) of one set, from one seed.

    `data` and `dataset` are read at first use and may be replaced.

    Attributes:
        runs: folder of all runs.
        command: the line that makes the run again.
    """

    public_set: PublicSet
    model: str
    split: int = 0
    seed: int = 0
    runs: Path = ROOT / "runs"
    command: str = ""

    @property
    def name(self) -> str:
        """Name of the run; a set with several splits numbers these, and seeds but the first."""
        if len(self.public_set.splits) == 1:
            return f"{self.model}-{self.seed}"
        return f"{self.model}-{self.split}" + (f"-seed{self.seed}" if self.seed else "")

    @property
    def key(self) -> tuple[str, str]:
        """Folder of its set, and its name."""
        return self.public_set.folder, self.name

    @property
    def folder(self) -> Path:
        """Folder where the run may write files."""
        return self.runs.joinpath(*self.key)

    @property
    def targets(self) -> list[str]:
        """Names of the targets."""
        return list(self.data.target_columns)

    @cached_property
    def data(self) -> DataSettings:
        """Settings of the molecules' table."""
        return self.public_set.data(self.split)

    @cached_property
    def dataset(self) -> Dataset:
        """The m molecules, their targets `[m, T]` and their split; the same for every model."""
        return self.public_set.load(self.data, self.split, self.runs / "cache")


def execute(run: Run, fit: Fit, results: Path, overwrite: bool = False, threads: int = 1) -> None:
    """Make a run in this process, and write its line and its predictions of test rows."""
    dataset = run.dataset
    if overwrite:
        shutil.rmtree(run.folder, ignore_errors=True)
    resumed = run.folder.exists()  # then the seconds are those of the last part alone
    run.folder.mkdir(parents=True, exist_ok=True)
    wall, processor = time.perf_counter(), sum(os.times()[:4])
    prediction, facts = fit(run)
    wall, processor = time.perf_counter() - wall, sum(os.times()[:4]) - processor
    scores = {
        part: dataset.task.objective.evaluate(dataset.y[rows], prediction[rows]) for part, rows in dataset.split.items()
    }
    if len(run.targets) == 1:  # the scores of the one target are those of all
        for of_part in scores.values():
            of_part.pop("per_target", None)
    line = {
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
        "parameters": None,
        "settings": {},
        "seconds": round(wall, 1),
        "cpu_seconds": round(processor, 1),
        "resumed": resumed,
        **facts,
        "sha256": {"data": hash_file(run.data.data), "split": split_digest(dataset)},
        **circumstances(run.command, threads, facts.get("versions", {})),
    }
    test = dataset.split["test"]
    measured = None if run.public_set.is_table else dataset.y[test]
    tables.put(results, line, Predictions(dataset.rows[test], tuple(run.targets), prediction[test], measured))


def split_digest(dataset: Dataset) -> str:
    """Compute the SHA-256 of lines `<row of the table, from 0> <part>`, in the table's order."""
    parts = {int(dataset.rows[i]): part for part, index in dataset.split.items() for i in index}
    return hashlib.sha256("".join(f"{row} {parts[row]}\n" for row in sorted(parts)).encode()).hexdigest()


def circumstances(command: str, threads: int = 1, versions: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Describe machine, versions (some beyond gtx's own), commit, date and command of a run."""
    return {
        "machine": machine(threads),
        "versions": package_versions() | dict(versions or {}),
        "commit": commit(),
        "date": date.today().isoformat(),
        "command": command,
    }


def machine(threads: int = 1) -> dict[str, Any]:
    """Describe processor, cores and system, and the threads a run computed with."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "processor": names[0] if names else platform.processor() or platform.machine(),
        "cores": cores,
        "system": f"{platform.system()} {platform.machine()}",
        "threads": threads,
    }


def commit() -> str | None:
    """Return the commit, with a plus if files had changed since; None outside a repository."""
    words = ["git", "-C", str(ROOT), "describe", "--always", "--abbrev=10", "--dirty=+", "--exclude=*"]
    try:
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
