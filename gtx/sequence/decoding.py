"""Decoding: a trained model writes token by token, the likeliest one or one drawn at random."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from gtx.sequence.sampling import Sampler
from gtx.sequence.sequences import END, START


class State(Protocol):
    """Sequences being written, one per row.

    Attributes:
        rows: how many.
        device: where the tokens are to be.
    """

    rows: int
    device: torch.device

    def step(self, tokens: Tensor) -> Tensor:
        """Add a token to every row (int64 `[R]`): logits of the next, `[R, V]`."""

    def select(self, rows: Tensor) -> None:
        """Go on with these rows (int64 `[R']`), any number of times each."""


class Writer(Protocol):
    """A model that writes, as `gtx.models.MoleculeToSequence` does."""

    def begin(self, source: Any, limit: int, cached: bool = True) -> State:
        """One row per source, nothing written yet; at most `limit` steps will follow."""


class Written(NamedTuple):
    r"""A sequence that was written.

    Attributes:
        tokens: without start and end.
        log_probability: \(\ln p(y)\), the end included if there is one.
        ended: whether the end was written; if not, the limit cut it off.
        score: what it was ranked by; the log-probability, if nothing else.
    """

    tokens: list[int]
    log_probability: float
    ended: bool
    score: float


@torch.inference_mode()
def greedy(model: Writer, source: Any, limit: int, cached: bool = True) -> list[Written]:
    """The likeliest token, step by step; one sequence per source.

    Args:
        model: in evaluation mode.
        source: what it reads, see `MoleculeToSequence.begin`.
        limit: the most tokens to write; the end comes on top.
        cached: keep keys and values; the result is the same without.
    """
    return _write(model.begin(source, limit + 1, cached), limit, lambda log_p, row, step: log_p.argmax(-1))


@torch.inference_mode()
def sample(
    model: Writer,
    source: Any,
    limit: int,
    count: int = 1,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int = 0,
    cached: bool = True,
) -> list[Written]:
    """Tokens drawn by their probabilities; `count` sequences per source, those of a source in a row.

    What is drawn for a row depends on the seed and the row's number, and on nothing else in the batch.

    Args:
        model, source, limit, cached: as in `greedy`.
        count: sequences per source.
        temperature, top_k, top_p: which tokens are drawn how often, see `Sampler`.
        seed: of the draws.
    """
    state = model.begin(source, limit + 1, cached)
    if count != 1:
        state.select(torch.arange(state.rows, device=state.device).repeat_interleave(count))
    return _write(state, limit, Sampler(state.rows, limit + 1, temperature, top_k, top_p, seed))


Choice = Callable[[Tensor, Tensor, int], Tensor]
"""From log-probabilities `[R, V]`, the rows' numbers `[R]` and the step to a token of each row, int64 `[R]`."""


def _write(state: State, limit: int, choose: Choice) -> list[Written]:
    device, count = state.device, state.rows
    tokens = torch.full((count, limit + 1), END, device=device)
    total = torch.zeros(count, dtype=torch.float64, device=device)
    rows, last = torch.arange(count, device=device), torch.full((count,), START, device=device)  # that go on
    for step in range(limit + 1):
        if len(rows) == 0:
            break
        log_p = next_token(state.step(last))
        last = choose(log_p, rows, step)
        gained = log_p.gather(1, last[:, None]).squeeze(1)
        total[rows] += torch.where(last == END, gained, 0.0) if step == limit else gained  # or it is cut off
        tokens[rows, step] = last
        going = (last != END).nonzero().squeeze(1)
        if len(going) < len(rows):
            rows, last = rows[going], last[going]
            state.select(going)
    ended = (tokens == END).any(1)
    length = torch.where(ended, (tokens == END).int().argmax(1), limit)
    return [
        Written(row[:n], log_p, end, log_p)
        for row, n, log_p, end in zip(tokens.tolist(), length.tolist(), total.tolist(), ended.tolist(), strict=True)
    ]


def next_token(logits: Tensor) -> Tensor:
    """Log-probabilities of the next token, float64; the start never comes again."""
    logits = logits.double()
    logits[:, START] = -torch.inf
    return logits.log_softmax(-1)
