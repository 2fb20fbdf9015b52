"""Data handling: tables, errors of rows, targets, splits, public data sets, stores of molecules and batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gtx.lazy import lazy_names

if TYPE_CHECKING:
    from gtx.data.batches import (
        ConstantShapeSampler,
        ConstantShapeStore,
        PairBudgetSampler,
        PrecomputedEncodings,
        choose_batch_shape,
        make_constant_shape_batch,
        precompute_encodings,
    )
    from gtx.data.columns import Row, Table, find_column
    from gtx.data.feature_columns import FeatureColumns
    from gtx.data.featurising import (
        FeaturisationResult,
        default_chunk_size,
        default_worker_count,
        featurise,
        featurise_stream,
        from_pyg,
        make_process_pool,
        map_in_workers,
        min_chunks_for_workers,
        open_process_pool,
        stop_workers,
    )
    from gtx.data.joining import JoinedTable, join_tables
    from gtx.data.ledger import InputFile, RowLedger, format_row_message
    from gtx.data.public_datasets import PUBLIC_DATASETS, PublicDataset, load_public_dataset
    from gtx.data.similarity import NearestNeighbours, find_nearest_neighbours
    from gtx.data.split_settings import SplitSettings
    from gtx.data.splits import (
        SPLIT_METHODS,
        SPLIT_PARTS,
        RowsToSplit,
        Split,
        SplitMethod,
        assign_folds,
        check_split_shares,
        compute_split_groups,
        count_shared_molecules,
        cross_validation_splits,
        get_split_method,
        group_by_butina,
        group_by_kmeans,
        kennard_stone_split,
        make_group_split,
        ordered_split,
        parse_times,
        random_split,
        repeated_cross_validation_splits,
        scaffold_split,
        split_by_column,
        time_split,
        write_split,
    )
    from gtx.data.store import MoleculeStore
    from gtx.data.table_writer import TableWriter, find_unused_column_name
    from gtx.data.tables import open_table
    from gtx.data.targets import DuplicateSummary, add_component_columns, find_duplicates


# tables need no torch
__getattr__, __dir__ = lazy_names(__name__)
__all__ = [
    "PUBLIC_DATASETS",
    "SPLIT_METHODS",
    "SPLIT_PARTS",
    "ConstantShapeSampler",
    "ConstantShapeStore",
    "DuplicateSummary",
    "FeatureColumns",
    "FeaturisationResult",
    "InputFile",
    "JoinedTable",
    "MoleculeStore",
    "NearestNeighbours",
    "PairBudgetSampler",
    "PrecomputedEncodings",
    "PublicDataset",
    "Row",
    "RowLedger",
    "RowsToSplit",
    "Split",
    "SplitMethod",
    "SplitSettings",
    "Table",
    "TableWriter",
    "add_component_columns",
    "assign_folds",
    "check_split_shares",
    "choose_batch_shape",
    "compute_split_groups",
    "count_shared_molecules",
    "cross_validation_splits",
    "default_chunk_size",
    "default_worker_count",
    "featurise",
    "featurise_stream",
    "find_column",
    "find_duplicates",
    "find_nearest_neighbours",
    "find_unused_column_name",
    "format_row_message",
    "from_pyg",
    "get_split_method",
    "group_by_butina",
    "group_by_kmeans",
    "join_tables",
    "kennard_stone_split",
    "load_public_dataset",
    "make_constant_shape_batch",
    "make_group_split",
    "make_process_pool",
    "map_in_workers",
    "min_chunks_for_workers",
    "open_process_pool",
    "open_table",
    "ordered_split",
    "parse_times",
    "precompute_encodings",
    "random_split",
    "repeated_cross_validation_splits",
    "scaffold_split",
    "split_by_column",
    "stop_workers",
    "time_split",
    "write_split",
]
