"""Atoms of many molecules as masks, in the words of SMARTS, and what their neighbours are."""

from __future__ import annotations

import numpy as np

from gtx.molecules.features import ATOM_COLUMNS, BOND_COLUMNS
from gtx.molecules.graphs import Graphs

_ATOM, _BOND = list(ATOM_COLUMNS), list(BOND_COLUMNS)


class Atoms:
    """N atoms of many molecules: their properties, int64 or bool `[N]`, and counts of neighbours.

    Args:
        graphs: whose codes are read; a charge or a number of hydrogens that the columns do not list is far from any
            that they do.
    """

    def __init__(self, graphs: Graphs) -> None:
        code = {name: graphs.atoms[:, i].astype(np.int64) for i, name in enumerate(_ATOM)}
        self.element = code["element"]  # 0 for a dummy atom, as in SMARTS
        self.charge = np.where(code["charge"] > 0, code["charge"] - 5, 99)
        self.hydrogens = np.where(code["hydrogens"] > 0, code["hydrogens"] - 1, 99)
        self.degree = np.where(code["degree"] > 0, code["degree"] - 1, 99)
        self.connections = self.degree + self.hydrogens  # X of SMARTS
        self.aromatic = code["aromatic"] == 2
        self.hybridisation = code["hybridisation"]
        self.in_ring = code["ring"] != 1
        kind, ring = (np.repeat(graphs.bonds[:, _BOND.index(name)], 2) for name in ("type", "ring"))
        single, double, triple, aromatic = (kind == code for code in range(1, 5))
        bonds = {
            "-": single,
            "=": double,
            "#": triple,
            ":": aromatic,
            "": single | aromatic,
            "-!@": single & (ring == 1),
        }
        self._pairs = {name: (graphs.senders[which], graphs.receivers[which]) for name, which in bonds.items()}

    def count(self, bond: str, atoms: np.ndarray) -> np.ndarray:
        """How many neighbours of each atom are bonded to it by `bond` and among `atoms`: int64 `[N]`.

        Args:
            bond: a SMARTS symbol: "-", "=", "#", ":", "" for single or aromatic, "-!@" for single and in no ring.
            atoms: bool `[N]`.
        """
        senders, receivers = self._pairs[bond]
        return np.bincount(receivers[atoms[senders]], minlength=len(self.element))
