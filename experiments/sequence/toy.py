"""A task on strings: train a sequence-to-sequence Transformer, write unseen answers greedily, count the exact ones."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from experiments.sequence.running import Setting, publish, train_or_resume
from gtx.models import MoleculeToSequence, SequenceEncoder
from gtx.sequence import CHARACTERS, Examples, TokenVocabulary, greedy
from gtx.tasks import exact

SETTING = Setting(
    {"channels": 64, "layers": 2, "heads": 4, "dropout": 0.0, "attention_dropout": 0.0, "activation": "gelu"},
    {"lr": 3e-3, "batch_molecules": 64},
)
"""Of encoder and decoder alike."""


@dataclass(frozen=True)
class StringPairs:
    """What is read and what is to be written, text by text; no text that is read comes twice.

    Attributes:
        sources, targets: as many of each.
        held_out: how many of the last are for validation, and as many before them for the test.
    """

    sources: Sequence[str]
    targets: Sequence[str]
    held_out: int


def train_and_write(task: StringPairs, setting: Setting, runs: Path) -> dict[str, Any]:
    """Train, write the test rows' answers, score them.

    Args:
        task: what is learned.
        setting: how.
        runs: folder of the task's runs.
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
    torch.manual_seed(setting.training["seed"])
    model = MoleculeToSequence(SequenceEncoder(len(vocabulary), **setting.network), len(vocabulary), **setting.network)
    done = train_or_resume(model, train, val, setting, runs)
    longest = int(write.sizes.max())
    written = [vocabulary.decode(one.tokens) for one in greedy(model, test.source, longest)]
    truth = [task.targets[i] for i in cuts["test"].tolist()]
    wrong = [(task.sources[i], w, t) for i, w, t in zip(cuts["test"].tolist(), written, truth, strict=True) if w != t]
    return {
        "rows": {part: len(rows) for part, rows in cuts.items()},
        "test_exact": exact(written, truth),
        "test_wrong": [dict(zip(("read", "written", "true"), one, strict=True)) for one in wrong[:20]],
        **done,
    }


def solve(name: str, variants: dict[str, StringPairs], read: argparse.Namespace) -> None:
    """Every variant of a task trained, scored, written down and drawn.

    Args:
        name: of the task, and of its files.
        variants: by their titles.
        read: the options.
    """
    setting, runs = SETTING.given(read), {}
    for title, task in variants.items():
        runs[title] = train_and_write(task, setting, read.runs / name)
        print(f"{name}, {title}: {runs[title]['test_exact']:.1%} of unseen rows exact, {runs[title]['seconds']:.0f} s")
    publish(name, name, runs, read)
