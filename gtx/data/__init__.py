"""Molecules in bulk: tables, row ledger, targets, splits, named data sets, store and batches."""

from __future__ import annotations

from gtx.lazy import lazy_names

# tables need no torch
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "rows": ("Row", "Table"),
        "columns": ("column_index",),
        "feature_columns": ("FeatureColumns",),
        "tables": ("open_table",),
        "components": ("with_components",),
        "table_writer": ("TableWriter", "fresh_name"),
        "ledger": ("Ledger", "describe"),
        "targets": ("Duplicates", "conflicting_duplicates"),
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
        "split_methods": ("SPLIT_METHODS", "Candidates", "SplitMethod", "grouped", "split_groups", "split_method"),
        "division": ("Division",),
        "time_split": ("time_split", "times"),
        "clusters": ("cluster_groups", "kennard_stone_split", "kmeans_groups"),
        "folds": ("cross_splits", "k_folds", "repeated_splits"),
        "similarity": ("Nearest", "nearest", "nearest_tanimoto"),
        "named_sets": ("SETS", "NamedSet", "load_set"),
        "featurising": (
            "Featurised",
            "chunk_size",
            "featurise",
            "featurise_stream",
            "worth_workers",
        ),
        "preparing": ("prepare",),
        "workers": ("default_workers", "in_workers", "stop_workers"),
        "store": ("MoleculeStore",),
        "batches": ("PairBudgetSampler",),
        "capacity_batch": ("cut_to_capacity",),
        "capacity_store": ("CapacityStore",),
        "kept": ("Kept", "keep"),
        "capacity_sampler": ("CapacitySampler", "fitting_capacity"),
        "pyg": ("from_pyg",),
    },
)
