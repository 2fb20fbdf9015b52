"""Perplexity and accuracies, by hand and by adding up."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from gtx.models import MoleculeToSequence
from gtx.sequence import SequenceBatch, greedy_search
from gtx.sequence.task import count, exact_match_share, metrics

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


def test_of_nothing_is_none() -> None:
    empty = count(torch.zeros(0, 5), torch.zeros(0, dtype=torch.long), torch.zeros(1, dtype=torch.long))
    assert set(metrics(empty).values()) == {None} and exact_match_share([], []) is None


def test_sequence_accuracy_is_that_of_greedy_writing() -> None:
    torch.manual_seed(0)
    model = MoleculeToSequence(None, 6, channels=8, layers=1, heads=2).double().eval()
    ended = False
    while not ended:  # draw weights until something is written to its end
        for p in model.parameters():
            nn.init.normal_(p)
        ((tokens, _, ended, _),) = greedy_search(model, None, 5)
        ended = ended and len(tokens) > 0
    targets = SequenceBatch.of([tokens, [*tokens[:-1], 7 - tokens[-1]]])
    read, labels = targets.teacher_forced()
    assert metrics(count(model(None, read), labels, read.ptr))["sequence_accuracy"] == 0.5
    assert exact_match_share([tokens] * 2, targets.lists()) == 0.5


def test_as_many_as_there_are() -> None:
    with pytest.raises(ValueError, match=r"expected 2 sequences.*got 1"):
        exact_match_share(["a"], ["a", "b"])
