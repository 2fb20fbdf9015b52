"""Sequences of tokens: text to numbers and back, and writing with a trained model."""

from gtx.sequence.beam import beam
from gtx.sequence.decoding import Written, greedy, sample
from gtx.sequence.examples import Examples
from gtx.sequence.sampling import Sampler
from gtx.sequence.sequences import END, START, Sequences
from gtx.sequence.tokenizer import CHARACTERS, SMILES, Tokenizer
from gtx.sequence.vocabulary import Encoded, TokenVocabulary

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
