"""Featurising many texts into flat arrays: what a worker process does, with numpy and RDKit alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gtx.molecules.errors import MoleculeError
from gtx.molecules.featuriser import Featuriser, Seen
from gtx.molecules.graphs import Graphs
from gtx.molecules.stereo import quietly


class FlatMolecules(NamedTuple):
    """The outcome of n texts, of which m could be read, with N atoms and E directed bonds in all.

    Arrays are as in `gtx.data.MoleculeStore`; `smiles`, `errors` and `warnings` have one entry per text.
    """

    atoms: np.ndarray  # uint8 [N, A]
    bonds: np.ndarray  # int32 [2, E], numbered within each molecule
    bond_codes: np.ndarray  # uint8 [E, F]
    descriptors: np.ndarray  # float32 [m, D]
    atom_counts: np.ndarray  # int64 [m]
    bond_counts: np.ndarray  # int64 [m]
    positions: np.ndarray | None  # float32 [N, 3] in Å, NaN where unknown
    smiles: list[str | None]  # canonical; None where the text could not be read, or none was asked for
    errors: list[str | None]  # why it could not be read
    warnings: list[tuple[str, ...]]


def featurise_texts(
    featuriser: Featuriser,
    texts: Sequence[str],
    coordinates: Sequence[np.ndarray | None] | None = None,
    *,
    smiles: bool = True,
) -> FlatMolecules:
    """Featurise texts; a molecule at fault leaves an error, never an exception.

    Args:
        featuriser: how molecules are read.
        texts: SMILES or mol blocks.
        coordinates: per text, positions in Å as `Featuriser` takes them, or None.
        smiles: find canonical SMILES too, which takes half as long as reading the molecules.
    """
    errors: list[str | None] = [None] * len(texts)
    seen: list[Seen] = []
    with quietly():
        for i, text in enumerate(texts):
            try:
                seen.append(featuriser.see(text, None if coordinates is None else coordinates[i], smiles))
            except MoleculeError as error:
                errors[i] = str(error)
    graphs = Graphs.join([one.parts for one in seen])
    values, notes = featuriser.describe(seen)
    read = iter(zip(seen, notes, strict=True))
    rows = [(None, ()) if error else _words(*next(read)) for error in errors]
    return FlatMolecules(
        graphs.atoms,
        graphs.both_ways,
        graphs.bonds.repeat(2, axis=0),
        values,
        graphs.atom_counts,
        2 * graphs.bond_counts,
        np.concatenate([np.zeros((0, 3), np.float32), *(one.positions for one in seen)])
        if featuriser.coordinates
        else None,
        [written for written, _ in rows],
        errors,
        [warnings for _, warnings in rows],
    )


def _words(seen: Seen, notes: tuple[str, ...]) -> tuple[str | None, tuple[str, ...]]:
    return seen.smiles, (*seen.warnings, *notes, *seen.conformer)
