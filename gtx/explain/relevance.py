"""From the attention of all layers to one score per atom."""

from __future__ import annotations

import torch
from torch import Tensor


def rollout(weights: Tensor) -> Tensor:
    r"""Attention rollout: what of each node reaches each other, if attention and the residual count half each.

    \[ R = \tilde A^{(L)} \cdots \tilde A^{(2)} \tilde A^{(1)}, \qquad \tilde A = \tfrac12 A + \tfrac12 I \]

    with A the mean over heads. Values, norms and MLPs do not enter.

    Source: Abnar & Zuidema 2020 (arXiv:2005.00928), eq. 1 and section 3.

    Args:
        weights: `[L, n, n]`, one matrix per layer from the first to the last, receivers in rows.

    Returns:
        `[n, n]`, receivers of the last layer in rows, senders of the first in columns; where every row of the weights
        sums to 1, so does every row of it.
    """
    eye = torch.eye(weights.shape[-1], dtype=weights.dtype, device=weights.device)
    reached = eye
    for layer in weights:
        reached = (0.5 * layer + 0.5 * eye) @ reached
    return reached


def gradient_weighted(weights: Tensor, gradients: Tensor) -> Tensor:
    r"""Gradient-weighted attention: only weights that raise the output count, by how much they do.

    \[ \bar A = \tfrac1H \sum_h (\nabla A_h \circ A_h)^+, \qquad R \leftarrow R + \bar A R, \qquad R_0 = I \]

    layer by layer from the first; what is returned is \(R - I\), the part that went through attention.

    Source: Chefer, Gur & Wolf 2021 (arXiv:2103.15679), eqs. 5 and 6.

    Args:
        weights: `[L, H, n, n]`, receivers in rows.
        gradients: `[L, H, n, n]`, of one output by each of the weights.

    Returns:
        `[n, n]`, never negative, receivers in rows.
    """
    eye = torch.eye(weights.shape[-1], dtype=weights.dtype, device=weights.device)
    relevance = eye
    for layer in (gradients * weights).clamp(min=0).mean(1):
        relevance = relevance + layer @ relevance
    return relevance - eye


def per_atom(relevance: Tensor, atoms: Tensor, readers: Tensor) -> Tensor:
    """One score per atom as a sender: the mean over the nodes that the prediction is read from.

    Args:
        relevance: `[n, n]`, receivers in rows.
        atoms: int64 `[a]`, the nodes that are atoms.
        readers: int64 `[r]`, the nodes that are read out.

    Returns:
        `[a]`.
    """
    return relevance[readers].mean(0)[atoms]
