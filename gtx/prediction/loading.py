"""From a model file to what predicts with it."""

from __future__ import annotations

from pathlib import Path

from gtx.errors import InputError
from gtx.prediction.base import BasePredictor
from gtx.prediction.model_file import load_model
from gtx.prediction.predictor import Predictor
from gtx.prediction.sequence_predictor import SequencePredictor


def load(path: str | Path, device: str | None = None, beams: int | None = None) -> BasePredictor:
    """Open a model file (also as `gtx.load`).

    Args:
        path: a `model.gtx`.
        device: as torch names it; by default a GPU if there is one.
        beams: of a model that writes sequences, see `SequencePredictor`.

    Returns:
        A `Predictor`, or a `SequencePredictor` if the model writes sequences.

    Raises:
        InputError: there is no such file, it cannot be used, there is no such device, or `beams` does not suit.
    """
    members, header = load_model(path)
    if beams is not None and header.task != "sequence":
        raise InputError(f"{path} predicts numbers ({header.task}): beams are for a model that writes sequences")
    try:
        if header.task == "sequence":
            return SequencePredictor(members, header, device, 1 if beams is None else beams)
        return Predictor(members, header, device)
    except (RuntimeError, AssertionError) as reason:  # torch built without CUDA asserts
        raise InputError(f"device {device!r} cannot be used: {str(reason).splitlines()[0]}") from None
