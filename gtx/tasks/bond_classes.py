"""Classes of bonds, such as whether a reaction breaks it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gtx.tasks.part_classes import PartClasses
from gtx.tasks.part_kinds import OfBonds


@dataclass(frozen=True)
class BondClasses(OfBonds, PartClasses):
    """A class of each bond between atoms of the graph, in RDKit's order of bonds, see `PartClasses`."""

    name: ClassVar[str] = "bond-classes"
