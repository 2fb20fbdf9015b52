"""What all tasks share: a training that goes on where it was stopped, options, and what is written of the runs."""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from experiments import archive
from experiments.archive import RESULTS, ROOT
from experiments.record import circumstances
from experiments.sequence.curves import draw
from gtx.sequence import Examples
from gtx.tasks import ToSequence
from gtx.training import TrainSettings, fit

RUNS = ROOT / "runs" / "sequence"


@dataclass(frozen=True)
class Setting:
    """The network and its training.

    Attributes:
        network: what the maker of the model takes, by name.
        training: as `TrainSettings` takes it.
        smoothing: of the loss.
    """

    network: dict[str, Any]
    training: dict[str, Any] = field(default_factory=dict)
    smoothing: float = 0.0

    def given(self, read: argparse.Namespace) -> Setting:
        """With the options of the command line."""
        said = {"epochs": read.epochs, "seed": read.seed, "threads": read.threads, "accelerator": "cpu"}
        return Setting(self.network, self.training | said, self.smoothing)


def options(about: str, epochs: int | None) -> argparse.ArgumentParser:
    """The options all tasks have; `epochs` by default, None where it depends."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=epochs)
    parser.add_argument("--rows", type=int, default=None, help="training rows; default as the task has it")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the results")
    parser.add_argument("--runs", type=Path, default=RUNS, help="folder of the runs, for going on")
    return parser


def train_or_resume(model: nn.Module, train: Examples, val: Examples, setting: Setting, runs: Path) -> dict[str, Any]:
    """Train, or go on; the same model, examples and setting find the same folder again.

    Args:
        model: to begin with; afterwards it holds the weights of its best epoch.
        train, val: examples.
        setting: how to train.
        runs: folder of all runs of the task.

    Returns:
        What is written of it. Seconds are those of the epochs, whether they were run in one go or not.
    """
    settings = TrainSettings(**setting.training)
    folder = runs / _digest(model, train, val, settings, setting.smoothing)
    model.train()
    task = ToSequence("sequence", smoothing=setting.smoothing)
    (done,) = fit(model, task, train, val, settings, folder)
    history = done.history
    return {
        "best_epoch": done.best_epoch,
        "history": [{k: v for k, v in row.items() if not k.endswith("seconds")} for row in history],
        "seconds": round(sum(row["seconds"] for row in history), 1),
        "cpu_seconds": round(sum(row["cpu_seconds"] for row in history), 1),
        "parameters": sum(p.numel() for p in model.parameters()),
        "settings": {"network": setting.network, "training": setting.training, "smoothing": setting.smoothing},
    }


def kept(file: Path, make: Callable[[], Iterable[str]]) -> list[str]:
    """The lines of a file; where it is not there yet they are made, and kept."""
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_suffix(".partial")
        partial.write_text("".join(f"{line}\n" for line in make()))
        partial.replace(file)
    return file.read_text().splitlines()


def publish(name: str, words: str, runs: Mapping[str, Mapping[str, Any]], read: argparse.Namespace) -> None:
    """Write the runs down, and draw their learning curves, `sequence/<name>.svg`.

    Args:
        name: of the task.
        words: that follow `python -m experiments.sequence.` and tell the task.
        runs: by their titles, as `train_or_resume` gives them and with scores.
        read: the options.
    """
    given = f"--epochs {read.epochs} --seed {read.seed} --threads {read.threads}"
    more = f" --rows {read.rows}" if read.rows else ""
    shared = {
        "recipe": "sequence",
        "folder": name,
        "task": "sequence",
        "seed": read.seed,
        **circumstances(f"python -m experiments.sequence.{words} {given}{more}", read.threads),
    }
    for title, run in runs.items():
        archive.put(read.out, {**shared, "name": title, **run})
    draw({title: run["history"] for title, run in runs.items()}, read.out / "sequence" / f"{name}.svg")


def _digest(model: nn.Module, train: Examples, val: Examples, settings: TrainSettings, smoothing: float) -> str:
    """Of all that decides a run."""
    found = hashlib.sha256(f"{settings.decisive()} {smoothing} {model}".encode())
    for part in (train.source, train.targets, val.source, val.targets):
        given = () if part is None else (getattr(part, each.name) for each in fields(part))
        for tensor in (each for each in given if isinstance(each, Tensor)):
            found.update(tensor.contiguous().numpy())
    for weight in model.state_dict().values():
        found.update(weight.numpy())
    return found.hexdigest()[:12]
