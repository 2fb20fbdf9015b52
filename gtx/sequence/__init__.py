"""Annex: generation of texts from molecules, token by token: model, task, decoding and report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gtx.lazy import lazy_names

if TYPE_CHECKING:
    from gtx.sequence.decoding import GeneratedSequence, beam_search, greedy_search
    from gtx.sequence.model import (
        CrossAttentionMaps,
        MoleculeToSequenceModel,
        TokenTransformer,
        molecule_to_sequence,
    )
    from gtx.sequence.sequences import SequenceBatch, SequenceDataset
    from gtx.sequence.task import GeneratedTexts, SequenceGenerationTask, exact_match_accuracy
    from gtx.sequence.tokens import Tokenizer, TokenVocabulary

__getattr__, __dir__ = lazy_names(__name__)
__all__ = [
    "CrossAttentionMaps",
    "GeneratedSequence",
    "GeneratedTexts",
    "MoleculeToSequenceModel",
    "SequenceBatch",
    "SequenceDataset",
    "SequenceGenerationTask",
    "TokenTransformer",
    "TokenVocabulary",
    "Tokenizer",
    "beam_search",
    "exact_match_accuracy",
    "greedy_search",
    "molecule_to_sequence",
]
