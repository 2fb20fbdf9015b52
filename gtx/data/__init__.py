"""Molecules in bulk: tables, row ledger, targets, splits, named data sets, store and batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gtx.lazy import lazy_names

if TYPE_CHECKING:
    from gtx.data.batches import FixedFeatures, PairBudgetSampler, keep
    from gtx.data.capacity import CapacitySampler, CapacityStore, cut_to_capacity, fitting_capacity
    from gtx.data.columns import Row, Table, column_index
    from gtx.data.division import Division, cross_splits, k_folds, repeated_splits
    from gtx.data.feature_columns import FeatureColumns
    from gtx.data.featurising import (
        Featurised,
        chunk_size,
        default_workers,
        featurise,
        featurise_stream,
        in_workers,
        process_pool,
        stop_workers,
        worth_workers,
    )
    from gtx.data.file import File
    from gtx.data.ledger import Ledger, describe
    from gtx.data.named_sets import SETS, NamedSet, load_set
    from gtx.data.pyg import from_pyg
    from gtx.data.similarity import Nearest, nearest, nearest_tanimoto
    from gtx.data.split_methods import (
        SPLIT_METHODS,
        Candidates,
        SplitMethod,
        cluster_groups,
        grouped,
        kennard_stone_split,
        kmeans_groups,
        split_groups,
        split_method,
        time_split,
        times,
    )
    from gtx.data.splits import (
        SPLITS,
        Split,
        check_shares,
        column_split,
        leakage,
        ordered_split,
        random_split,
        read_split,
        scaffold_split,
        write_split,
    )
    from gtx.data.store import MoleculeStore
    from gtx.data.table_writer import TableWriter, fresh_name
    from gtx.data.tables import open_table
    from gtx.data.targets import Duplicates, conflicting_duplicates, with_components


# tables need no torch
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "columns": (
            "Row",
            "Table",
            "column_index",
        ),
        "feature_columns": ("FeatureColumns",),
        "tables": ("open_table",),
        "targets": (
            "with_components",
            "Duplicates",
            "conflicting_duplicates",
        ),
        "table_writer": (
            "TableWriter",
            "fresh_name",
        ),
        "file": ("File",),
        "ledger": (
            "Ledger",
            "describe",
        ),
        "splits": (
            "SPLITS",
            "Split",
            "check_shares",
            "column_split",
            "leakage",
            "ordered_split",
            "random_split",
            "read_split",
            "scaffold_split",
            "write_split",
        ),
        "split_methods": (
            "SPLIT_METHODS",
            "Candidates",
            "SplitMethod",
            "grouped",
            "split_groups",
            "split_method",
            "time_split",
            "times",
            "cluster_groups",
            "kennard_stone_split",
            "kmeans_groups",
        ),
        "division": (
            "Division",
            "cross_splits",
            "k_folds",
            "repeated_splits",
        ),
        "similarity": (
            "Nearest",
            "nearest",
            "nearest_tanimoto",
        ),
        "named_sets": (
            "SETS",
            "NamedSet",
            "load_set",
        ),
        "featurising": (
            "Featurised",
            "chunk_size",
            "featurise",
            "featurise_stream",
            "worth_workers",
            "default_workers",
            "in_workers",
            "process_pool",
            "stop_workers",
        ),
        "store": ("MoleculeStore",),
        "batches": (
            "PairBudgetSampler",
            "FixedFeatures",
            "keep",
        ),
        "capacity": (
            "cut_to_capacity",
            "CapacityStore",
            "CapacitySampler",
            "fitting_capacity",
        ),
        "pyg": ("from_pyg",),
    },
)
__all__ = [
    "SETS",
    "SPLITS",
    "SPLIT_METHODS",
    "Candidates",
    "CapacitySampler",
    "CapacityStore",
    "Division",
    "Duplicates",
    "FeatureColumns",
    "Featurised",
    "File",
    "FixedFeatures",
    "Ledger",
    "MoleculeStore",
    "NamedSet",
    "Nearest",
    "PairBudgetSampler",
    "Row",
    "Split",
    "SplitMethod",
    "Table",
    "TableWriter",
    "check_shares",
    "chunk_size",
    "cluster_groups",
    "column_index",
    "column_split",
    "conflicting_duplicates",
    "cross_splits",
    "cut_to_capacity",
    "default_workers",
    "describe",
    "featurise",
    "featurise_stream",
    "fitting_capacity",
    "fresh_name",
    "from_pyg",
    "grouped",
    "in_workers",
    "k_folds",
    "keep",
    "kennard_stone_split",
    "kmeans_groups",
    "leakage",
    "load_set",
    "nearest",
    "nearest_tanimoto",
    "open_table",
    "ordered_split",
    "process_pool",
    "random_split",
    "read_split",
    "repeated_splits",
    "scaffold_split",
    "split_groups",
    "split_method",
    "stop_workers",
    "time_split",
    "times",
    "with_components",
    "worth_workers",
    "write_split",
]
