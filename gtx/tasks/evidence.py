"""A distribution over the probabilities of classes for each molecule."""

from __future__ import annotations

from math import lgamma

import torch
from torch import Tensor

WORDS = ("none", "evidential")
"""Names of the methods of uncertainty for classes, on the command line and in model files."""
PENALTY = 0.02
"""Lambda, the weight of the penalty for evidence of wrong classes."""
MOST = 10.0
"""Limit on the absolute logarithm of evidence."""


def concentrations(shares: Tensor, strength: Tensor) -> Tensor:
    r"""Compute the parameters of a Dirichlet distribution over the probabilities of C classes.

    \[ \alpha_c = 1 + E \pi_c, \qquad E = e^s, \quad -10 \le s \le 10 \]

    Source: Sensoy et al. 2018 (arXiv:1806.01768).

    E is the total evidence, and \(\pi\), the softmax of the logits, divides the evidence among the classes. With E = 0,
    nothing is known of the probabilities. In the paper, the network has a separate output for the evidence of each
    class. With the division by a softmax, a kernel model can be blended with the logits. The evidence is an
    exponential, as in Pandey & Yu 2023 (arXiv:2306.11113), because an output that a rectifier sets to 0 has no
    gradient.

    Args:
        shares: \(\pi\), `[..., C]`.
        strength: s, `[...]`.

    Returns:
        `[..., C]`, 1 or more.
    """
    return 1 + strength.clamp(-MOST, MOST).exp()[..., None] * shares


def probabilities(alpha: Tensor) -> Tensor:
    r"""Compute the mean of the distribution, \(p_c = \alpha_c / S\) with \(S = \sum_c \alpha_c\), `[..., C]`."""
    return alpha / alpha.sum(-1, keepdim=True)


def vacuity(alpha: Tensor) -> Tensor:
    r"""Compute the vacuity \(u = C / S\), `[...]`, the lack of evidence: 1 without any, near 0 with much."""
    return alpha.shape[-1] / alpha.sum(-1)


def evidence_loss(alpha: Tensor, y: Tensor) -> Tensor:
    r"""Compute the expected cross-entropy of probabilities drawn from the distribution, with a penalty for evidence of
    other classes than the true one y:

    \[ \ell = \psi(S) - \psi(\alpha_y)
       + \lambda\, \mathrm{KL}\bigl( \mathrm{Dir}(\tilde\alpha) \,\|\, \mathrm{Dir}(1) \bigr) \]

    (Sensoy et al. 2018, equation 4 and the penalty of section 4). \(\tilde\alpha\) is \(\alpha\) with 1 for the true
    class. The paper prefers an expected squared error, and increases lambda to 1 in ten epochs. gtx uses the constant
    lambda = 0.02, so that the loss does not depend on the epoch. With the squared error and lambda = 0.05, a short
    training learned much less than without evidence (docs/uncertainty.md).

    The loss has a known weakness: if classes can be separated, more evidence always lowers the loss, however few rows
    there are. The amount of evidence is therefore not determined by the data (Bengs et al. 2022, arXiv:2203.06102).

    Args:
        alpha: `[B, C]`.
        y: numbers of classes, int64 `[B]`.

    Returns:
        `[B]`, 0 or more.
    """
    true = (y[:, None] == torch.arange(alpha.shape[-1], device=y.device)).to(alpha.dtype)
    error = alpha.sum(-1).digamma() - (true * alpha.digamma()).sum(-1)
    return error + PENALTY * divergence_from_flat(true + (1 - true) * alpha)


def divergence_from_flat(alpha: Tensor) -> Tensor:
    r"""Compute the Kullback-Leibler divergence of a Dirichlet distribution from the uniform one:

    \[ \mathrm{KL} = \ln \frac{\Gamma(S)}{\Gamma(C) \prod_c \Gamma(\alpha_c)}
       + \sum_c (\alpha_c - 1)\, [\psi(\alpha_c) - \psi(S)] \]

    Args:
        alpha: `[..., C]`, above 0.

    Returns:
        `[...]`, in nats; 0 where all parameters are 1.
    """
    total = alpha.sum(-1, keepdim=True)
    size = total.squeeze(-1).lgamma() - alpha.lgamma().sum(-1) - lgamma(alpha.shape[-1])
    return size + ((alpha - 1) * (alpha.digamma() - total.digamma())).sum(-1)
