"""A task on strings: train a sequence-to-sequence Transformer, write unseen answers greedily, count the exact ones."""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import torch

from experiments.record import commit, machine
from gtx.models import MoleculeToSequence, SequenceEncoder
from gtx.sequence import CHARACTERS, Examples, TokenVocabulary, greedy
from gtx.training import TrainSettings, exact, fit_sequences

RESULTS = Path(__file__).parents[1] / "results" / "sequence"


@dataclass(frozen=True)
class Task:
    """What is read and what is to be written, text by text; no text that is read comes twice.

    Attributes:
        sources, targets: as many of each.
        held_out: how many of the last are for validation, and as many before them for the test.
    """

    sources: Sequence[str]
    targets: Sequence[str]
    held_out: int


@dataclass(frozen=True)
class Setting:
    """The network and its training.

    Attributes:
        network: of encoder and decoder, as `TokenTransformer` takes it.
        training: as `TrainSettings` takes it.
        smoothing: of the loss.
    """

    network: dict[str, Any] = field(
        default_factory=lambda: {
            "channels": 64,
            "layers": 2,
            "heads": 4,
            "dropout": 0.0,
            "attention_dropout": 0.0,
            "activation": "gelu",
        }
    )
    training: dict[str, Any] = field(default_factory=lambda: {"epochs": 10, "lr": 3e-3, "batch_molecules": 64})
    smoothing: float = 0.0


def run(task: Task, setting: Setting, out: Path) -> dict[str, Any]:
    """Train, write the test rows' answers, score them.

    Args:
        task: what is learned.
        setting: how.
        out: folder of the run.
    """
    vocabulary = TokenVocabulary.of([*task.sources, *task.targets], CHARACTERS)
    read, write = (vocabulary.encode_all(texts).sequences for texts in (task.sources, task.targets))
    examples, n = Examples.of(read, write), len(task.sources)
    cuts = {
        "train": torch.arange(n - 2 * task.held_out),
        "test": torch.arange(n - 2 * task.held_out, n - task.held_out),
        "val": torch.arange(n - task.held_out, n),
    }
    train, test, val = (examples.subset(rows) for rows in cuts.values())
    settings = TrainSettings(**setting.training)
    torch.manual_seed(settings.seed)
    model = MoleculeToSequence(SequenceEncoder(len(vocabulary), **setting.network), len(vocabulary), **setting.network)
    began, cpu = time.perf_counter(), time.process_time()
    done = fit_sequences(model, train, val, settings, out, smoothing=setting.smoothing)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    longest = int(write.sizes.max())
    written = [vocabulary.decode(one.tokens) for one in greedy(model, test.source, longest)]
    truth = [task.targets[i] for i in cuts["test"].tolist()]
    wrong = [(task.sources[i], w, t) for i, w, t in zip(cuts["test"].tolist(), written, truth, strict=True) if w != t]
    return {
        "rows": {part: len(rows) for part, rows in cuts.items()},
        "test_exact": exact(written, truth),
        "test_wrong": [dict(zip(("read", "written", "true"), one, strict=True)) for one in wrong[:20]],
        "best_epoch": done["best_epoch"],
        "history": [{k: v for k, v in row.items() if k != "seconds"} for row in done["history"]],
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu, 1),
        "parameters": sum(p.numel() for p in model.parameters()),
        "setting": {"network": setting.network, "training": setting.training, "smoothing": setting.smoothing},
    }


def options(about: str, epochs: int) -> argparse.Namespace:
    """The options all tasks have; `epochs` by default."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=epochs)
    parser.add_argument("--rows", type=int, default=None, help="training rows; default as the task has it")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the results")
    return parser.parse_args()


def solve(name: str, variants: dict[str, Task], read: argparse.Namespace) -> dict[str, Any]:
    """Every variant of a task trained, scored, written down and drawn.

    Args:
        name: of the task, and of its files.
        variants: by their titles.
        read: from `options`.
    """
    from experiments.sequence.curves import draw

    training = Setting().training | {"epochs": read.epochs, "seed": read.seed, "threads": read.threads}
    setting = Setting(training=training | {"progress": True, "accelerator": "cpu"})
    runs = {}
    for title, task in variants.items():
        with tempfile.TemporaryDirectory() as folder:
            runs[title] = run(task, setting, Path(folder))
        print(f"{name}, {title}: {runs[title]['test_exact']:.1%} of unseen rows exact, {runs[title]['seconds']:.0f} s")
    result = {
        "task": name,
        "runs": runs,
        "machine": machine() | {"threads": read.threads},
        "commit": commit(),
        "date": date.today().isoformat(),
        "command": f"python -m experiments.sequence.{name} --epochs {read.epochs} --seed {read.seed}"
        f" --threads {read.threads}" + (f" --rows {read.rows}" if read.rows else ""),
    }
    read.out.mkdir(parents=True, exist_ok=True)
    (read.out / f"{name}.json").write_text(json.dumps(result, indent=2, allow_nan=False) + "\n")
    draw({title: one["history"] for title, one in runs.items()}, read.out / f"{name}.svg")
    return result
