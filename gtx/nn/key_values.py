"""The key-value cache of a decoder that writes token by token."""

from __future__ import annotations

import torch
from torch import Tensor

from gtx.attention import EdgeFeatures, PairReceivers, attend_block
from gtx.nn.edge_attention import EdgeAttention


class KeyValues:
    r"""Keys and values of the senders of R rows, each row with one receiver at a time.

    A later token changes no key or value of an earlier one, since it is no sender to it. So keys and values are worked
    out once, and the new token's attention is one row of the matrix:

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
    def empty(cls, attention: EdgeAttention, rows: int, limit: int, like: Tensor | None = None) -> KeyValues:
        """Room for `limit` senders of each of `rows` rows.

        Args:
            attention: whose keys and values they are.
            rows: R.
            limit: S.
            like: a tensor of their type, on their device; default a parameter of the attention.
        """
        like = next(attention.parameters()) if like is None else like
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

    def attend(self, attention: EdgeAttention, target: Tensor) -> Tensor:
        """What one receiver in each row collects from the senders: `[R, *]` to `[R, width]`, as `attention` gives it.

        Args:
            attention: whose keys and values these are.
            target: the receivers.
        """
        query = attention.queries(target).unsqueeze(1)  # [R, 1, H, C]
        key, value = (kept[:, :, : self.length].transpose(1, 2) for kept in (self.key, self.value))  # [R, S, H, C]
        edges = EdgeFeatures(state_value=attention.state_value)
        p = attention.dropout if attention.training else 0.0
        out, _, _ = attend_block(
            query, key, value, None, None, self.into, attention.score, attention.normaliser, edges, p
        )
        return attention.merge_heads(out.squeeze(1))
