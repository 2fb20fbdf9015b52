"""Further features of a whole molecule, by name: what a model may read beside its cheap descriptors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from rdkit import Chem
from rdkit.Chem import rdMolDescriptors
from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator

from gtx.molecules.descriptors import rounded
from gtx.molecules.flat import FlatMolecules
from gtx.molecules.rdkit_descriptors import RDKIT_DESCRIPTORS, rdkit_descriptors

_MORGAN = GetMorganGenerator(radius=2, fpSize=2048)


class MoleculeFeatures(NamedTuple):
    """Features of one kind.

    Attributes:
        names: of each, F of them.
        of: a molecule without hydrogen atoms to `[F]`, NaN where there is no value.
    """

    names: Sequence[str]
    of: Callable[[Chem.Mol], np.ndarray]


MOLECULE_FEATURES: dict[str, MoleculeFeatures] = {
    "morgan": MoleculeFeatures([f"morgan{i}" for i in range(2048)], _MORGAN.GetCountFingerprintAsNumPy),
    "maccs": MoleculeFeatures(
        [f"maccs{i}" for i in range(167)], lambda mol: np.array(list(rdMolDescriptors.GetMACCSKeysFingerprint(mol)))
    ),
    "rdkit": MoleculeFeatures(RDKIT_DESCRIPTORS, rdkit_descriptors),
}
"""By name: `morgan`, how often each circular substructure of radius 2 occurs, folded to 2,048 (Rogers and Hahn 2010,
10.1021/ci100050t); `maccs`, the 166 keys after one that is always 0 (Durant et al. 2002, 10.1021/ci010132r); `rdkit`,
RDKit's two-dimensional descriptors, some 5 ms a molecule."""


def with_molecule_features(
    kinds: Sequence[str], found: FlatMolecules, read: Callable[[int], Chem.Mol]
) -> FlatMolecules:
    """What was found of texts, with further features after the descriptors.

    Args:
        kinds: names of `MOLECULE_FEATURES`.
        found: of the texts.
        read: the number of a text that could be read to its molecule without hydrogen atoms.
    """
    values, warnings = [], list(found.warnings)
    names = [name for kind in kinds for name in MOLECULE_FEATURES[kind].names]
    for i, error in enumerate(found.errors):
        if error is not None:
            continue
        mol = read(i)
        made = [MOLECULE_FEATURES[kind].of(mol) for kind in kinds]
        values.append(rounded(np.concatenate(made).astype(np.float64)))
        if lacking := [names[j] for j in np.flatnonzero(np.isnan(values[-1]))]:
            warnings[i] += (f"features RDKit cannot compute: {', '.join(lacking)}",)
    further = np.array(values, np.float32).reshape(len(values), len(names))
    return found._replace(descriptors=np.concatenate([found.descriptors, further], axis=1), warnings=warnings)
