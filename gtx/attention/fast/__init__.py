"""The sum of `gtx.attention.complete` again, compiled: a loop in C on a CPU, Triton kernels on a GPU.

Where neither computes an attention, or the environment has `GTX_COMPILED=0`, matrix products in plain torch do. So they
do on a GPU where the kernels fail a trial before their first use (`verification.verify`), with a line that says why.
"""

from __future__ import annotations

import os

from torch import Tensor

from gtx.attention.definition import AttentionRule
from gtx.attention.fast import compiled
from gtx.graph import CompleteGraph


def attend(graph: CompleteGraph, query: Tensor, key: Tensor, value: Tensor, rule: AttentionRule) -> Tensor | None:
    """Compute the output of `gtx.attention.attend`, `[N, H, D]`, or None where no compiled form computes it."""
    if query.device.type != "cpu" or os.environ.get("TRITON_INTERPRET") == "1":
        from gtx.attention.fast import ragged  # with torch's compiler, which takes a second to import

        if ragged.wanted() and ragged.can_run(graph, query, value, rule):
            query = rule.score.prepare(query)
            if ragged.why_not(graph, query, key, value, rule.edges, rule.dropout) is None:
                return ragged.attention(graph, query, key, value, rule.edges, rule.dropout)
            return None
    if compiled.can_run(graph, query, key, value, rule):
        return compiled.attention(graph, rule.score.prepare(query), key, value, rule.edges, rule.dropout)
    return None
