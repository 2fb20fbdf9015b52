"""Sampling: the next token is drawn by its probability."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


class Sampler:
    r"""Draws tokens by the probabilities of a model, sharpened by a temperature, or among the likeliest alone.

    \[ p_w \propto p(w)^{1/T} \quad \text{for the } k \text{ likeliest } w, \text{ or the fewest that together have
       probability at least } P \]

    Sources: top k, Fan et al. 2018 (arXiv:1805.04833); top p or nucleus, Holtzman et al. 2020 (arXiv:1904.09751).

    Args:
        rows: sequences that are written.
        steps: tokens drawn for each, at most.
        temperature: T > 0; towards 0 the likeliest alone.
        top_k: k >= 1, or None for all.
        top_p: 0 < P <= 1, of the probabilities at temperature T, or None for all.
        seed: row i draws by the seed and i, whatever the other rows do.

    Raises:
        ValueError: a number out of its range.
    """

    def __init__(
        self,
        rows: int,
        steps: int,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int = 0,
    ) -> None:
        if not temperature > 0:
            raise ValueError(f"expected a temperature above 0 (for its limit write greedily), got {temperature}")
        if top_k is not None and top_k < 1:
            raise ValueError(f"expected top_k of at least 1, got {top_k}")
        if top_p is not None and not 0 < top_p <= 1:
            raise ValueError(f"expected 0 < top_p <= 1, got {top_p}")
        self.temperature, self.top_k, self.top_p = temperature, top_k, top_p
        draws = [np.random.default_rng([seed, row]).random(steps) for row in range(rows)]
        self.draws = torch.from_numpy(np.stack(draws)) if rows else torch.zeros(0, steps, dtype=torch.float64)

    def __call__(self, log_p: Tensor, rows: Tensor, step: int) -> Tensor:
        """Tokens int64 `[R]` from log-probabilities `[R, V]` of the rows `rows`."""
        p, token = (log_p / self.temperature).softmax(-1).sort(dim=-1, descending=True, stable=True)
        before = p.cumsum(-1) - p  # the probability of all that are likelier
        if self.top_p is not None:
            p = p.masked_fill(before >= self.top_p, 0.0)
        if self.top_k is not None:
            p = p[:, : self.top_k]
        reached = p.cumsum(-1)
        chosen = (reached <= self.draws[rows.cpu(), step, None].to(p.device) * reached[:, -1:]).sum(-1, keepdim=True)
        return token.gather(1, chosen).squeeze(1)
