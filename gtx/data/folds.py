"""Folds: every row is test once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gtx.data.splits import Split
from gtx.errors import InputError

INNER = 10  # of the rows that are not test, a tenth validates


def k_folds(
    groups: Sequence[str], folds: int, seed: int | Sequence[int] = 0, classes: Sequence[int] | None = None
) -> list[np.ndarray]:
    """Deal rows to folds of like size, so that no group is in two of them.

    Groups are shuffled, then dealt the largest first, each to the fold with fewest rows. A group of more than
    `n / folds` rows (in a set of small molecules those without a ring, if groups are scaffolds) makes a larger fold.

    Args:
        groups: one per row, e.g. canonical SMILES, so that a molecule measured twice is in one fold, or scaffolds.
        folds: how many, 2 or more.
        seed: decides who is dealt where.
        classes: one per row; each class is then spread evenly, as far as groups allow. A group counts as its first
            row's.

    Returns:
        Row indices of each fold, int64, ascending; together each row once.

    Raises:
        InputError: fewer groups than folds, or fewer than 2 folds.
    """
    _, first, group = np.unique(np.asarray(groups, dtype=str), return_index=True, return_inverse=True)
    sizes = np.bincount(group, minlength=len(first))
    if folds < 2:
        raise InputError(f"folds: expected 2 or more, got {folds}")
    if len(sizes) < folds:
        raise InputError(f"{folds} folds need as many groups of rows that stay together, and there are {len(sizes)}")
    kinds = np.zeros(len(sizes), int) if classes is None else np.unique(classes, return_inverse=True)[1][first]
    order = np.random.default_rng(seed).permutation(len(sizes))
    order = order[np.argsort(-sizes[order], kind="stable")]
    held = np.zeros((folds, kinds.max() + 1), int)
    fold = np.empty(len(sizes), int)
    for g in order:
        fold[g] = np.lexsort((held.sum(1), held[:, kinds[g]]))[0]
        held[fold[g], kinds[g]] += sizes[g]
    return [np.flatnonzero(fold[group] == f) for f in range(folds)]


def cross_splits(
    groups: Sequence[str], folds: int, seed: int | Sequence[int] = 0, classes: Sequence[int] | None = None
) -> list[Split]:
    """One split per fold: it is test, a tenth of the other rows validates, the rest trains. Arguments as of `k_folds`.

    Raises:
        InputError: fewer groups than folds, or too few of them to validate on.
    """
    splits = []
    groups = np.asarray(groups, dtype=str)
    for test in k_folds(groups, folds, seed, classes):
        rest = np.setdiff1d(np.arange(len(groups)), test)
        inner = min(INNER, len(set(groups[rest].tolist())))
        if inner < 2:
            raise InputError("the rows that are not test are one group of rows that stay together: none can validate")
        parts = k_folds(groups[rest], inner, seed, None if classes is None else np.asarray(classes)[rest])
        val = min(parts, key=lambda part: abs(len(part) - len(rest) / INNER))  # not the one that is a large group
        splits.append({"train": np.delete(rest, val), "val": rest[val], "test": test})
    return splits


def repeated_splits(
    groups: Sequence[str], folds: int, repeats: int, seed: int = 0, classes: Sequence[int] | None = None
) -> list[list[Split]]:
    """`cross_splits` as often as `repeats` says, the rows dealt anew each time, from the seeds `(seed, repeat)`."""
    return [cross_splits(groups, folds, (seed, repeat), classes) for repeat in range(repeats)]
