"""Training of sequences."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from gtx.base.errors import InputError
from gtx.data import featurise
from gtx.models import standard
from gtx.sequence.model import MoleculeToSequenceModel, TokenSequenceEncoder, greedy_search
from gtx.sequence.sequences import SequenceBatch, SequenceDataset, TokenVocabulary
from gtx.sequence.task import SequenceGenerationTask, count, metrics
from gtx.tasks.metrics import smoothed_cross_entropy
from gtx.training import TrainingModule, TrainSettings, fit
from tests.training.task import FEATURISER, SMILES

# --- Teacher forcing learns, goes on where it was stopped, and weighs every token alike.


SETTINGS = TrainSettings(epochs=8, lr=1e-2, batch_molecules=16, threads=1, progress=False, accelerator="cpu", ema=0.9)
SMALL = {"channels": 16, "layers": 1, "heads": 2, "dropout": 0.0, "attention_dropout": 0.0}


def last_first(start: int, stop: int) -> SequenceDataset:
    """Read four tokens, write the last and the first."""
    tokens = torch.randint(2, 6, (400, 4), generator=torch.Generator().manual_seed(0)).tolist()[start:stop]
    return SequenceDataset.of(SequenceBatch.of(tokens), SequenceBatch.of([[one[-1], one[0]] for one in tokens]))


TASK = SequenceGenerationTask("text")
TRAIN, VAL = last_first(0, 300), last_first(300, 400)


def model() -> MoleculeToSequenceModel:
    torch.manual_seed(0)
    return MoleculeToSequenceModel(TokenSequenceEncoder(6, **SMALL), 6, **SMALL)


@pytest.mark.slow
def test_learns_and_says_so(tmp_path: Path) -> None:
    made = model()
    (done,) = fit(made, TASK, TRAIN, VAL, SETTINGS, tmp_path)
    last = done.history[-1]
    assert done.model is made
    written = [one.tokens for one in greedy_search(made, VAL.source, 3)]
    right = sum(a == b for a, b in zip(written, VAL.targets.items.view(-1, 2).tolist(), strict=True)) / len(VAL)
    assert right > 0.9 and not made.training
    assert last["val_sequence_accuracy"] == pytest.approx(right, abs=0.05)
    assert last["val_loss"] < done.history[0]["val_loss"] and last["val_perplexity"] < 1.5
    with (tmp_path / "members" / "0" / "log.csv").open(newline="") as file:
        assert [row["epoch"] for row in csv.DictReader(file)] == [str(i) for i in range(1, 9)]


def test_every_token_has_the_same_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    targets = SequenceBatch.of([[2] * (1 + i % 7) for i in range(60)])
    examples, losses, plain = SequenceDataset.of(targets, targets), [], []

    def step(self: TrainingModule, batch: SequenceDataset, index: int) -> torch.Tensor:
        losses.append(original(self, batch, index))
        logits, labels, _ = self(batch)
        plain.append((smoothed_cross_entropy(logits, labels).detach(), len(labels)))
        return losses[-1]

    original = TrainingModule.training_step
    monkeypatch.setattr(TrainingModule, "training_step", step)
    torch.manual_seed(0)
    settings = TrainSettings(epochs=1, batch_molecules=17, threads=1, progress=False, accelerator="cpu")
    made = MoleculeToSequenceModel(TokenSequenceEncoder(4, **SMALL), 4, **SMALL)
    fit(made, TASK, examples, examples.subset(torch.arange(0)), settings, tmp_path)
    total = sum(n for _, n in plain)
    assert total == len(targets.items) + 60 and len(losses) == 4
    expected = sum(loss * n for loss, n in plain) / total
    torch.testing.assert_close(sum(loss.detach() for loss in losses) / 4, expected)


def test_molecules_teach_too_and_codes_are_observed(tmp_path: Path) -> None:
    store, vocabulary = featurise(FEATURISER, SMILES, workers=0).store, TokenVocabulary.of(SMILES)
    examples = SequenceDataset.of(store, vocabulary.encode_all(SMILES).sequences)
    sizes = {"atom_sizes": FEATURISER.atom_sizes, "bond_sizes": FEATURISER.bond_sizes}
    encoder = standard(1, **sizes, channels=16, layers=1, heads=2)
    made = MoleculeToSequenceModel(encoder, len(vocabulary), **SMALL)
    settings = replace(SETTINGS, epochs=2, batch_pairs=2000)
    (done,) = fit(made, TASK, examples, examples.subset(torch.arange(0)), settings, tmp_path)
    assert done.history[1]["train_loss"] < done.history[0]["train_loss"]
    assert not encoder.embedding.vocabularies.atoms.seen.all()


def test_without_examples_there_is_nothing_to_learn(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no training molecules"):
        fit(model(), TASK, last_first(0, 0), VAL, SETTINGS, tmp_path)
    with pytest.raises(ValueError, match="got 1 sources and 2 targets"):
        SequenceDataset.of(SequenceBatch.of([[2]]), SequenceBatch.of([[2], [3]]))


# --- Perplexity and accuracies, by hand and by adding up.


PTR = torch.tensor([0, 3, 4, 8])


def test_by_hand() -> None:
    p = torch.tensor([[0.7, 0.2, 0.1], [0.3, 0.6, 0.1], [0.1, 0.1, 0.8], [0.5, 0.3, 0.2]] * 2, dtype=torch.float64)
    labels = torch.tensor([0, 1, 2, 1, 0, 1, 2, 0])
    scores = metrics(count(p.log() + 3.0, labels, PTR))
    product = 0.7 * 0.6 * 0.8 * 0.3 * 0.7 * 0.6 * 0.8 * 0.5
    assert scores["perplexity"] == pytest.approx(product ** (-1 / 8))
    assert scores["loss"] == pytest.approx(F.cross_entropy(p.log(), labels).item())
    assert scores["token_accuracy"] == 7 / 8 and scores["sequence_accuracy"] == pytest.approx(2 / 3)


def test_a_sequence_counts_the_same_in_any_batch() -> None:
    logits, labels = torch.randn(8, 5), torch.randint(5, (8,))
    parts = [
        count(logits[a:b], labels[a:b], ptr)
        for a, b, ptr in ((0, 4, torch.tensor([0, 3, 4])), (4, 8, torch.tensor([0, 4])))
    ]
    torch.testing.assert_close(torch.cat(parts), count(logits, labels, PTR))
