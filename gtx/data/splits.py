"""Splits: which rows train, which choose the epoch, which are only scored."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import combinations

import numpy as np

from gtx.data.ledger import Ledger
from gtx.data.table_writer import TableWriter
from gtx.data.tables import open_table
from gtx.errors import InputError, printable

SPLITS = ("train", "val", "test")

Split = dict[str, np.ndarray]
"""int64 row indices, ascending, under "train", "val" and "test"."""

_SPELLINGS = {"train": "train", "test": "test"} | dict.fromkeys(("val", "valid", "validation", "dev"), "val")


def random_split(
    n: int, sizes: Sequence[float] = (0.8, 0.1, 0.1), seed: int = 0, groups: Sequence[str] | None = None
) -> Split:
    """Shuffle n rows and divide them in three, none of them empty.

    Groups of rows that stay together are shuffled; each goes to the first of train, val and test that has room for it,
    or to train. Where every row is a group of its own the split is that without groups.

    Args:
        n: how many rows.
        sizes: of train, val and test, in any unit: shares or counts.
        seed: the same seed gives the same split.
        groups: one per row, e.g. canonical SMILES, so that a molecule measured twice is in one part; by default each
            row is a group of its own.

    Raises:
        InputError: for sizes that are not three positive numbers, or fewer than three groups.
    """
    held = _grouped(range(n) if groups is None else groups)
    if groups is not None and len(held) < len(SPLITS):
        rows = "1 row holds" if n == 1 else f"{n} rows hold"
        raise InputError(f"a split needs at least 3 different molecules, and the {rows} {len(held)}")
    order = np.random.default_rng(seed).permutation(len(held))
    return _filled([held[g] for g in order], part_counts(n, sizes), "train")


def scaffold_split(scaffolds: Sequence[str], sizes: Sequence[float] = (0.8, 0.1, 0.1)) -> Split:
    """Keep molecules of one scaffold together: the largest groups train, the rest go where they fit.

    Groups come in order of size, ties in order of their scaffold; each goes to the first of train, val and test that
    has room for it, or to test. The largest group always trains, and no part stays empty. (Scaffolds: Bemis & Murcko
    1996, https://doi.org/10.1021/jm9602928; the split: Wu et al. 2018, https://arxiv.org/abs/1703.00564, who break
    ties by position.)

    Args:
        scaffolds: per row; `gtx.molecules.scaffold` makes them. Molecules without a ring share the empty one.
        sizes: as in `random_split`.

    Raises:
        InputError: for bad sizes, or fewer than three scaffolds.
    """
    groups = _grouped(scaffolds)
    if len(groups) < len(SPLITS):
        raise InputError(f"a scaffold split needs at least 3 scaffolds, and there are {len(groups)}: split at random")
    in_order = sorted(groups, key=lambda group: (-len(group), scaffolds[group[0]]))
    return _filled(in_order, part_counts(len(scaffolds), sizes), "test")


def ordered_split(
    groups: Sequence[Sequence[int]], sizes: Sequence[float] = (0.8, 0.1, 0.1), noun: str = "groups"
) -> Split:
    """Cut an order in three: the first groups train, the next validate, the last are test.

    Args:
        groups: rows that stay together; each cut is between two groups, as near to the sizes as can be.
        sizes: as in `random_split`.
        noun: what the groups are, for messages.

    Raises:
        InputError: for bad sizes, or fewer than three groups.
    """
    train, val, _ = part_counts(sum(map(len, groups)), sizes)
    if len(groups) < len(SPLITS):
        raise InputError(f"a split needs at least 3 different {noun}, and there are {len(groups)}")
    ends = np.cumsum([len(group) for group in groups])
    first = 1 + int(np.abs(ends[:-2] - train).argmin())
    second = 1 + first + int(np.abs(ends[first:-1] - train - val).argmin())
    parts = zip(SPLITS, (groups[:first], groups[first:second], groups[second:]), strict=True)
    return {name: np.sort(np.concatenate(part)).astype(np.int64) for name, part in parts}


def column_split(values: Sequence[str], ledger: Ledger | None = None, column: str = "split") -> Split:
    """Return the split that a column of the table spells out; a part that it does not name is empty.

    Args:
        values: the column's cells: train; val, valid, validation or dev; test; in any case.
        ledger: gets a warning for each row that says anything else; such a row is in no part.
        column: its name, for messages.

    Raises:
        InputError: if no row says train.
    """
    parts: dict[str, list[int]] = {name: [] for name in SPLITS}
    for i, value in enumerate(values):
        part = spelled(value)
        if part:
            parts[part].append(i)
        elif ledger:
            ledger.warn(i + 1, column, value, "is none of train, val and test; the row is left out")
    if not parts["train"]:
        seen = ", ".join(f"'{printable(value, 40)}' ({n})" for value, n in Counter(values).most_common(8))
        raise InputError(f"split column {column!r} names no row 'train'; it holds {seen or 'nothing'}")
    return {name: np.array(part, np.int64) for name, part in parts.items()}


def spelled(cell: str) -> str | None:
    """Return the part that a cell names: train, val or test; None for any other text."""
    return _SPELLINGS.get(cell.strip().lower())


def leakage(smiles: Sequence[str | None], split: Mapping[str, np.ndarray]) -> dict[tuple[str, str], int]:
    """Count the molecules that two parts of a split share, for each pair of parts that shares any.

    Args:
        smiles: canonical SMILES per row; None, or an empty one, is no molecule.
        split: row indices of each part.
    """
    parts = {name: {smiles[i] for i in rows if smiles[i]} for name, rows in split.items()}
    shared = {(a, b): len(parts[a] & parts[b]) for a, b in combinations(parts, 2)}
    return {pair: count for pair, count in shared.items() if count}


def write_split(path: str | os.PathLike[str], split: Mapping[str, np.ndarray]) -> None:
    """Write a split as a table of row numbers (from 1, the header not counted) and part names."""
    part_of = {int(i): name for name, rows in split.items() for i in rows}
    with TableWriter(path, ["row", "split"]) as out:
        for i in sorted(part_of):
            out.write([str(i + 1), part_of[i]])


def read_split(path: str | os.PathLike[str]) -> Split:
    """Read what `write_split` wrote."""
    parts: dict[str, list[int]] = {name: [] for name in SPLITS}
    table = open_table(path, "row")
    try:
        for row in table.rows:
            number, part = row.cells
            parts[part].append(int(number) - 1)
    except (KeyError, ValueError) as reason:
        raise InputError(f"{path} is not a split as gtx writes it: {reason}") from None
    return {name: np.array(part, np.int64) for name, part in parts.items()}


def check_shares(sizes: Sequence[float]) -> None:
    """Refuse shares of train, val and test that do not add up to 1, to two decimals.

    Raises:
        InputError: for anything but three positive numbers whose sum is 1.
    """
    _require_positive(sizes)
    if round(sum(sizes), 2) == 1:
        return
    given, total = " ".join(f"{size:g}" for size in sizes), sum(sizes)
    hint = " ".join(f"{size / total:.3g}" for size in sizes)
    raise InputError(f"split sizes {given} add up to {total:g}; shares must add up to 1, for instance {hint}")


def part_counts(n: int, sizes: Sequence[float]) -> list[int]:
    """Compute the sizes of the three parts of n rows: integers that add up to n, each at least 1."""
    _require_positive(sizes)
    if n < len(SPLITS):
        raise InputError(f"{n} rows cannot be split in three")
    val, test = (max(1, round(n * size / sum(sizes))) for size in sizes[1:])
    while n - val - test < 1:
        val, test = (val - 1, test) if val >= test else (val, test - 1)
    return [n - val - test, val, test]


def _grouped(labels: Iterable[Hashable]) -> list[list[int]]:
    """Return the rows of each label, in the order in which the labels first come."""
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for i, label in enumerate(labels):
        groups[label].append(i)
    return list(groups.values())


def _filled(groups: Sequence[list[int]], counts: Sequence[int], otherwise: str) -> Split:
    """Put each group into the first part with room for it, or into `otherwise`; the first group is for training."""
    room = dict(zip(SPLITS, counts, strict=True))
    parts: dict[str, list[list[int]]] = {name: [] for name in SPLITS}
    for group in groups:
        part = next((name for name in SPLITS if room[name] >= len(group)), otherwise) if parts["train"] else "train"
        parts[part].append(group)
        room[part] -= len(group)
    for part in parts.values():
        if not part:
            part.append(max(parts.values(), key=len).pop())  # the last group of the part with most of them
    return {name: np.sort(np.concatenate(part)) for name, part in parts.items()}


def _require_positive(sizes: Sequence[float]) -> None:
    if len(sizes) != len(SPLITS) or not all(np.isfinite(size) and size > 0 for size in sizes):
        raise InputError(f"split sizes must be three positive numbers (train, val, test), not {list(sizes)}")
