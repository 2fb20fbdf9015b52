"""A table to molecules with labels, divided into training, validation and test rows."""

from __future__ import annotations

from gtx.dataset.dividing import candidates, spread
from gtx.dataset.loading import load
from gtx.dataset.rows import Dataset, File
from gtx.dataset.settings import DataSettings, fingerprint, sha256

__all__ = ["DataSettings", "Dataset", "File", "candidates", "fingerprint", "load", "sha256", "spread"]
