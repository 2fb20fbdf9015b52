"""A table to molecules with labels, divided into training, validation and test rows."""

from __future__ import annotations

from gtx.data import File
from gtx.dataset.loading import candidates, load, stratified_classes
from gtx.dataset.settings import Dataset, DataSettings, LabelledMolecules, fingerprint, sha256

__all__ = [
    "DataSettings",
    "Dataset",
    "File",
    "LabelledMolecules",
    "candidates",
    "fingerprint",
    "load",
    "sha256",
    "stratified_classes",
]
