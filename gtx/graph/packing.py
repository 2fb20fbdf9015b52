"""Flat rows into padded slots and back, by indices made once per batch."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor


class Packing(NamedTuple):
    """A one-to-one map of R rows into S >= R slots.

    Attributes:
        row_of_slot: int64 `[S]`; where a slot is padding, any row.
        slot_of_row: int64 `[R]`.
        padding: the slots that hold no row, int64 `[S - R]`, or bool `[S]` where their number is not constant.
    """

    row_of_slot: Tensor
    slot_of_row: Tensor
    padding: Tensor

    @classmethod
    def of(cls, slot_of_row: Tensor, num_slots: int) -> Packing:
        """The packing that puts row i into slot `slot_of_row[i]`."""
        row_of_slot = slot_of_row.new_full((num_slots,), -1)
        row_of_slot[slot_of_row] = torch.arange(len(slot_of_row), device=slot_of_row.device)
        padding = (row_of_slot < 0).nonzero().squeeze(1)
        return cls(row_of_slot.clamp_(min=0), slot_of_row, padding)

    def pack(self, rows: Tensor, fill: float = 0.0) -> Tensor:
        """`[R, *]` to `[S, *]`, with `fill` in the padding."""
        if torch.compiler.is_compiling():
            return _filled(rows.index_select(0, self.row_of_slot), self.padding, fill)
        return _Pack.apply(rows, *self, fill)

    def unpack(self, slots: Tensor) -> Tensor:
        """`[S, *]` to `[R, *]`."""
        if torch.compiler.is_compiling():
            return slots.index_select(0, self.slot_of_row)
        return _Unpack.apply(slots, *self)


def _filled(slots: Tensor, padding: Tensor, fill: float) -> Tensor:
    """With `fill` in the padding, in place where that is allowed."""
    if padding.dtype == torch.bool:
        return slots.masked_fill(padding.view(-1, *[1] * (slots.dim() - 1)), fill)
    return slots.index_fill(0, padding, fill) if torch.compiler.is_compiling() else slots.index_fill_(0, padding, fill)


# Each map is the other's transpose, so both directions of both are gathers: no scatter, nothing added twice, the same
# result on every run, and derivatives of any order.


class _Pack(torch.autograd.Function):
    @staticmethod
    def forward(rows: Tensor, row_of_slot: Tensor, slot_of_row: Tensor, padding: Tensor, fill: float) -> Tensor:
        if len(rows) == 0:
            return rows.new_full((len(row_of_slot), *rows.shape[1:]), fill)
        return _filled(rows.index_select(0, row_of_slot), padding, fill)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Tensor) -> None:
        ctx.save_for_backward(*inputs[1:4])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:
        return _Unpack.apply(grad, *ctx.saved_tensors), None, None, None, None


class _Unpack(torch.autograd.Function):
    @staticmethod
    def forward(slots: Tensor, row_of_slot: Tensor, slot_of_row: Tensor, padding: Tensor) -> Tensor:
        return slots.index_select(0, slot_of_row)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Tensor) -> None:
        ctx.save_for_backward(*inputs[1:4])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:
        return _Pack.apply(grad, *ctx.saved_tensors, 0.0), None, None, None
