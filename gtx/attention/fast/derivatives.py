"""Derivatives of the derivatives that compiled loops give."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor


def plain_gradients(
    definition: Callable[..., Tensor], tensors: Sequence[Tensor | None], needed: Sequence[bool], d_out: Tensor
) -> list[Tensor | None]:
    """Compute the gradients of a compiled loop by its plain form, so that they can be differentiated again.

    Args:
        definition: the plain form, of these tensors.
        tensors: what the loop was given.
        needed: of which tensors the gradient is wanted; others get None.
        d_out: the gradient of the loop's output.
    """
    # as views: where one tensor was made from another, its gradient is not that of the other too
    views = [None if x is None else x.view_as(x) for x in tensors]
    wanted = [x for x, need in zip(views, needed, strict=True) if need and x is not None]
    found = iter(torch.autograd.grad(definition(*views), wanted, d_out, create_graph=True))
    return [next(found) if need else None for need in needed]
