"""Reading of a table into molecules with labels, divided into training, validation and test rows."""

from __future__ import annotations

from gtx.data import InputFile
from gtx.dataset.loading import get_stratification_labels, load_dataset, select_rows_to_split
from gtx.dataset.settings import Dataset, DataSettings, LabelledMolecules, collect_data_config, hash_file

__all__ = [
    "DataSettings",
    "Dataset",
    "InputFile",
    "LabelledMolecules",
    "collect_data_config",
    "get_stratification_labels",
    "hash_file",
    "load_dataset",
    "select_rows_to_split",
]
