"""Sequences of any lengths, end to end, the examples to learn from, and tokens: from a text to numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Batch

from gtx.base.errors import InputError
from gtx.base.schema import Text, check, entries, list_of
from gtx.data import MoleculeStore
from gtx.data.store import rows_of
from gtx.graph.packing import offsets

# --- Sequences of any lengths, end to end: no padding, hence nothing to mask.

START_TOKEN = 0
"""Number of the token with which the generation of every sequence starts."""
END_TOKEN = 1
"""Number of the token that ends every generated sequence."""


@dataclass(frozen=True)
class SequenceBatch:
    """Batch of B sequences with N items in all, stored one after the other without padding.

    Attributes:
        items: token numbers, int64 `[N]`, or one vector per item, `[N, *]`.
        ptr: int64 `[B + 1]`; sequence b has the items `ptr[b]` to `ptr[b + 1]`.
    """

    items: Tensor
    ptr: Tensor

    @classmethod
    def of(cls, sequences: Iterable[Sequence[int]]) -> SequenceBatch:
        """Concatenate lists of tokens."""
        lists = list(sequences)
        items = torch.tensor([token for one in lists for token in one], dtype=torch.long)
        return cls(items, offsets(torch.tensor([len(one) for one in lists], dtype=torch.long)))

    def __len__(self) -> int:
        return len(self.ptr) - 1

    @property
    def sizes(self) -> Tensor:
        """int64 `[B]`: items of each sequence."""
        return self.ptr.diff()

    @cached_property
    def owner(self) -> Tensor:
        """int64 `[N]`: the sequence of each item."""
        return torch.repeat_interleave(self.sizes)

    @cached_property
    def place(self) -> Tensor:
        """int64 `[N]`: the place of each item within its sequence, from 0."""
        return torch.arange(len(self.items), device=self.ptr.device) - self.ptr[self.owner]

    def subset(self, index: Tensor) -> SequenceBatch:
        """Select the sequences `index` (int64 `[b]`), in that order."""
        index = torch.as_tensor(index, device=self.ptr.device)
        return SequenceBatch(self.items[rows_of(self.ptr, index)], offsets(self.sizes[index]))

    def teacher_forced(self) -> tuple[SequenceBatch, Tensor]:
        """Make the input and the target of teacher forcing: start, y_1, ..., y_n and y_1, ..., y_n, end.

        Returns:
            The input, and the token to be written after each of its items, int64 `[N + B]`.
        """
        at = torch.arange(len(self.items), device=self.ptr.device) + self.owner
        total = len(self.items) + len(self)
        read, write = self.items.new_full((total,), START_TOKEN), self.items.new_full((total,), END_TOKEN)
        read[at + 1], write[at] = self.items, self.items
        return SequenceBatch(read, self.ptr + torch.arange(len(self) + 1, device=self.ptr.device)), write

    def padded(self) -> tuple[Tensor, Tensor]:
        """Pad the sequences with zeros, `[B, longest, *]`, and mark the padding, bool `[B, longest]`."""
        longest = int(self.sizes.max()) if len(self) else 0
        out = self.items.new_zeros(len(self), longest, *self.items.shape[1:])
        out = out.index_put((self.owner, self.place), self.items)
        return out, torch.arange(longest, device=self.ptr.device) >= self.sizes[:, None]

    def to(self, device: torch.device | str) -> SequenceBatch:
        """Move the sequences to `device`."""
        return SequenceBatch(self.items.to(device), self.ptr.to(device))


# --- Examples to learn from: sources, and the sequence to be written for each.


@dataclass(frozen=True)
class SequenceDataset:
    """Training examples of sequence generation: M molecules, each with the sequence to generate.

    Attributes:
        source: the molecules.
        targets: sequences to generate, without start and end.
        row: index of each example in the data set, int64 `[M]`.

    Raises:
        ValueError: not as many sources as targets.
    """

    source: MoleculeStore | Batch
    targets: SequenceBatch
    row: Tensor

    @classmethod
    def of(cls, source: MoleculeStore, targets: SequenceBatch) -> SequenceDataset:
        """Make examples of sources and their targets, numbered from 0."""
        if len(source) != len(targets):
            raise ValueError(f"expected a target for each source, got {len(source)} sources and {len(targets)} targets")
        return cls(source, targets, torch.arange(len(targets), device=targets.ptr.device))

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def device(self) -> torch.device:
        return self.targets.ptr.device

    @property
    def sizes(self) -> Tensor:
        """int64 `[M]`: tokens to be read back, or atoms, whichever are more."""
        return torch.maximum(self.targets.sizes + 1, self.source.sizes)

    def batch(self, index: Tensor) -> SequenceDataset:
        """Return the examples `index` (int64 `[b]`), the molecules as a model reads them."""
        return SequenceDataset(self.source.batch(index), self.targets.subset(index), self.row[index])

    def to(self, device: torch.device | str) -> SequenceDataset:
        """Move the tensors to `device`."""
        return SequenceDataset(self.source.to(device), self.targets.to(device), self.row.to(device))


# --- Tokenizers: from a text to tokens and back.


@dataclass(frozen=True)
class Tokenizer:
    """Function that cuts a text into tokens; the tokens joined together are the text again.

    Attributes:
        pattern: a regular expression, each match a token.
    """

    pattern: str

    def split(self, text: str) -> list[str]:
        """Split a text into tokens.

        Raises:
            InputError: a part of the text is no token.
        """
        tokens = re.findall(self.pattern, text)
        if sum(map(len, tokens)) != len(text):
            start = re.match(f"(?:{self.pattern})*", text)
            end = start.end() if start else 0
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

    def encode(self, text: str) -> list[int]:
        """Encode a text as numbers, without start and end.

        Raises:
            InputError: it is empty, or holds what is no token of the vocabulary.
        """
        tokens = self.tokenizer.split(text)
        if not tokens:
            raise InputError("expected a sequence, got an empty text")
        if unknown := [token for token in dict.fromkeys(tokens) if token not in self._number]:
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
        check(plain, entries({"tokens": list_of(Text), "pattern": Text}), "vocabulary")
        if len(set(plain["tokens"])) < len(plain["tokens"]):
            raise InputError("vocabulary.tokens: expected each token once")
        try:
            re.compile(plain["pattern"])
        except (re.error, RecursionError, OverflowError) as reason:
            raise InputError(f"vocabulary.pattern: expected a regular expression, got {reason}") from None
        return cls(tuple(plain["tokens"]), Tokenizer(plain["pattern"]))
