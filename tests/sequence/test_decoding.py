"""Greedy and beam search, of a model whose probabilities are written down."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from torch import Tensor

from gtx.sequence import (
    END_TOKEN,
    START_TOKEN,
    GeneratedSequence,
    beam_search,
    greedy_search,
)

V, LIMIT = 5, 4


class Table:
    """Logits of the next token by the source and the last two tokens."""

    device = torch.device("cpu")

    def __init__(self, sources: int = 3, seed: int = 0) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.logits = 2 * torch.randn(sources, V, V, V, generator=generator, dtype=torch.float64)
        self.steps = 0

    def begin(self, source: Tensor, limit: int) -> Table:
        self.source, self.rows, self.left = source, len(source), limit
        self.before = torch.full((self.rows,), START_TOKEN)
        self.last = self.before
        return self

    def step(self, tokens: Tensor) -> Tensor:
        assert len(tokens) == self.rows and self.left > 0
        self.steps, self.left = self.steps + 1, self.left - 1
        self.before, self.last = self.last, tokens
        return self.logits[self.source, self.before, self.last].clone()

    def select(self, rows: Tensor) -> None:
        self.source, self.before, self.last = self.source[rows], self.before[rows], self.last[rows]
        self.rows = len(rows)

    def log_probability(self, source: int, tokens: list[int], ended: bool) -> float:
        logits = self.logits[source].clone()
        logits[..., START_TOKEN] = -torch.inf
        log_p, path = logits.log_softmax(-1), [START_TOKEN, START_TOKEN, *tokens] + [END_TOKEN] * ended
        return float(sum(log_p[tuple(path[i : i + 3])] for i in range(len(path) - 2)))


EVERY = torch.arange(3)


def every_sequence() -> list[list[int]]:
    return [list(one) for n in range(LIMIT + 1) for one in product(range(2, V), repeat=n)]


def check(table: Table, source: int, one: GeneratedSequence) -> None:
    assert len(one.tokens) <= LIMIT and {START_TOKEN, END_TOKEN}.isdisjoint(one.tokens)
    assert one.ended or len(one.tokens) == LIMIT
    assert one.log_probability == pytest.approx(table.log_probability(source, one.tokens, one.ended))


@pytest.mark.parametrize("seed", range(4))
def test_greedy_takes_the_likeliest_at_every_step(seed: int) -> None:
    table = Table(seed=seed)
    for source, one in enumerate(greedy_search(table, EVERY, LIMIT)):
        check(table, source, one)
        logits = table.logits[source].clone()
        logits[..., START_TOKEN] = -torch.inf
        path = [START_TOKEN, START_TOKEN, *one.tokens] + [END_TOKEN] * one.ended
        assert all(int(logits[path[i], path[i + 1]].argmax()) == path[i + 2] for i in range(len(path) - 2))


def test_greedy_stops_when_all_have_ended() -> None:
    table = Table()
    table.logits[..., END_TOKEN] = 99.0
    assert [one.tokens for one in greedy_search(table, EVERY, 100)] == [[]] * 3 and table.steps == 1


@pytest.mark.parametrize("seed", range(4))
def test_a_beam_of_one_without_penalty_is_greedy(seed: int) -> None:
    table = Table(seed=seed)
    for (found,), one in zip(beam_search(table, EVERY, LIMIT, 1, 0.0), greedy_search(table, EVERY, LIMIT), strict=True):
        assert found.tokens == one.tokens and found.ended == one.ended
        assert found.log_probability == pytest.approx(one.log_probability)


@pytest.mark.parametrize("penalty", [0.0, 0.6, 2.0])
def test_a_beam_wide_enough_finds_the_best_of_all(penalty: float) -> None:
    table = Table()
    for source, found in enumerate(beam_search(table, EVERY, LIMIT, width=(V - 2) ** LIMIT, penalty=penalty)):
        p = {tuple(s): table.log_probability(source, s, True) for s in every_sequence()}
        score = {s: log_p / ((5 + len(s) + 1) / 6) ** penalty for s, log_p in p.items()}
        best = sorted(score, key=lambda s: -score[s])[:10]
        assert [tuple(one.tokens) for one in found[:10]] == best
        assert [one.score for one in found[:10]] == pytest.approx([score[s] for s in best])


def beam_by_hand(table: Table, source: int, limit: int, k: int, penalty: float) -> list[list[int]]:
    """One source, lists of lists, never stopping before the limit."""
    living, ended = [(0.0, [])], []
    for _ in range(limit + 1):
        more = [
            (table.log_probability(source, [*tokens, token], False), [*tokens, token])
            for _, tokens in living
            for token in range(1, V)
        ]
        best = sorted(more, key=lambda one: -one[0])[: 2 * k]
        ended += [(p / ((5 + len(y)) / 6) ** penalty, y[:-1]) for p, y in best[:k] if y[-1] == END_TOKEN]
        living = [one for one in best if one[1][-1] != END_TOKEN][:k]
    return [y for _, y in sorted(ended, key=lambda one: -one[0])[:k]]


@pytest.mark.parametrize("penalty", [0.0, 0.6, 2.0])
def test_stopping_early_changes_nothing(penalty: float) -> None:
    table = Table()
    table.logits[..., END_TOKEN] += 2.0
    found = beam_search(table, EVERY, 12, 3, penalty)
    assert [[one.tokens for one in each] for each in found] == [
        beam_by_hand(table, source, 12, 3, penalty) for source in range(3)
    ]
    assert penalty or table.steps < 13


def test_what_the_limit_cuts_off_says_so() -> None:
    table = Table()
    table.logits[..., END_TOKEN] = -torch.inf
    for source, one in enumerate(greedy_search(table, EVERY, LIMIT)):
        assert not one.ended and len(one.tokens) == LIMIT
        check(table, source, one)
    for source, found in enumerate(beam_search(table, EVERY, LIMIT, 2)):
        assert len(found) == 2
        for one in found:
            assert not one.ended
            check(table, source, one)


def test_a_beam_without_width_is_refused() -> None:
    with pytest.raises(ValueError, match="width of at least 1"):
        beam_search(Table(), EVERY, LIMIT, width=0)


def test_no_source_no_sequence() -> None:
    assert greedy_search(Table(), EVERY[:0], LIMIT) == [] == beam_search(Table(), EVERY[:0], LIMIT)
