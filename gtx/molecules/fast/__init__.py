"""What `gtx.molecules.perception` makes of texts, faster: compiled loops in place of RDKit's functions.

All that rewrites what RDKit computes is in this folder. `binary` reads RDKit's private form of molecules; `centres`,
`crippen`, `charges`, `surface`, `quantum_numbers` and `properties` stand for one function of RDKit each. A test holds
every outcome equal to the plain one. Molecules out of the ordinary are left to the plain way, and with `GTX_FAST=0` in
the environment all are.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from gtx.molecules.flat import FlatMolecules
from gtx.molecules.settings import Settings


def perceive(
    settings: Settings, texts: Sequence[str], coordinates: Sequence[np.ndarray | None] | None, smiles: bool
) -> FlatMolecules | None:
    """As `gtx.molecules.perception.perceive`, or None with `GTX_FAST=0`."""
    if os.environ.get("GTX_FAST") == "0":
        return None
    from gtx.molecules.fast.perception import perceive  # and numba

    return perceive(settings, texts, coordinates, smiles)
