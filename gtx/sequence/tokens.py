"""Tokens: from a text to tokens, and from tokens to numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from gtx import schema
from gtx.errors import InputError
from gtx.sequence.sequences import END_TOKEN, START_TOKEN, SequenceBatch

# --- Tokenizers: from a text to tokens and back.


@dataclass(frozen=True)
class Tokenizer:
    """Function that cuts a text into tokens; the tokens joined together are the text again.

    Attributes:
        pattern: a regular expression, each match a token.
    """

    pattern: str

    @cached_property
    def _token(self) -> re.Pattern[str]:
        return re.compile(self.pattern)

    def split(self, text: str) -> list[str]:
        """Split a text into tokens.

        Raises:
            InputError: a part of the text is no token.
        """
        tokens = self._token.findall(text)
        if sum(map(len, tokens)) != len(text):
            end = 0
            for match in self._token.finditer(text):
                if match.start() != end:
                    break
                end = match.end()
            raise InputError(f"expected tokens, got {text[end]!r} at character {end + 1} of {text!r}")
        return tokens


SMILES_TOKENIZER = Tokenizer(
    r"\[[^\]]+\]|Br?|Cl?|N|O|S|P|F|I|b|c|n|o|s|p|\(|\)|\.|=|#|-|\+|\\|/|:|~|@|\?|>|\*|\$|%[0-9]{2}|[0-9]"
)
"""Tokenizer of SMILES and reaction SMILES, whose tokens are atoms (one token with its brackets), bonds, branches and
ring closures.

Source: Schwaller et al. 2018, "Found in Translation" (arXiv:1711.04810) and 2019, "Molecular Transformer"
(arXiv:1811.02633), whose expression it is.
"""

CHARACTER_TOKENIZER = Tokenizer(r"(?s:.)")
"""Tokenizer whose tokens are single characters."""


# --- Vocabularies: tokens as numbers.

RESERVED = 1 + max(START_TOKEN, END_TOKEN)


class EncodedTexts(NamedTuple):
    """Texts as sequences of token numbers.

    Attributes:
        sequences: token numbers of the texts that could be encoded.
        rows: numbers of these texts.
        errors: reason of every other text by its number, one line each.
    """

    sequences: SequenceBatch
    rows: list[int]
    errors: dict[int, str]


@dataclass(frozen=True)
class TokenVocabulary:
    """Vocabulary of a model: 0 is the start token, 1 the end token, and `tokens[i]` has the number i + 2.

    Attributes:
        tokens: the tokens, each once.
        tokenizer: function that cuts a text into tokens.
    """

    tokens: tuple[str, ...]
    tokenizer: Tokenizer = SMILES_TOKENIZER

    @classmethod
    def of(cls, texts: Iterable[str], tokenizer: Tokenizer = SMILES_TOKENIZER) -> TokenVocabulary:
        """Collect the tokens of texts, sorted.

        Raises:
            InputError: a part of a text is no token.
        """
        return cls(tuple(sorted({token for text in texts for token in tokenizer.split(text)})), tokenizer)

    def __len__(self) -> int:
        """Count the numbers, start and end among them."""
        return len(self.tokens) + RESERVED

    @cached_property
    def _number(self) -> dict[str, int]:
        return {token: i + RESERVED for i, token in enumerate(self.tokens)}

    def unknown(self, text: str) -> list[str]:
        """Return the tokens of a text that are not in the vocabulary, each once, in the order of the text."""
        return [token for token in dict.fromkeys(self.tokenizer.split(text)) if token not in self._number]

    def encode(self, text: str) -> list[int]:
        """Encode a text as numbers, without start and end.

        Raises:
            InputError: it is empty, or holds what is no token of the vocabulary.
        """
        tokens = self.tokenizer.split(text)
        if not tokens:
            raise InputError("expected a sequence, got an empty text")
        if unknown := self.unknown(text):
            raise InputError(f"not in the vocabulary of {len(self.tokens)} tokens: {', '.join(map(repr, unknown))}")
        return [self._number[token] for token in tokens]

    def encode_all(self, texts: Sequence[str]) -> EncodedTexts:
        """Encode texts; those that cannot be encoded are left out, with an error for each."""
        done, errors = {}, {}
        for row, text in enumerate(texts):
            try:
                done[row] = self.encode(text)
            except InputError as reason:
                errors[row] = str(reason)
        return EncodedTexts(SequenceBatch.of(done.values()), list(done), errors)

    def decode(self, numbers: Iterable[int]) -> str:
        """Decode numbers, without start and end, to a text.

        Raises:
            ValueError: a number that is no token's.
        """
        numbers = list(numbers)
        for number in numbers:
            if not RESERVED <= number < len(self):
                raise ValueError(f"expected numbers of tokens, {RESERVED} to {len(self) - 1}, got {number}")
        return "".join(self.tokens[number - RESERVED] for number in numbers)

    def to_dict(self) -> dict[str, Any]:
        """Return the vocabulary as plain values, for JSON."""
        return {"tokens": list(self.tokens), "pattern": self.tokenizer.pattern}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> TokenVocabulary:
        """Make the vocabulary from the dictionary of `to_dict`.

        Raises:
            InputError: an entry is missing or of the wrong kind, a token occurs twice, or the pattern is invalid.
        """
        schema.Record({"tokens": schema.ListOf(schema.text()), "pattern": schema.text()}).check(plain, "vocabulary")
        if len(set(plain["tokens"])) < len(plain["tokens"]):
            raise InputError("vocabulary.tokens: expected each token once")
        try:
            re.compile(plain["pattern"])
        except (re.error, RecursionError, OverflowError) as reason:
            raise InputError(f"vocabulary.pattern: expected a regular expression, got {reason}") from None
        return cls(tuple(plain["tokens"]), Tokenizer(plain["pattern"]))

    def __repr__(self) -> str:
        return f"TokenVocabulary({len(self.tokens)} tokens)"
