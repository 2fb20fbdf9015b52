"""Methods to split: by chance, scaffold, cluster, time and others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gtx.data.splits import SPLITS, Split, ordered_split, part_counts, random_split, scaffold_split
from gtx.errors import InputError, did_you_mean
from gtx.molecules import butina_clusters, kennard_stone_order, morgan_counts

# --- Split by time: the oldest rows train, the newest are test.


def times(cells: Sequence[str]) -> np.ndarray:
    """Cells as numbers that can be compared: float64 `[n]`, NaN for those that cannot be read.

    All are numbers, such as years, or all are dates as ISO 8601 writes them: `2024`, `2024-05`, `2024-05-17`,
    `2024-05-17T08:30:00+02:00`. What more of the cells can be read as decides. 03/04/2024 is no such date: it is March
    to some and April to others.
    """
    import pandas as pd

    texts = pd.Series([cell.strip() for cell in cells], dtype=str)
    numbers = pd.to_numeric(texts, errors="coerce").to_numpy(float)
    numbers = np.where(np.isfinite(numbers), numbers, np.nan)
    dates = pd.to_datetime(texts, format="ISO8601", errors="coerce", utc=True)
    if dates.notna().sum() <= np.isfinite(numbers).sum():
        return numbers
    microseconds = dates.dt.as_unit("us").astype("int64").to_numpy(float)
    return np.where(dates.notna(), microseconds, np.nan)


def time_split(when: np.ndarray, sizes: Sequence[float] = (0.8, 0.1, 0.1)) -> Split:
    """Split by time: oldest rows for training, next for validation, newest for test; equal times stay together.

    Args:
        when: float `[n]`, of each row.
        sizes: as in `random_split`; kept as nearly as rows of one time allow.

    Raises:
        InputError: for bad sizes, or fewer than three different times.
    """
    _, row = np.unique(when, return_inverse=True)
    order = np.argsort(row, kind="stable")
    return ordered_split(np.split(order, np.flatnonzero(np.diff(row[order])) + 1), sizes, "times")


# --- Clusters of similar molecules, and a diverse order of molecules.

MOST_COMPARED = 20_000
"""Largest number of different molecules of which all pairs are compared: half a minute and 400 MB."""
MOST_CLUSTERS = 100  # of k-means, and no more than a tenth of the molecules
CHUNK = 10_000  # molecules whose fingerprints are written out at a time


def cluster_groups(smiles: Sequence[str]) -> list[str]:
    """Return the Butina cluster of each row, see `gtx.molecules.butina_clusters`. The order of rows changes no cluster.

    Args:
        smiles: canonical SMILES per row.

    Raises:
        InputError: more than `MOST_COMPARED` different molecules.
    """
    molecules, row = _different(smiles)
    _check_number(molecules, "clusters", "split by 'kmeans' or 'scaffold'")
    return [str(cluster) for cluster in butina_clusters(molecules)[row]]


def kmeans_groups(smiles: Sequence[str], seed: int = 0) -> list[str]:
    """Cluster the rows by k-means of Morgan bits (radius 2, 2048 bits), by scikit-learn's `KMeans`.

    There is a cluster for ten different molecules, at least 3 and at most 100. The order of rows changes no cluster.
    Time and memory grow with the number of rows: 6,000 molecules of ZINC take 2 s on one core.

    Args:
        smiles: canonical SMILES per row.
        seed: of the first centres.
    """
    from scipy import sparse
    from sklearn.cluster import KMeans

    molecules, row = _different(smiles)
    chunks = (morgan_counts(molecules[start : start + CHUNK]) > 0 for start in range(0, len(molecules), CHUNK))
    bits = sparse.vstack([sparse.csr_array(chunk.astype(np.float32)) for chunk in chunks], format="csr")
    clusters = min(len(molecules), max(3, min(MOST_CLUSTERS, len(molecules) // 10)))
    labels = KMeans(clusters, n_init=1, random_state=seed).fit_predict(bits)
    return [str(cluster) for cluster in labels[row]]


def kennard_stone_split(smiles: Sequence[str], sizes: Sequence[float] = (0.8, 0.1, 0.1), seed: int = 0) -> Split:
    """Train on the most diverse molecules; divide the others, all similar to one of these, at random.

    It is the easiest test: the model is never asked far from what it knows. See `gtx.molecules.kennard_stone_order`.
    All rows of a molecule are in one part.

    Args:
        smiles: canonical SMILES per row.
        sizes: as in `random_split`.
        seed: of the molecules that validate or are test.

    Raises:
        InputError: bad sizes, fewer than three different molecules, or more than `MOST_COMPARED`.
    """
    molecules, row = _different(smiles)
    _check_number(molecules, "an order of Kennard and Stone", "split by 'random' or 'kmeans'")
    train = part_counts(len(smiles), sizes)[0]
    picked = kennard_stone_order(molecules, min(len(molecules), max(2, train))) if len(molecules) > 1 else []
    rows_each = np.bincount(row)
    picked = picked[: 1 + int(np.searchsorted(rows_each[picked].cumsum(), train))]  # some molecules have several rows
    rest = np.setdiff1d(np.arange(len(molecules)), picked)
    order = np.concatenate([np.array(picked, int), np.random.default_rng(seed).permutation(rest)])
    held = np.split(np.argsort(row, kind="stable"), rows_each.cumsum()[:-1])
    return ordered_split([held[molecule] for molecule in order], sizes, "molecules")


def _different(smiles: Sequence[str]) -> tuple[list[str], np.ndarray]:
    """Return the different molecules, sorted, and of each row the number of its molecule."""
    molecules, row = np.unique(np.array(smiles, dtype=object), return_inverse=True)
    return molecules.tolist(), row


def _check_number(molecules: Sequence[str], what: str, instead: str) -> None:
    if len(molecules) > MOST_COMPARED:
        found = f"there are {len(molecules):,} different ones: {instead}"
        raise InputError(f"{what} of molecules can be had of up to {MOST_COMPARED:,} different ones, and {found}")


# --- All ways to divide the rows of a table, by name. A new one is a function and a line of `SPLIT_METHODS`.


@dataclass(frozen=True)
class Candidates:
    """The n rows to be divided.

    Attributes:
        smiles: their canonical SMILES.
        sizes: of train, val and test, as in `gtx.data.random_split`.
        seed: of all that is drawn.
        values: what `SplitMethod.reads` made of their cells, for methods that read a column.
        group_duplicates: whether a random split keeps all rows of a molecule in one part.
    """

    smiles: Sequence[str]
    sizes: Sequence[float] = (0.8, 0.1, 0.1)
    seed: int = 0
    values: np.ndarray | None = None
    group_duplicates: bool = True


@dataclass(frozen=True)
class SplitMethod:
    """Method of dividing rows.

    Attributes:
        about: a short description.
        divide: cuts the rows in three.
        groups: a label per row; rows of one label stay together. None: no groups, and thus no folds.
        reads: parser of the column it needs, if any: n cells to n values, and bool `[n]`, True for readable cells.
        spreads: whether folds may spread classes evenly; groups are too unequal for that, but for single molecules.
        expects: expected content of such a cell, for messages.
        seeded: whether the result depends on a seed.
    """

    about: str
    divide: Callable[[Candidates], Split]
    groups: Callable[[Candidates], Sequence[str]] | None = None
    reads: Callable[[Sequence[str]], tuple[np.ndarray, np.ndarray]] | None = None
    expects: str = "filled"
    spreads: bool = False
    seeded: bool = True


def grouped(groups: Callable[[Candidates], Sequence[str]], about: str, **more: Any) -> SplitMethod:
    """Make a method whose groups are shuffled; each goes to the first part that has room for it."""

    def divide(rows: Candidates) -> Split:
        labels = groups(rows)
        if (found := len(set(labels))) < len(SPLITS):
            raise InputError(f"a split needs at least 3 groups of rows that stay together, and there are {found}")
        order = np.argsort(np.array(labels, dtype=str), kind="stable")  # not as rows come: that decides nothing
        split = random_split(len(labels), rows.sizes, rows.seed, [labels[i] for i in order])
        return {part: np.sort(order[index]) for part, index in split.items()}

    return SplitMethod(about, divide, groups, **more)


def _random(rows: Candidates) -> Split:
    return random_split(len(rows.smiles), rows.sizes, rows.seed, rows.smiles if rows.group_duplicates else None)


def _scaffolds(rows: Candidates) -> list[str]:
    from gtx.molecules import scaffold

    return [scaffold(text) for text in rows.smiles]


def _clusters(rows: Candidates) -> list[str]:
    from gtx.data.split_methods import cluster_groups

    return cluster_groups(rows.smiles)


def _kmeans(rows: Candidates) -> list[str]:
    from gtx.data.split_methods import kmeans_groups

    return kmeans_groups(rows.smiles, rows.seed)


def _kennard_stone(rows: Candidates) -> Split:
    from gtx.data.split_methods import kennard_stone_split

    return kennard_stone_split(rows.smiles, rows.sizes, rows.seed)


def _by_time(rows: Candidates) -> Split:
    from gtx.data.split_methods import time_split

    return time_split(rows.values, rows.sizes)


def _labels(cells: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    values = np.array([cell.strip() for cell in cells], dtype=object)
    return values, values != ""


def _times(cells: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    from gtx.data.split_methods import times

    values = times(cells)
    return values, ~np.isnan(values)


SPLIT_METHODS = {
    "random": SplitMethod("rows drawn at random", _random, lambda rows: rows.smiles, spreads=True),
    "scaffold": SplitMethod(
        "molecules of one ring system together, rare ones tested",
        lambda rows: scaffold_split(_scaffolds(rows), rows.sizes),
        _scaffolds,
        seeded=False,
    ),
    "cluster": grouped(_clusters, "similar molecules together, by Butina's clusters"),
    "kmeans": grouped(_kmeans, "similar molecules together, by k-means"),
    "kennard-stone": SplitMethod("the most unlike molecules train", _kennard_stone),
    "group": grouped(lambda rows: rows.values.tolist(), "rows with one cell in --split-by together", reads=_labels),
    "time": SplitMethod(
        "the oldest by --split-by train, the latest are test",
        _by_time,
        reads=_times,
        expects="a number or a date such as 2024-05-17",
        seeded=False,
    ),
}


def split_method(name: str) -> SplitMethod:
    """Return the method of a name.

    Raises:
        InputError: there is none.
    """
    if name not in SPLIT_METHODS:
        near = did_you_mean(name, SPLIT_METHODS)
        raise InputError(f"split: expected one of {', '.join(SPLIT_METHODS)}, got {name!r}{near}")
    return SPLIT_METHODS[name]


def split_groups(name: str, smiles: Sequence[str], seed: int = 0) -> list[str]:
    """Return a label for each molecule, such as its cluster: `groups` for scikit-learn's `GroupKFold` and its like.

    Args:
        name: a method that makes groups of molecules: "random" (rows of one molecule), "scaffold", "cluster", "kmeans".
        smiles: canonical SMILES per row.
        seed: of the method.

    Raises:
        InputError: there is no such method, or it makes no groups of molecules.
    """
    method = split_method(name)
    if method.groups is None or method.reads is not None:
        able = ", ".join(key for key, one in SPLIT_METHODS.items() if one.groups and not one.reads)
        raise InputError(f"split {name!r} makes no groups of molecules; these do: {able}")
    return list(method.groups(Candidates(smiles, seed=seed)))
