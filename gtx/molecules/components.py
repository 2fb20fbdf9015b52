"""Rows of several molecules, such as a solute and a solvent: read one by one, kept as one row of arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gtx.errors import InputError, printable
from gtx.molecules.flat import FlatMolecules

MOST = 10
"""Components of a row."""


def check_components(names: Sequence[str]) -> tuple[str, ...]:
    """The names of components: none, or two to `MOST` that differ."""
    names = tuple(names)
    if len(names) == 1 or len(names) > MOST:
        raise InputError(f"several molecules a row: expected 2 to {MOST} columns, got {len(names)}")
    if twice := [name for name in names if names.count(name) > 1]:
        raise InputError(f"component {twice[0]!r} is named twice")
    return names


def apart(
    names: Sequence[str], rows: Sequence[Sequence[str]], coordinates: Sequence[np.ndarray | None] | None
) -> tuple[list[str], list[np.ndarray | None] | None]:
    """The texts of n rows with K components, one after the other, `[n K]`, and their coordinates.

    Args:
        names: of the components.
        rows: K texts each.
        coordinates: per row, of its first component.

    Raises:
        InputError: a row has more or fewer texts.
    """
    for i, row in enumerate(rows):
        if isinstance(row, str) or len(row) != len(names):
            raise InputError(f"expected {len(names)} molecules ({', '.join(names)}) for row {i}, got {row!r}")
    others = [None] * (len(names) - 1)
    known = None if coordinates is None else [one for first in coordinates for one in (first, *others)]
    return [text for row in rows for text in row], known


def together(names: Sequence[str], texts: Sequence[str], found: FlatMolecules) -> FlatMolecules:
    """The outcome of n rows, out of that of their components.

    The atoms of a row are those of its components, one after the other, `parts` says how many of each; its descriptors
    `[K D]` and its SMILES likewise. A row of which one component cannot be read cannot be read.

    Args:
        names: of the K components.
        texts: all of them, `[n K]`.
        found: what became of these.
    """
    count = len(names)
    good = np.array([error is None for error in found.errors], bool).reshape(-1, count)
    used = np.repeat(good.all(1), count)[good.ravel()]  # of the components that could be read
    atoms, bonds = (counts[used].reshape(-1, count) for counts in (found.atom_counts, found.bond_counts))
    of_atom, of_bond = np.repeat(used, found.atom_counts), np.repeat(used, found.bond_counts)
    before = np.repeat((atoms.cumsum(1) - atoms).ravel(), bonds.ravel()).astype(found.bonds.dtype)

    def said(i: int, reason: str) -> str:
        return f'{printable(names[i % count])} "{printable(texts[i])}": {reason}'

    smiles, errors, warnings = [], [], []
    for start in range(0, len(texts), count):
        row = range(start, start + count)
        known = [found.smiles[i] for i in row]
        smiles.append(None if None in known else ".".join(known))
        errors.append("; ".join(said(i, found.errors[i]) for i in row if found.errors[i]) or None)
        warnings.append(tuple(said(i, warning) for i in row for warning in found.warnings[i]))
    return FlatMolecules(
        atoms=found.atoms[of_atom],
        bonds=found.bonds[:, of_bond] + before,
        bond_codes=found.bond_codes[of_bond],
        descriptors=found.descriptors[used].reshape(len(atoms), count * found.descriptors.shape[1]),
        atom_counts=atoms.sum(1),
        bond_counts=bonds.sum(1),
        positions=None if found.positions is None else found.positions[of_atom],
        smiles=smiles,
        errors=errors,
        warnings=warnings,
        parts=atoms,
    )
