"""The task that this annex adds to gtx, and its options; read without PyTorch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gtx.settings import TaskEntry, option


@dataclass(frozen=True, kw_only=True)
class SequenceOptions:
    """Options of `SequenceGenerationTask`."""

    tokens: Literal["smiles", "characters"] = option("smiles", "tokens of a sequence")
    max_tokens: int = option(256, "maximum number of tokens; a longer sequence is an error")
    smoothing: float = option(0.1, "label smoothing: fraction of a token's probability that is spread over all tokens")


TASK = TaskEntry("gtx.sequence.task", "SequenceGenerationTask", SequenceOptions, "texts that a model is to write")
