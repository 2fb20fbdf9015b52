"""Molecules of PyG's own data sets, read anew."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch_geometric.data import Data

from gtx.data.featurising import featurise
from gtx.data.store import MoleculeStore
from gtx.errors import InputError, printable
from gtx.molecules import Featuriser


def from_pyg(molecules: Iterable[Data], featuriser: Featuriser | None = None) -> MoleculeStore:
    """Molecules that PyG made of SMILES, such as those of `from_smiles` and `MoleculeNet`, with gtx's own codes.

    They are read from their SMILES again: PyG's codes of atoms and bonds mean other things than gtx's.

    Args:
        molecules: each with an attribute `smiles`, and all or none with targets `y` of as many numbers.
        featuriser: how they are read; by default `Featuriser()`.

    Returns:
        The molecules in the same order; with targets `[M, T]` if they have any.

    Raises:
        InputError: a molecule has no SMILES, or one that cannot be read, or not as many targets as the others.
    """
    molecules = list(molecules)
    texts = [getattr(molecule, "smiles", None) for molecule in molecules]
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(
                f"molecule {number}: expected an attribute smiles that is a text, as torch_geometric.utils.from_smiles "
                f"and MoleculeNet give it, got {printable(repr(text))}"
            )
    done = featurise(featuriser or Featuriser(), texts)
    if bad := [number for number, error in enumerate(done.errors) if error]:
        first = f"molecule {bad[0]}, {printable(texts[bad[0]])!r}, {done.errors[bad[0]]}"
        raise InputError(f"{len(bad)} of {len(texts)} molecules cannot be read: {first}")
    targets = [getattr(molecule, "y", None) for molecule in molecules]
    if not targets or all(y is None for y in targets):
        return done.store
    sizes = [None if y is None else y.numel() for y in targets]
    if len(set(sizes)) > 1:
        other = next(number for number, size in enumerate(sizes) if size != sizes[0])
        raise InputError(f"molecule {other}: expected as many targets as molecule 0, {sizes[0]}, got {sizes[other]}")
    return done.store.with_targets(torch.stack([y.detach().double().reshape(-1).cpu() for y in targets]))
