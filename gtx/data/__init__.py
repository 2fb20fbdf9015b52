"""Data handling: tables, errors of rows, targets, splits, public data sets, stores of molecules and batches."""

from __future__ import annotations

from gtx.data.batches import PairBudgetSampler
from gtx.data.feature_columns import FeatureColumns
from gtx.data.featurising import FeaturisationResult, featurise, from_pyg
from gtx.data.public_datasets import PUBLIC_DATASETS, PublicDataset, load_public_dataset
from gtx.data.rows import Row, RowLog, Table
from gtx.data.similarity import NearestTrainingMolecules, find_nearest_training_molecules
from gtx.data.splits import (
    SPLIT_METHODS,
    Split,
    SplitMethod,
    SplitSettings,
    compute_group_labels,
    cross_validation_splits,
    random_split,
    repeated_cross_validation_splits,
)
from gtx.data.store import MoleculeStore
from gtx.data.table_writer import TableWriter
from gtx.data.tables import open_table

__all__ = [
    "PUBLIC_DATASETS",
    "SPLIT_METHODS",
    "FeatureColumns",
    "FeaturisationResult",
    "MoleculeStore",
    "NearestTrainingMolecules",
    "PairBudgetSampler",
    "PublicDataset",
    "Row",
    "RowLog",
    "Split",
    "SplitMethod",
    "SplitSettings",
    "Table",
    "TableWriter",
    "compute_group_labels",
    "cross_validation_splits",
    "featurise",
    "find_nearest_training_molecules",
    "from_pyg",
    "load_public_dataset",
    "open_table",
    "random_split",
    "repeated_cross_validation_splits",
]
