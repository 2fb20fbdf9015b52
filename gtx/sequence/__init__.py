"""Annex: generation of texts from molecules, token by token: model, task, decoding and report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gtx.lazy import lazy_names

if TYPE_CHECKING:
    from gtx.sequence.decoding import GeneratedSequence, beam_search, greedy_search
    from gtx.sequence.model import (
        TRANSFORMER_BASE,
        CrossAttentionMaps,
        MoleculeToSequence,
        TokenEncoder,
        TokenTransformer,
        molecule_to_sequence,
    )
    from gtx.sequence.report import SequenceReport, write_sequence_report
    from gtx.sequence.sequences import END_TOKEN, START_TOKEN, SequenceBatch, SequenceExamples
    from gtx.sequence.task import GeneratedTexts, SequenceGeneration, exact_match_share
    from gtx.sequence.tokens import CHARACTER_TOKENIZER, SMILES_TOKENIZER, EncodedTexts, Tokenizer, TokenVocabulary

__getattr__, __dir__ = lazy_names(__name__)
__all__ = [
    "CHARACTER_TOKENIZER",
    "END_TOKEN",
    "SMILES_TOKENIZER",
    "START_TOKEN",
    "TRANSFORMER_BASE",
    "CrossAttentionMaps",
    "EncodedTexts",
    "GeneratedSequence",
    "GeneratedTexts",
    "MoleculeToSequence",
    "SequenceBatch",
    "SequenceExamples",
    "SequenceGeneration",
    "SequenceReport",
    "TokenEncoder",
    "TokenTransformer",
    "TokenVocabulary",
    "Tokenizer",
    "beam_search",
    "exact_match_share",
    "greedy_search",
    "molecule_to_sequence",
    "write_sequence_report",
]
