"""Tokenizers: from a text to tokens and back."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from gtx.errors import InputError


@dataclass(frozen=True)
class Tokenizer:
    """Cuts a text into tokens; side by side they are the text again.

    Attributes:
        pattern: a regular expression, each match a token.
    """

    pattern: str

    @cached_property
    def _token(self) -> re.Pattern[str]:
        return re.compile(self.pattern)

    def split(self, text: str) -> list[str]:
        """The tokens of a text, all of it.

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


SMILES = Tokenizer(
    r"\[[^\]]+\]|Br?|Cl?|N|O|S|P|F|I|b|c|n|o|s|p|\(|\)|\.|=|#|-|\+|\\|/|:|~|@|\?|>|\*|\$|%[0-9]{2}|[0-9]"
)
"""Atoms (those in brackets whole), bonds, branches and ring closures of a SMILES or a reaction.

Source: Schwaller et al. 2018, "Found in Translation" (arXiv:1711.04810) and 2019, "Molecular Transformer"
(arXiv:1811.02633), whose expression it is.
"""

CHARACTERS = Tokenizer(r"(?s:.)")
"""Each character a token."""
