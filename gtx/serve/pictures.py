"""Pictures of one molecule, made on demand in a thread beside the model's."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from gtx.errors import InputError
from gtx.explain import attribute, explain
from gtx.molecules import MoleculeError, draw_molecule, read_smiles
from gtx.prediction import Predictor
from gtx.serve.bodies import Explained
from gtx.serve.limits import Limits

MOST_WAITING = 8
DRAWS = 20  # random sets of atoms, or orders of them: less than `gtx explain` takes, for somebody waits
_DRAWN = 200  # atoms of a molecule that is drawn


class Busy(Exception):
    """Too many pictures are asked for at once."""


class Pictures:
    """Explains molecules, one after the other.

    Args:
        predictor: the model.
        limits: how large a molecule may be.
    """

    def __init__(self, predictor: Predictor, limits: Limits) -> None:
        self.predictor, self.limits = predictor, limits
        self._thread, self._asked = ThreadPoolExecutor(1, "gtx explain"), 0

    async def explain(self, asked: Explained) -> dict[str, str]:
        """The picture as `svg`, and what was found as `text`.

        Raises:
            InputError: as `gtx.explain.explain`, or the molecule is too large.
            Busy: as many as `MOST_WAITING` are waited for.
        """
        if self._asked >= MOST_WAITING:
            raise Busy
        self._asked += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._explain, asked)
        finally:
            self._asked -= 1

    def close(self) -> None:
        """End when the picture in hand is made."""
        self._thread.shutdown(cancel_futures=True)

    def _explain(self, asked: Explained) -> dict[str, str]:
        self._check(asked.smiles)
        options = {"target": asked.target, "draws": DRAWS, "features": asked.features}
        if asked.method == "attention":
            found = explain(self.predictor, asked.smiles, **options)
        else:
            parts = "atoms" if asked.method == "shapley" else "substructures"
            found = attribute(self.predictor, asked.smiles, parts=parts, **options)
        return {"svg": found.svg(), "text": found.text()}

    def _check(self, smiles: str) -> None:
        if len(smiles) > self.limits.max_smiles:
            raise InputError(f"expected a SMILES of at most {self.limits.max_smiles:,} characters, got {len(smiles):,}")
        try:
            atoms = self.predictor.header.featuriser.read(smiles).GetNumAtoms()
        except MoleculeError as reason:
            raise InputError(f"the molecule {reason}") from None
        if atoms > self.limits.max_explained:
            most = self.limits.max_explained
            raise InputError(f"molecules of at most {most} atoms are explained here, this has {atoms}; gtx explain may")


def drawing(smiles: str, most: int) -> str:
    """A molecule as SVG.

    Raises:
        InputError: it cannot be read, or has too many characters or atoms to be drawn.
    """
    if len(smiles) > most:
        raise InputError(f"expected a SMILES of at most {most:,} characters, got {len(smiles):,}")
    try:
        mol = read_smiles(smiles)
    except MoleculeError as reason:
        raise InputError(f"the molecule {reason}") from None
    if mol.GetNumAtoms() > _DRAWN:
        raise InputError(f"molecules of at most {_DRAWN} atoms are drawn, this has {mol.GetNumAtoms()}")
    return draw_molecule(mol, size=(240, 150))
