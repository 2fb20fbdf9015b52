"""The training molecules that are most similar to molecules."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from gtx.data import MoleculeStore, featurise
from gtx.kernel import TanimotoKernel
from gtx.molecules.features import ATOM_PLACE, BOND_PLACE

if TYPE_CHECKING:
    from gtx.molecules import Featuriser
    from gtx.prediction.training_rows import TrainingRows

MORGAN = {
    "radius": 2,
    "atoms": [ATOM_PLACE[name] for name in ("element", "charge", "hydrogens", "degree")],
    "bonds": [BOND_PLACE["type"]],
}
"""What is counted: circular substructures within 2 bonds, as Morgan's fingerprint has them, unfolded."""
_TOGETHER = 256  # molecules that are compared at a time


class Neighbours:
    """Compares molecules with training rows, by the Tanimoto similarity of Morgan counts.

    Args:
        training: the rows.
        featuriser: how the model reads molecules.
    """

    def __init__(self, training: TrainingRows, featuriser: Featuriser) -> None:
        whole = replace(
            constitution(featuriser),
            standardise=False,  # these are
            components=(),
            max_atoms=featuriser.max_atoms * max(1, len(featuriser.components)),
        )
        done = featurise(whole, list(training.smiles), workers=0, smiles=False)
        self.training, self.rows = training, done.good
        self.kernel = TanimotoKernel([MORGAN])
        self.kernel.hold(done.store)

    def of(self, store: MoleculeStore, count: int) -> tuple[np.ndarray, np.ndarray]:
        """The nearest training rows of each molecule of a store, the most similar first.

        Returns:
            Which of the kept rows, int64 `[m, k]`, and their similarity, float64 `[m, k]`, from 0 to 1; k is `count`,
            or less where fewer rows are kept.
        """
        count, store = min(count, len(self.rows)), store.to("cpu")
        parts = [
            self.kernel.nearest(store.batch(some), count) for some in torch.arange(len(store)).split(_TOGETHER)
        ] or [(torch.zeros(0, count, dtype=torch.long), torch.zeros(0, count, dtype=torch.double))]
        place, similarity = (torch.cat(part).numpy() for part in zip(*parts, strict=True))
        return self.rows[place], similarity


def constitution(featuriser: Featuriser) -> Featuriser:
    """The same reading of molecules, without what no comparison looks at."""
    return replace(featuriser, descriptors=False, molecule_features=(), coordinates=False, conformers=False)
