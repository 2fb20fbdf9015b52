"""Beam search: several prefixes are followed at once."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gtx.sequence.decoding import Writer, Written, next_token
from gtx.sequence.sequences import END, START


@torch.inference_mode()
def beam(
    model: Writer, source: Any, limit: int, width: int = 4, penalty: float = 0.6, cached: bool = True
) -> list[list[Written]]:
    r"""The best sequences found by following the `width` likeliest prefixes at every step.

    A sequence that has ended is ranked by its log-probability over a power of its length, since every token makes a
    sequence less likely:

    \[ \mathrm{score}(y) = \ln p(y) \Big/ \Bigl(\frac{5 + |y|}{6}\Bigr)^{\alpha} \]

    with the end counted in |y|. The search stops when no prefix can reach the best any more: its score
    could only be that of its present probability at the greatest length.

    Source: Wu et al. 2016, eq. 14 (arXiv:1609.08144); width 4 and \(\alpha = 0.6\) are those of Vaswani et al. 2017,
    section 6.1 (arXiv:1706.03762).

    Args:
        model, source, limit, cached: as in `greedy`.
        width: k, prefixes that are followed and sequences that are given. With 1 and no penalty it is greedy.
        penalty: \(\alpha\); 0 ranks by probability alone.

    Returns:
        Per source, at most k sequences, those that ended first, by their score.

    Raises:
        ValueError: a width below 1, or a negative penalty.
    """
    if width < 1 or penalty < 0:
        raise ValueError(f"expected a width of at least 1 and a penalty of at least 0, got {width} and {penalty}")

    def rank(log_p: Tensor, length: int) -> Tensor:
        return log_p / ((5 + length) / 6) ** penalty

    state = model.begin(source, limit + 1, cached)
    found: list[list[Written]] = [[] for _ in range(state.rows)]
    device, B = state.device, state.rows
    sources = torch.arange(B, device=device)  # [A] that are still searched
    total = torch.zeros(B, 1, dtype=torch.float64, device=device)  # [A, k] log-probability of each prefix
    tokens = torch.zeros(B, 1, 0, dtype=torch.long, device=device)  # [A, k, t]
    last = torch.full((B,), START, device=device)
    for step in range(limit + 1):
        if len(sources) == 0:
            break
        A, k = total.shape
        log_p = next_token(state.step(last)).view(A, k, -1)
        V = log_p.shape[-1]
        best, at = (total[:, :, None] + log_p).flatten(1).topk(min(2 * width, k * V))  # half of them or more go on
        parent, token = at // V, at % V
        ends = ((token == END) & best.isfinite())[:, :width]  # an end must be among the k likeliest itself
        for a, c in ends.nonzero().tolist():
            score = float(rank(best[a, c], step + 1))
            found[sources[a]].append(Written(tokens[a, parent[a, c]].tolist(), float(best[a, c]), True, score))
        for a in sources.tolist():
            found[a] = sorted(found[a], key=lambda one: -one.score)[:width]
        if step == limit:
            _cut_off(found, sources, tokens, total, rank(total, limit), width)
            break

        total, kept = best.masked_fill(token == END, -torch.inf).topk(min(width, best.shape[1]))
        parent, token = parent.gather(1, kept), token.gather(1, kept)
        tokens = torch.cat([tokens.gather(1, parent[:, :, None].expand(-1, -1, step)), token[:, :, None]], 2)
        hope = rank(total[:, 0], limit + 1)
        worst = [found[a][-1].score if len(found[a]) == width else -torch.inf for a in sources.tolist()]
        going = (hope > hope.new_tensor(worst)).nonzero().squeeze(1)
        state.select((parent + torch.arange(A, device=device)[:, None] * k)[going].flatten())
        sources, total, tokens, last = sources[going], total[going], tokens[going], token[going].flatten()
    return found


def _cut_off(
    found: list[list[Written]], sources: Tensor, tokens: Tensor, total: Tensor, scores: Tensor, width: int
) -> None:
    """At the limit, places that no ended sequence took go to prefixes, the likeliest first."""
    for a, source in enumerate(sources.tolist()):
        rest = zip(tokens[a].tolist(), total[a].tolist(), scores[a].tolist(), strict=True)
        begun = [Written(row, log_p, False, score) for row, log_p, score in rest if log_p > -torch.inf]
        found[source] += sorted(begun, key=lambda one: -one.score)[: width - len(found[source])]
