"""Decoding: a trained model writes token by token, always the likeliest one, or by beam search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from gtx.sequence.sequences import END_TOKEN, START_TOKEN

if TYPE_CHECKING:
    from gtx.sequence.model import MoleculeToSequenceModel


class GeneratedSequence(NamedTuple):
    r"""Sequence that a model generated, with its log-probability.

    Attributes:
        tokens: generated tokens, without start and end.
        log_probability: log-probability \(\ln p(y)\), including the end token, if any.
        ended: whether the end token was generated; otherwise the sequence was cut off at the limit.
        score: score by which sequences are ranked, by default the log-probability.
    """

    tokens: list[int]
    log_probability: float
    ended: bool
    score: float


@torch.inference_mode()
def greedy_search(model: MoleculeToSequenceModel, source: Any, limit: int) -> list[GeneratedSequence]:
    """Generate one sequence per source, of at most `limit` tokens, by the most probable token at every step."""
    state = model.begin(source, limit + 1)
    device, count = state.device, state.rows
    tokens = torch.full((count, limit + 1), END_TOKEN, device=device)
    total = torch.zeros(count, dtype=torch.float64, device=device)
    rows, last = torch.arange(count, device=device), torch.full((count,), START_TOKEN, device=device)  # that go on
    for step in range(limit + 1):
        if len(rows) == 0:
            break
        log_p = next_token(state.step(last))
        last = log_p.argmax(-1)
        gained = log_p.gather(1, last[:, None]).squeeze(1)
        total[rows] += torch.where(last == END_TOKEN, gained, 0.0) if step == limit else gained  # or it is cut off
        tokens[rows, step] = last
        going = (last != END_TOKEN).nonzero().squeeze(1)
        if len(going) < len(rows):
            rows, last = rows[going], last[going]
            state.select(going)
    ended = (tokens == END_TOKEN).any(1)
    length = torch.where(ended, (tokens == END_TOKEN).int().argmax(1), limit)
    return [
        GeneratedSequence(row[:n], log_p, end, log_p)
        for row, n, log_p, end in zip(tokens.tolist(), length.tolist(), total.tolist(), ended.tolist(), strict=True)
    ]


def next_token(logits: Tensor) -> Tensor:
    """Compute the log-probabilities of the next token, float64; the start token has probability 0."""
    logits = logits.double()
    logits[:, START_TOKEN] = -torch.inf
    return logits.log_softmax(-1)


# --- Beam search: several prefixes are followed at once.


@torch.inference_mode()
def beam_search(
    model: MoleculeToSequenceModel, source: Any, limit: int, width: int = 4, penalty: float = 0.6
) -> list[list[GeneratedSequence]]:
    r"""Generate sequences by beam search, which keeps the `width` most probable prefixes at every step.

    Because every token lowers the probability of a sequence, sequences that have ended are ranked by their
    log-probability divided by a power of their length:

    \[ \mathrm{score}(y) = \ln p(y) \Big/ \Bigl(\frac{5 + |y|}{6}\Bigr)^{\alpha} \]

    The length |y| includes the end token. The search stops when no prefix can exceed the best score; the bound for a
    prefix is the score of its present probability at the largest length.

    Source: Wu et al. 2016, eq. 14 (arXiv:1609.08144); width 4 and \(\alpha = 0.6\) are those of Vaswani et al. 2017,
    section 6.1 (arXiv:1706.03762).

    Args:
        model: model in evaluation mode.
        source: molecules or sequences; None for a language model.
        limit: largest number of tokens, without the end token.
        width: number k of prefixes that are kept and of sequences that are returned. With k = 1 and no penalty, beam
            search equals greedy search.
        penalty: length penalty \(\alpha\); with 0, sequences are ranked by probability alone.

    Returns:
        For each input at most k sequences, first the sequences that have ended, sorted by score.

    Raises:
        ValueError: a width below 1, or a negative penalty.
    """
    if width < 1 or penalty < 0:
        raise ValueError(f"expected a width of at least 1 and a penalty of at least 0, got {width} and {penalty}")

    def rank(log_p: Tensor, length: int) -> Tensor:
        return log_p / ((5 + length) / 6) ** penalty

    state = model.begin(source, limit + 1)
    device, B = state.device, state.rows
    sequences: list[list[GeneratedSequence]] = [[] for _ in range(B)]
    sources = torch.arange(B, device=device)  # [A] that are still searched
    total = torch.zeros(B, 1, dtype=torch.float64, device=device)  # [A, k] log-probability of each prefix
    tokens = torch.zeros(B, 1, 0, dtype=torch.long, device=device)  # [A, k, t]
    last = torch.full((B,), START_TOKEN, device=device)
    for step in range(limit + 1):
        if len(sources) == 0:
            break
        A, k = total.shape
        log_p = next_token(state.step(last)).view(A, k, -1)
        V = log_p.shape[-1]
        best, at = (total[:, :, None] + log_p).flatten(1).topk(min(2 * width, k * V))  # half of them or more go on
        parent, token = at // V, at % V
        ends = ((token == END_TOKEN) & best.isfinite())[:, :width]  # an end must be among the k likeliest itself
        for a, c in ends.nonzero().tolist():
            score = float(rank(best[a, c], step + 1))
            prefix = tokens[a, parent[a, c]].tolist()
            sequences[sources[a]].append(GeneratedSequence(prefix, float(best[a, c]), True, score))
        for source in sources.tolist():
            sequences[source] = sorted(sequences[source], key=lambda one: -one.score)[:width]
        if step == limit:  # places without an ended sequence get unfinished prefixes, the likeliest first
            for source, *prefixes in zip(sources, tokens, total, rank(total, limit), strict=True):
                rest = zip(*(part.tolist() for part in prefixes), strict=True)
                cut = [GeneratedSequence(row, log_p, False, score) for row, log_p, score in rest if log_p > -torch.inf]
                free = width - len(sequences[source])
                sequences[source] += sorted(cut, key=lambda one: -one.score)[:free]
            break

        total, kept = best.masked_fill(token == END_TOKEN, -torch.inf).topk(min(width, best.shape[1]))
        parent, token = parent.gather(1, kept), token.gather(1, kept)
        tokens = torch.cat([tokens.gather(1, parent[:, :, None].expand(-1, -1, step)), token[:, :, None]], 2)
        hope = rank(total[:, 0], limit + 1)
        ended = [sequences[source] for source in sources.tolist()]
        worst = [each[-1].score if len(each) == width else -torch.inf for each in ended]
        going = (hope > hope.new_tensor(worst)).nonzero().squeeze(1)
        state.select((parent + torch.arange(A, device=device)[:, None] * k)[going].flatten())
        sources, total, tokens, last = sources[going], total[going], tokens[going], token[going].flatten()
    return sequences
