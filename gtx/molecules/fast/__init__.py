"""Compiled loops in place of RDKit's functions: `gtx.molecules.perception`, faster.

All code that reproduces computations of RDKit is in this folder. `binary` reads RDKit's binary format;
`centres`, `crippen`, `charges`, `surface`, `quantum_numbers` and `properties` replace one function of RDKit each. A
test checks that every result equals RDKit's. Unusual molecules are left to RDKit, and so are all with `GTX_FAST=0` in
the environment.
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
    """Perceive molecules as `gtx.molecules.perception.perceive`; return None with `GTX_FAST=0`."""
    if os.environ.get("GTX_FAST") == "0":
        return None
    from gtx.molecules.fast.perception import perceive  # and numba

    return perceive(settings, texts, coordinates, smiles)
