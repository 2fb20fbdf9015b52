"""What was said, kept for those who ask later: the key-value cache of a decoder that writes token by token."""

from __future__ import annotations

import torch
from torch import Tensor

from gtx.attention import PairReceivers
from gtx.nn.edge_attention import EdgeAttention


class KeyValues:
    r"""Keys and values of the senders of R rows, each row with one receiver at a time.

    A token that comes later changes nothing of what earlier ones offer, since it is no sender to them. So their keys
    and values are worked out once, and the new token's attention is one row of the matrix:

    \[ o = \sum_{s \le t} b_s V_s, \qquad b = \mathrm{normalise}_{s \le t}(\mathrm{score}(q_t, K_s)) \]

    Source: incremental decoding, Shazeer 2019, section 2.4 (arXiv:1911.02150).

    Args:
        key: `[R, H, S, C]`, the heads before the senders, so that products with them copy nothing.
        value: `[R, H, S, D]`.
        absent: bool `[R, S]`, where there is no sender; None where all are.
        length: how many of the S places are taken; default all.
    """

    def __init__(self, key: Tensor, value: Tensor, absent: Tensor | None = None, length: int | None = None) -> None:
        self.key, self.value, self.absent = key, value, absent
        self.length = key.shape[2] if length is None else length
        hole = torch.zeros(1, 1, dtype=torch.bool, device=key.device) if absent is None else absent
        self.into = PairReceivers(hole[:, None, :, None], absent is None)

    @classmethod
    def empty(cls, attention: EdgeAttention, rows: int, limit: int) -> KeyValues:
        """Room for `limit` senders of each of `rows` rows."""
        like = next(attention.parameters())
        H = attention.heads
        key = like.new_empty(rows, H, limit, attention.key_channels)
        return cls(key, like.new_empty(rows, H, limit, attention.out_channels), length=0)

    def append(self, key: Tensor, value: Tensor) -> None:
        """One more sender of each row: `[R, H, C]` and `[R, H, D]`."""
        self.key[:, :, self.length], self.value[:, :, self.length] = key, value
        self.length += 1

    def select(self, rows: Tensor) -> KeyValues:
        """The rows `rows` (int64 `[R']`), any number of times."""
        n = self.length

        def of(kept: Tensor) -> Tensor:
            out = kept.new_empty(len(rows), *kept.shape[1:])
            out[:, :, :n] = kept[:, :, :n].index_select(0, rows)
            return out

        return KeyValues(of(self.key), of(self.value), None if self.absent is None else self.absent[rows], n)

    def attend(self, attention: EdgeAttention, query: Tensor) -> Tensor:
        """What the receivers collect: `[R, H, C]` to `[R, H, D]`.

        Args:
            attention: whose score and normaliser weigh the senders.
            query: of one receiver per row.
        """
        q = query.unsqueeze(1)  # [R, 1, H, C]
        k, v = (kept[:, :, : self.length] for kept in (self.key, self.value))
        keys = k.transpose(1, 2)  # [R, S, H, C]
        score = attention.score
        s = score.pairs(q, keys) if score.matrix_form else score(q[:, :, None], keys[:, None])  # [R, 1, S, H]
        b = attention.normaliser(s, None, self.into)
        return (b.permute(0, 3, 1, 2) @ v).squeeze(2)


def offer(attention: EdgeAttention, source: Tensor) -> tuple[Tensor, Tensor]:
    """Keys `[M, H, C]` and values `[M, H, D]` of senders `[M, *]`."""
    return _heads(attention, attention.lin_key, source), _heads(attention, attention.lin_value, source)


def answer(attention: EdgeAttention, target: Tensor, senders: KeyValues) -> Tensor:
    """What receivers `[R, *]` are told by the senders of their rows: `[R, width]`, as `attention` gives it."""
    out = senders.attend(attention, _heads(attention, attention.lin_query, target)).flatten(1)
    return out if attention.lin_out is None else attention.lin_out(out)


def _heads(attention: EdgeAttention, linear: torch.nn.Module, x: Tensor) -> Tensor:
    return linear(x).unflatten(-1, (attention.heads, -1))
