"""Embeddings of codes and values."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from gtx.encodings import Codes, Feature
from gtx.nn.fast.features import embed_features


class CodeEmbedding(nn.Module):
    """The sum over columns of one learned vector per code.

    Args:
        sizes: codes of each column.
        channels: width of the vectors.
        silent_first: code 0 of each column starts at zero: it means "other", and where training never meets it, it has
            no effect.
        sparse: most rows of the codes are 0 throughout; on a CPU, one vector then stands for all of these.

    Shapes:
        codes int64 `[*, len(sizes)]` to `[*, channels]`; `[R, len(sizes)]` where sparse.
    """

    def __init__(self, sizes: Sequence[int], channels: int, silent_first: bool = False, sparse: bool = False) -> None:
        super().__init__()
        self.sizes, self.silent_first, self.sparse = tuple(sizes), silent_first, sparse
        self.table = nn.Parameter(torch.empty(sum(sizes), channels))
        self.register_buffer("offsets", _offsets(sizes), persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.table, std=len(self.sizes) ** -0.5)
        if self.silent_first:
            with torch.no_grad():
                self.table[self.offsets] = 0.0

    def forward(self, codes: Tensor) -> Tensor:
        embedded = embed_features([self], None, [codes]) if codes.dim() == 2 else None
        if embedded is not None:
            return embedded
        if not self.sparse or codes.device.type != "cpu" or torch.compiler.is_compiling():
            return self._look_up(codes)
        rows = codes.any(-1).nonzero().squeeze(-1)
        absent = self._look_up(codes.new_zeros(1, len(self.sizes)))
        return absent.expand(len(codes), -1).index_copy(0, rows, self._look_up(codes[rows]))

    def _look_up(self, codes: Tensor) -> Tensor:
        """A one for every code, times the table: for the small tables of molecules quicker than looking rows up."""
        ones = self.table.new_zeros(*codes.shape[:-1], len(self.table))
        return ones.scatter_(-1, codes + self.offsets, 1.0) @ self.table

    def __repr__(self) -> str:
        return f"CodeEmbedding({list(self.sizes)}, {self.table.shape[1]})"


def embed(feature: Feature, channels: int) -> nn.Module:
    """What turns a feature into channels: a table for codes, a linear map for values."""
    if isinstance(feature, Codes):
        return CodeEmbedding(feature.sizes, channels, sparse=feature.sparse)
    return nn.Linear(feature.channels, channels)


class Vocabulary(nn.Module):
    """Which codes were seen in training; any other becomes code 0, "other".

    Until `observe` is called every code counts as seen.

    Args:
        sizes: codes of each column; code 0 of each means "other".
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        super().__init__()
        self.sizes = tuple(sizes)
        self.register_buffer("seen", torch.ones(sum(sizes), dtype=torch.bool))
        self.register_buffer("offsets", _offsets(sizes), persistent=False)

    def observe(self, codes: Tensor, more: bool = False) -> None:
        """Count these codes, integers `[*, len(sizes)]`, as seen: no others, or `more` than before."""
        if not more:
            self.seen.zero_()
        self.seen[(codes.long() + self.offsets).flatten()] = True

    def unseen(self, codes: Tensor) -> Tensor:
        """bool `[*, len(sizes)]`: the codes not seen in training."""
        return ~self.seen[codes + self.offsets]

    def forward(self, codes: Tensor) -> Tensor:
        return codes.masked_fill(self.unseen(codes), 0)

    def __repr__(self) -> str:
        return f"Vocabulary({list(self.sizes)})"


def _offsets(sizes: Sequence[int]) -> Tensor:
    sizes = torch.tensor(tuple(sizes), dtype=torch.long)
    return sizes.cumsum(0) - sizes
