"""Numbers of bonds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gtx.tasks.part_kinds import OfBonds
from gtx.tasks.part_numbers import PartNumbers


@dataclass(frozen=True)
class BondNumbers(OfBonds, PartNumbers):
    """T numbers for each bond between atoms of the graph, in RDKit's order of bonds, see `PartNumbers`.

    A bond has no direction: its number is a function of the sum and the difference of its atoms' states
    (`gtx.nn.BondReadout`).
    """

    name: ClassVar[str] = "bonds"
