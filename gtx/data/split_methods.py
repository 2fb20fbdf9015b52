"""All ways to divide the rows of a table, by name. A new one is a function and a line of `SPLIT_METHODS`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gtx.data.splits import SPLITS, Split, random_split, scaffold_split
from gtx.errors import InputError, did_you_mean


@dataclass(frozen=True)
class Candidates:
    """The n rows to be divided.

    Attributes:
        smiles: their canonical SMILES.
        sizes: of train, val and test, as in `gtx.data.random_split`.
        seed: of all that is drawn.
        values: what `SplitMethod.reads` made of their cells, for methods that read a column.
        together: whether a random split keeps all rows of a molecule in one part.
    """

    smiles: Sequence[str]
    sizes: Sequence[float] = (0.8, 0.1, 0.1)
    seed: int = 0
    values: np.ndarray | None = None
    together: bool = True


@dataclass(frozen=True)
class SplitMethod:
    """One way to divide.

    Attributes:
        about: what it does, in a few words.
        divide: cuts the rows in three.
        groups: a label per row; rows of one label stay together. None: it makes no groups, and thus no folds.
        reads: where it needs a column: its n cells to n values, and which of them could be read, bool `[n]`.
        spreads: whether folds may spread classes evenly; groups are too unequal for that, but for single molecules.
        expects: what such a cell should hold.
        seeded: whether a seed decides anything.
    """

    about: str
    divide: Callable[[Candidates], Split]
    groups: Callable[[Candidates], Sequence[str]] | None = None
    reads: Callable[[Sequence[str]], tuple[np.ndarray, np.ndarray]] | None = None
    expects: str = "filled"
    spreads: bool = False
    seeded: bool = True


def grouped(groups: Callable[[Candidates], Sequence[str]], about: str, **more: Any) -> SplitMethod:
    """A method whose groups are shuffled; each goes to the first part that has room for it."""

    def divide(rows: Candidates) -> Split:
        labels = groups(rows)
        if (found := len(set(labels))) < len(SPLITS):
            raise InputError(f"a split needs at least 3 groups of rows that stay together, and there are {found}")
        order = np.argsort(np.array(labels, dtype=str), kind="stable")  # not as rows come: that decides nothing
        split = random_split(len(labels), rows.sizes, rows.seed, [labels[i] for i in order])
        return {part: np.sort(order[index]) for part, index in split.items()}

    return SplitMethod(about, divide, groups, **more)


def _random(rows: Candidates) -> Split:
    return random_split(len(rows.smiles), rows.sizes, rows.seed, rows.smiles if rows.together else None)


def _scaffolds(rows: Candidates) -> list[str]:
    from gtx.molecules import scaffold

    return [scaffold(text) for text in rows.smiles]


def _clusters(rows: Candidates) -> list[str]:
    from gtx.data.clusters import cluster_groups

    return cluster_groups(rows.smiles)


def _kmeans(rows: Candidates) -> list[str]:
    from gtx.data.clusters import kmeans_groups

    return kmeans_groups(rows.smiles, rows.seed)


def _kennard_stone(rows: Candidates) -> Split:
    from gtx.data.clusters import kennard_stone_split

    return kennard_stone_split(rows.smiles, rows.sizes, rows.seed)


def _by_time(rows: Candidates) -> Split:
    from gtx.data.time_split import time_split

    return time_split(rows.values, rows.sizes)


def _labels(cells: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    values = np.array([cell.strip() for cell in cells], dtype=object)
    return values, values != ""


def _times(cells: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    from gtx.data.time_split import times

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
    """The method of a name.

    Raises:
        InputError: there is none.
    """
    if name not in SPLIT_METHODS:
        near = did_you_mean(name, SPLIT_METHODS)
        raise InputError(f"split: expected one of {', '.join(SPLIT_METHODS)}, got {name!r}{near}")
    return SPLIT_METHODS[name]


def split_groups(name: str, smiles: Sequence[str], seed: int = 0) -> list[str]:
    """A label for each molecule, such as its cluster: `groups` for scikit-learn's `GroupKFold` and its like.

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
