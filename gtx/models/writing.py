"""Incremental decoding: sequences written a token at a time, from kept keys and values or by reading all again."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from gtx.models.token_transformer import TokenTransformer
from gtx.nn import EdgeAttention, KeyValues
from gtx.sequence import SequenceBatch


class Writing:
    """Incremental decoding of sequences of equal length, one per row, with a key-value cache.

    Args:
        decoder: in evaluation mode.
        memory: encoded sources, one per row; None for a language model, which begins with one row.
        limit: the largest number of tokens, the start among them.

    Attributes:
        rows: number of rows.
        device: device of the tokens.
    """

    def __init__(self, decoder: TokenTransformer, memory: SequenceBatch | None, limit: int) -> None:
        self.decoder = decoder
        self.rows: int = 1 if memory is None else len(memory)
        self.device: torch.device = decoder.embedding.bias.device
        self.past: list[KeyValues] = [KeyValues.empty(layer.attention, self.rows, limit) for layer in decoder.layers]
        self.source: list[KeyValues | None] = [_project_memory(layer.cross, memory) for layer in decoder.layers]

    def step(self, tokens: Tensor) -> Tensor:
        """Add a token to every row (int64 `[R]`): logits of the next, `[R, V]`."""
        return self.decoder.embedding.scores(self.decoder.step(tokens, self.past, self.source))

    def select(self, rows: Tensor) -> None:
        """Go on with these rows (int64 `[R']`), any number of times each."""
        self.past = [kept.select(rows) for kept in self.past]
        self.source = [None if kept is None else kept.select(rows) for kept in self.source]
        self.rows = len(rows)


class Rereading:
    """Decoding without a cache: every step reads all tokens again. It defines what `Writing` computes.

    Args:
        write: maps tokens and encoded sources to logits, as `MoleculeToSequence.write`.
        memory: as for `Writing`.
        device: device of the tokens.
    """

    def __init__(
        self,
        write: Callable[[SequenceBatch, SequenceBatch | None], Tensor],
        memory: SequenceBatch | None,
        device: torch.device,
    ) -> None:
        self.write = write
        self.memory = memory
        self.device = device
        self.rows: int = 1 if memory is None else len(memory)
        self.tokens: Tensor | None = None

    def step(self, tokens: Tensor) -> Tensor:
        column = tokens[:, None]
        self.tokens = column if self.tokens is None else torch.cat([self.tokens, column], 1)
        rows, length = self.tokens.shape
        ptr = torch.arange(rows + 1, device=tokens.device) * length
        return self.write(SequenceBatch(self.tokens.flatten(), ptr), self.memory)[ptr[1:] - 1]

    def select(self, rows: Tensor) -> None:
        self.tokens = None if self.tokens is None else self.tokens[rows]
        self.memory = None if self.memory is None else self.memory.batch(rows)
        self.rows = len(rows)


def _project_memory(attention: EdgeAttention | None, memory: SequenceBatch | None) -> KeyValues | None:
    """Project the encoded sources, if there are any, to keys and values of each row."""
    if attention is None or memory is None:
        return None
    projected = (SequenceBatch(part, memory.ptr).padded() for part in attention.keys_and_values(memory.items))
    (key, absent), (value, _) = projected
    return KeyValues(key.transpose(1, 2).contiguous(), value.transpose(1, 2).contiguous(), absent)
