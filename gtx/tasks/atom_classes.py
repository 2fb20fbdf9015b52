"""Classes of atoms, such as whether an enzyme attacks there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gtx.tasks.part_classes import PartClasses
from gtx.tasks.part_kinds import OfAtoms


@dataclass(frozen=True)
class AtomClasses(OfAtoms, PartClasses):
    """A class of each atom of the graph, in the order in which the SMILES or the mol block has them, see
    `PartClasses`."""

    name: ClassVar[str] = "atom-classes"
