"""How far the members of an ensemble disagree."""

from __future__ import annotations

from typing import ClassVar

from torch import nn

from gtx.errors import InputError
from gtx.tasks.uncertainty.method import Method


class Ensemble(Method):
    """The sample variance of members that were trained from seeds of their own, two or more."""

    word: ClassVar[str] = "ensemble"

    def check(self, model: nn.Module, members: int) -> None:
        if members < 2:
            raise InputError(
                "uncertainty ensemble is how far members disagree, and this model has one: expected two or more, "
                "such as ensemble=5 in Python and --ensemble 5 on the command line"
            )
