"""A task on molecules: read a graph, write a SMILES greedily, see which molecule it is. Nothing invalid is hidden."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from experiments.sequence.judging import judge, tally
from experiments.sequence.running import Setting, train_or_resume
from gtx.data import MoleculeStore, featurise
from gtx.errors import InputError
from gtx.models.sequence import MoleculeToSequence, molecule_to_sequence
from gtx.molecules import Featuriser
from gtx.sequence import Examples, TokenVocabulary, greedy
from gtx.tasks import exact

FEATURISER = Featuriser(descriptors=False)
SETTING = Setting(
    {
        "channels": 96,
        "layers": 2,
        "encoder": {"layers": 4},
        "dropout": 0.0,
        "attention_dropout": 0.0,
        "activation": "gelu",
    },
    {"lr": 1.5e-3, "batch_molecules": 64, "batch_pairs": 250_000},
)
"""Of the tasks that read and write molecules."""
AT_ONCE = 250  # molecules written together

Pair = tuple[str, str]
"""A SMILES that is read, as a graph, and one that is to be written."""


@dataclass(frozen=True)
class MoleculePairs:
    """What is read and what is to be written.

    Attributes:
        train: pairs to learn from.
        val, test: pairs of other molecules, what is to be written in canonical form.
        kinds: of the test rows, one each; they are also scored kind by kind.
        first: pairs of small molecules, which are learned from once before all others: how to walk along a graph is
            soon learned on them, and need not be learned on large ones.
    """

    train: Sequence[Pair]
    val: Sequence[Pair]
    test: Sequence[Pair]
    kinds: Sequence[str]
    first: Sequence[Pair] = ()


def train_and_write(task: MoleculePairs, setting: Setting, runs: Path) -> dict[str, Any]:
    """Train, write the test rows' answers, score them.

    Args:
        task: what is learned.
        setting: how.
        runs: folder of the task's runs, and of what was featurised.
    """
    vocabulary = TokenVocabulary.of(write for _, write in (*task.first, *task.train))
    train, val = (examples(pairs, vocabulary, runs) for pairs in (task.train, task.val))
    torch.manual_seed(setting.training["seed"])
    sizes = {"atom_sizes": FEATURISER.atom_sizes, "bond_sizes": FEATURISER.bond_sizes}
    model = molecule_to_sequence(len(vocabulary), **sizes, **setting.network)
    before = None
    if task.first:
        once = replace(setting, training=setting.training | {"epochs": 1})
        before = train_or_resume(model, examples(task.first, vocabulary, runs), val, once, runs)
    done = train_or_resume(model, train, val, setting, runs)
    began = time.process_time()
    written = write(model, vocabulary, [read for read, _ in task.test], 2 * int(train.targets.sizes.max()))
    verdicts = [judge(one, true) for one, (_, true) in zip(written, task.test, strict=True)]
    rows = zip(written, task.test, verdicts, strict=True)
    wrong = [{"read": r, "written": w, "true": t, "verdict": v} for w, (r, t), v in rows if v != "same"]
    by_kind = {
        kind: tally([v for v, own in zip(verdicts, task.kinds, strict=True) if own == kind])
        for kind in sorted(set(task.kinds))
    }
    return {
        "rows": {"first": len(task.first), "train": len(task.train), "val": len(val), "test": len(task.test)},
        "test": tally(verdicts) | {"exact": exact(written, [true for _, true in task.test])},
        "test_by_kind": by_kind,
        "test_wrong": wrong[:30],
        "writing_cpu_seconds": round(time.process_time() - began, 1),
        **(done if before is None else after(before, done)),
    }


def after(before: dict[str, Any], done: dict[str, Any]) -> dict[str, Any]:
    """What is written of a training that came after another one: the seconds are those of both."""
    spent = {name: round(before[name] + done[name], 1) for name in ("seconds", "cpu_seconds")}
    return done | spent | {"first": {"history": before["history"], "cpu_seconds": before["cpu_seconds"]}}


def examples(pairs: Sequence[Pair], vocabulary: TokenVocabulary, folder: Path) -> Examples:
    """Pairs as a model learns from them; those with a token that is not in the vocabulary are left out.

    Raises:
        InputError: a molecule cannot be read.
    """
    encoded = vocabulary.encode_all([write for _, write in pairs])
    return Examples.of(read_graphs([pairs[i][0] for i in encoded.rows], folder), encoded.sequences)


def read_graphs(texts: Sequence[str], folder: Path | None = None) -> MoleculeStore:
    """SMILES to a store.

    Raises:
        InputError: a molecule cannot be read.
    """
    found = featurise(FEATURISER, texts, workers=0, cache=folder, smiles=False)
    for text, error in zip(texts, found.errors, strict=True):
        if error is not None:
            raise InputError(f"{text}: {error}")
    return found.store


def write(model: MoleculeToSequence, vocabulary: TokenVocabulary, texts: Sequence[str], limit: int) -> list[str]:
    """What a model writes of some molecules, token by token the likeliest.

    Args:
        model: in evaluation mode.
        vocabulary: its tokens.
        texts: SMILES of the molecules.
        limit: the most tokens of an answer; longer ones are cut off.
    """
    store, written = read_graphs(texts), []
    for some in torch.arange(len(texts)).split(AT_ONCE):
        written += [vocabulary.decode(one.tokens) for one in greedy(model, store.batch(some), limit)]
    return written
