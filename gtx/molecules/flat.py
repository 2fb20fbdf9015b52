"""Featurising many texts into flat arrays: what a worker process does, with numpy and RDKit alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gtx.molecules.featuriser import Featuriser
from gtx.molecules.perception import TOGETHER, Perceived, perceive
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
    parts, errors = [], []
    with quietly():
        for i in range(0, max(len(texts), 1), TOGETHER):
            few = slice(i, i + TOGETHER)
            part, why = perceive(featuriser, texts[few], None if coordinates is None else coordinates[few], smiles)
            parts.append(part)
            errors += why
    seen = Perceived.join(parts)
    values, warnings = seen.describe(featuriser.descriptors)
    words = iter(zip(seen.smiles, warnings, strict=True))
    rows = [(None, ()) if error else next(words) for error in errors]
    return FlatMolecules(
        seen.graphs.atoms,
        seen.graphs.both_ways,
        seen.graphs.both_codes,
        values,
        seen.graphs.atom_counts,
        2 * seen.graphs.bond_counts,
        np.concatenate([np.zeros((0, 3), np.float32), *seen.positions]) if featuriser.coordinates else None,
        [written for written, _ in rows],
        errors,
        [warnings for _, warnings in rows],
    )
