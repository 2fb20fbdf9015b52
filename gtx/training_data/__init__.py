"""Reading of a table into molecules with labels, divided into training, validation and test rows."""

from __future__ import annotations

from gtx.training_data.loading import load_training_table
from gtx.training_data.settings import Dataset, DataSettings

__all__ = [
    "DataSettings",
    "Dataset",
    "load_training_table",
]
