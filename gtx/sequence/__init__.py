"""Sequences of tokens: text to numbers and back, and writing with a trained model."""

from gtx.sequence.decoding import GeneratedSequence, TokenSampler, beam_search, greedy_search, sample_sequences
from gtx.sequence.sequences import END_TOKEN, START_TOKEN, SequenceBatch, SequenceExamples
from gtx.sequence.tokens import CHARACTER_TOKENIZER, SMILES_TOKENIZER, EncodedTexts, Tokenizer, TokenVocabulary

__all__ = [
    "CHARACTER_TOKENIZER",
    "END_TOKEN",
    "SMILES_TOKENIZER",
    "START_TOKEN",
    "EncodedTexts",
    "GeneratedSequence",
    "SequenceBatch",
    "SequenceExamples",
    "TokenSampler",
    "TokenVocabulary",
    "Tokenizer",
    "beam_search",
    "greedy_search",
    "sample_sequences",
]
