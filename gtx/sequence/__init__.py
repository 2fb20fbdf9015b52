"""Annex: generation of texts from molecules, token by token: model, task, decoding and report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gtx.lazy import lazy_names

if TYPE_CHECKING:
    from gtx.sequence.decoding import greedy_search
    from gtx.sequence.model import (
        MoleculeToSequenceModel,
        TokenSequenceEncoder,
        molecule_to_sequence,
    )
    from gtx.sequence.sequences import SequenceDataset, TokenVocabulary
    from gtx.sequence.task import SequenceGenerationTask, exact_match_accuracy

__getattr__, __dir__ = lazy_names(__name__)
__all__ = [
    "MoleculeToSequenceModel",
    "SequenceDataset",
    "SequenceGenerationTask",
    "TokenSequenceEncoder",
    "TokenVocabulary",
    "exact_match_accuracy",
    "greedy_search",
    "molecule_to_sequence",
]
