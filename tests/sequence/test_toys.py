"""From text to text: copying, adding two numbers, and a decoder alone as a language model of SMILES."""

from __future__ import annotations

import math
import random
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
import torch
from torch import nn

from gtx.data.public_datasets import load_public_dataset
from gtx.sequence.decoding import greedy_search
from gtx.sequence.model import MoleculeToSequenceModel, TokenSequenceEncoder
from gtx.sequence.sequences import CHARACTER_TOKENIZER, SequenceDataset, TokenVocabulary
from gtx.sequence.task import SequenceGenerationTask
from gtx.training import TrainSettings, fit

pytestmark = pytest.mark.slow

SMALL = {"channels": 32, "layers": 1, "heads": 4, "dropout": 0.0, "attention_dropout": 0.0, "activation": "gelu"}
HELD_OUT = 400


def whole_sequences_right(sources: list[str], targets: list[str], epochs: int, folder: Path) -> float:
    """Share of held-out targets that a small Transformer writes without a fault."""
    vocabulary = TokenVocabulary.of([*sources, *targets], CHARACTER_TOKENIZER)
    examples = SequenceDataset.of(*(vocabulary.encode_all(texts).sequences for texts in (sources, targets)))
    n = len(sources)
    cuts = (0, n - 2 * HELD_OUT), (n - 2 * HELD_OUT, n - HELD_OUT), (n - HELD_OUT, n)
    train, val, test = (examples.subset(torch.arange(*cut)) for cut in cuts)
    torch.manual_seed(0)
    model = MoleculeToSequenceModel(TokenSequenceEncoder(len(vocabulary), **SMALL), len(vocabulary), **SMALL)
    settings = TrainSettings(epochs=epochs, lr=5e-3, batch_molecules=32, accelerator="cpu", threads=1, progress=False)
    fit(model, SequenceGenerationTask("text", smoothing=0.0), train, val, settings, folder)
    written = [vocabulary.decode(one.tokens) for one in greedy_search(model.eval(), test.source, 25)]
    return sum(a == b for a, b in zip(written, targets[n - HELD_OUT :], strict=True)) / HELD_OUT


def test_copying(tmp_path: Path) -> None:
    draw = random.Random(0)
    texts = list(dict.fromkeys("".join(draw.choices("abcdefgh", k=draw.randint(1, 10))) for _ in range(4500)))
    assert whole_sequences_right(texts, texts, 8, tmp_path) >= 0.99


@pytest.mark.parametrize("order", [1, -1], ids=["as written", "reversed"])
def test_sums_of_two_numbers_of_two_digits(order: int, tmp_path: Path) -> None:
    pairs = [(a, b) for a in range(10, 100) for b in range(10, 100)]
    random.Random(0).shuffle(pairs)
    sources = [f"{a}+{b}"[::order] for a, b in pairs]
    assert whole_sequences_right(sources, [str(a + b) for a, b in pairs], 7, tmp_path) >= 0.95


def test_a_language_model_knows_more_of_smiles_than_how_often_a_token_is_there() -> None:
    texts = pd.read_parquet(load_public_dataset("xtb9").path).smiles[:1300].tolist()
    vocabulary = TokenVocabulary.of(texts)
    sequences = vocabulary.encode_all(texts).sequences
    train, test = sequences.batch(torch.arange(1000)), sequences.batch(torch.arange(1000, 1300))
    torch.manual_seed(0)
    model = MoleculeToSequenceModel(None, len(vocabulary), **SMALL)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(60):
        read, labels = train.batch(torch.randint(len(train), (64,))).teacher_forced()
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(None, read), labels).backward()
        optimiser.step()
    counts = Counter(train.teacher_forced()[1].tolist())
    read, labels = test.teacher_forced()
    alone = -sum(math.log(max(counts[label], 1) / counts.total()) for label in labels.tolist()) / len(labels)
    with torch.inference_mode():
        found = nn.functional.cross_entropy(model.eval()(None, read), labels).item()
    assert found < 0.75 * alone, (found, alone)
