"""Sequences of tokens: text to numbers and back, and writing with a trained model."""

from gtx.sequence.decoding import Sampler, Written, beam, greedy, sample
from gtx.sequence.sequences import END, START, Examples, Sequences
from gtx.sequence.tokens import CHARACTERS, SMILES, Encoded, Tokenizer, TokenVocabulary

__all__ = [
    "CHARACTERS",
    "END",
    "SMILES",
    "START",
    "Encoded",
    "Examples",
    "Sampler",
    "Sequences",
    "TokenVocabulary",
    "Tokenizer",
    "Written",
    "beam",
    "greedy",
    "sample",
]
