"""Prediction with an exported model: RDKit, numpy and onnxruntime, without torch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gtx.base.errors import InputError, first_line
from gtx.molecules import Featuriser
from gtx.molecules.perception import featurise_texts

INPUTS = ("atoms", "bonds", "bond_codes", "descriptors")
"""Inputs of an exported model, arrays of a `gtx.molecules.Molecule`: uint8 `[N, A]`, int32 `[2, E]`, uint8 `[E, F]` and
float32 `[D]`."""
METADATA = "gtx"
"""Key of the description of the model, JSON, among the metadata of the file."""


class ExportedModel:
    """Predictor for a model file (ONNX) that `gtx export` wrote; it runs by onnxruntime, without torch.

    Args:
        file: path of the file, or its bytes.

    Attributes:
        about: description of the model: `columns` of the answer, `targets`, `units`, settings of the `featuriser`,
            `gtx` version, and `checked`, the number of molecules compared and the largest difference.

    Raises:
        InputError: the file is missing, or `gtx export` did not write it.
    """

    def __init__(self, file: str | Path | bytes) -> None:
        import onnxruntime

        if not isinstance(file, bytes) and not Path(file).is_file():
            raise InputError(f"there is no file {file}")
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = 1  # the matrices of one molecule are small
        source, name = (file, "the model") if isinstance(file, bytes) else (str(file), str(file))
        try:
            self.session: Any = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        except Exception as reason:  # onnxruntime has an exception of its own for each kind of damage
            raise InputError(f"{name} cannot be used by onnxruntime: {first_line(reason)}") from None
        entries = self.session.get_modelmeta().custom_metadata_map
        if METADATA not in entries:
            raise InputError(f"{name} is an ONNX file, but gtx export did not write it")
        self.about: dict[str, Any] = json.loads(entries[METADATA])
        self.columns: list[str] = self.about["columns"]
        self.featuriser: Featuriser = Featuriser(**self.about["featuriser"])

    def predict(self, smiles: Sequence[str]) -> dict[str, Any]:
        """Predict molecules given as SMILES.

        Returns:
            A dictionary with an array per name of `columns`, float64 `[n]`, NaN if a molecule could not be read; and
            `error`, a list of texts, None without an error.
        """
        read = featurise_texts(self.featuriser, smiles, smiles=False)
        atoms, bonds = read.atom_counts.cumsum(), read.bond_counts.cumsum()
        molecules = zip(
            np.split(read.atoms, atoms)[:-1],
            np.split(read.bonds, bonds, axis=1)[:-1],
            np.split(read.bond_codes, bonds)[:-1],
            read.descriptors,
            strict=True,
        )
        good = [i for i, error in enumerate(read.errors) if error is None]
        answers = np.full((len(smiles), len(self.columns)), np.nan)
        for i, arrays in zip(good, molecules, strict=True):
            answers[i] = self.session.run(None, dict(zip(INPUTS, arrays, strict=True)))[0]
        return dict(zip(self.columns, answers.T, strict=True)) | {"error": read.errors}

    def __repr__(self) -> str:
        return f"ExportedModel({', '.join(self.columns)})"
