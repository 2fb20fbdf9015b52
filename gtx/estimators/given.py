"""X, y and weights, as scikit-learn's users give them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch

from gtx.errors import InputError, printable
from gtx.molecules.featuriser import Text


def as_smiles(X: Any) -> list[str]:
    """X as SMILES.

    Raises:
        InputError: X is something else, or empty.
    """
    if isinstance(X, str):
        raise InputError("X must be a list or an array of SMILES, not one of them")
    array = np.asarray(X, dtype=object)
    if array.ndim != 1 and not (array.ndim == 2 and array.shape[1] == 1):
        raise InputError(f"X must be SMILES [n], or a table of one column, not of shape {list(array.shape)}")
    texts = array.ravel().tolist()
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"X must be SMILES: number {i} is {text!r}")
    if not texts:
        raise InputError("X holds no SMILES")
    return texts


def as_targets(y: Any, dtype: type | None = None) -> tuple[np.ndarray, list[str]]:
    """y as an array `[n]` or `[n, T]`, and names for its columns."""
    names = [str(name) for name in y.columns] if isinstance(y, pd.DataFrame) else None
    array = np.asarray(y, dtype=dtype)
    if array.ndim not in (1, 2):
        raise InputError(f"y must be of shape [n] or [n, T], not {list(array.shape)}")
    name = getattr(y, "name", None) or "y"
    return array, names or ([str(name)] if array.ndim == 1 else [f"y{t}" for t in range(array.shape[1])])


def as_weights(given: Any, rows: int) -> torch.Tensor | None:
    """`sample_weight` as a tensor `[rows]`; None where it is None.

    Raises:
        InputError: another shape, or a weight that is negative or no number.
    """
    if given is None:
        return None
    weights = np.asarray(given, dtype=float)
    if weights.shape != (rows,):
        raise InputError(f"sample_weight must be of shape [{rows}], one for each row, not {list(weights.shape)}")
    if not ((weights >= 0) & np.isfinite(weights)).all():
        place = int((~((weights >= 0) & np.isfinite(weights))).argmax())
        raise InputError(f"sample_weight must be numbers of 0 or more: number {place} is {weights[place]:g}")
    return torch.from_numpy(weights)


def as_columns(y: np.ndarray) -> np.ndarray:
    """y `[n]` or `[n, T]` as `[n, T]`."""
    return y[:, None] if y.ndim == 1 else y


def complaint_of(smiles: Sequence[Text], errors: Sequence[str | None]) -> str | None:
    """How many SMILES cannot be used, and the first of them; None if all can."""
    bad = [i for i, error in enumerate(errors) if error]
    if not bad:
        return None
    text = smiles[bad[0]]
    shown = f"{printable(text)!r} " if isinstance(text, str) else ""
    first = f"the first is number {bad[0]}, counted from 0: {shown}{errors[bad[0]]}"
    return f"{len(bad)} of {len(smiles)} SMILES cannot be used; {first}"
