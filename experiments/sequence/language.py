"""A language model of SMILES: the decoder alone, which reads nothing and writes molecules as those of ZINC.

    python -m experiments.sequence.language

trains on the 10,000 training molecules of ZINC-12k, canonical SMILES with stereochemistry, and draws 1,000 strings with
a seed, at temperature 1. Counted are those that are molecules (validity), the distinct among these (uniqueness) and
those among the distinct that it was not trained on (novelty); the invalid ones are listed. Draws its
learning curves to `experiments/results/sequence/language.svg`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch

from experiments.sequence.judging import canonical
from experiments.sequence.running import Setting, options, publish, train_or_resume
from experiments.sequence.smiles import spelled
from gtx.models import MoleculeToSequence
from gtx.sequence import Examples, TokenVocabulary, sample

SETTING = Setting(
    {"channels": 128, "layers": 4, "heads": 8, "dropout": 0.1, "attention_dropout": 0.0, "activation": "gelu"},
    {"lr": 2e-3, "batch_molecules": 64, "batch_pairs": 250_000},
)
SAMPLES, LIMIT = 1000, 120


def train_and_sample(parts: dict[str, list[str]], setting: Setting, runs: Path, count: int = SAMPLES) -> dict[str, Any]:
    """Train, draw samples, count.

    Args:
        parts: SMILES of "train" and "val".
        setting: how to train; its seed is that of the samples, too.
        runs: folder of the task's runs.
        count: samples.
    """
    vocabulary = TokenVocabulary.of(parts["train"])
    train, val = (Examples.of(None, vocabulary.encode_all(parts[name]).sequences) for name in ("train", "val"))
    seed = setting.training["seed"]
    torch.manual_seed(seed)
    model = MoleculeToSequence(None, len(vocabulary), **setting.network)
    done = train_or_resume(model, train, val, setting, runs)
    drawn = [vocabulary.decode(one.tokens) for one in sample(model, None, LIMIT, count=count, seed=seed)]
    return {"rows": {"train": len(train), "val": len(val)}, **counted(drawn, parts["train"]), **done}


def counted(drawn: Sequence[str], known: Iterable[str]) -> dict[str, Any]:
    """How many samples are molecules, how many of these distinct, how many of those new.

    Args:
        drawn: samples.
        known: canonical SMILES of the training molecules.
    """
    read = [canonical(text) for text in drawn]
    valid = [smiles for smiles in read if smiles is not None]
    distinct, known = list(dict.fromkeys(valid)), set(known)
    new = [smiles for smiles in distinct if smiles not in known]
    return {
        "samples": len(drawn),
        "valid": len(valid) / len(drawn),
        "unique": len(distinct) / len(valid) if valid else None,
        "novel": len(new) / len(distinct) if distinct else None,
        "new_examples": new[:20],
        "invalid_examples": [text for text, smiles in zip(drawn, read, strict=True) if smiles is None][:20],
    }


def main(read: argparse.Namespace) -> None:
    parts = spelled("zinc12k")
    parts["train"] = parts["train"][: read.rows]
    found = train_and_sample(parts, SETTING.given(read), read.runs / "language")
    print(f"language: {found['valid']:.1%} valid, {found['unique']:.1%} of them unique, {found['novel']:.1%} novel")
    publish("language", "language", {"ZINC": found}, read)


if __name__ == "__main__":
    main(options(__doc__, epochs=20).parse_args())
