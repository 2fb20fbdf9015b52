"""Splits and folds: which rows train, which choose the epoch, which are only scored; and the methods to make them."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from gtx.base.errors import InputError, did_you_mean, printable
from gtx.data.row_log import RowLog, plural
from gtx.data.table_writer import TableWriter

if TYPE_CHECKING:
    from gtx.molecules import Featuriser

SPLIT_PARTS = ("train", "val", "test")
"""Names of the three parts of a split."""

Split = dict[str, np.ndarray]
"""Division of a data set: int64 row indices, ascending, for each of the parts "train", "val" and "test"."""

Labels = Sequence[str] | Sequence[int] | np.ndarray
"""A label for each row, such as its group or its class."""

_SPELLINGS = {"train": "train", "test": "test"} | dict.fromkeys(("val", "valid", "validation", "dev"), "val")


def random_split(
    n: int, sizes: Sequence[float] = (0.8, 0.1, 0.1), seed: int = 0, groups: Sequence[str] | None = None
) -> Split:
    """Split n rows at random into training, validation and test rows; only a part of size 0 is empty.

    Groups of rows are shuffled, and no group is divided. Each group goes to the first of train, val and test that has
    room for the group, or to train. If every row is a group of its own, the split is the same as without groups.

    Args:
        n: number of rows.
        sizes: sizes of train, val and test, as shares or as counts; those of val and test may be 0.
        seed: the same seed gives the same split.
        groups: group of each row, for example of `compute_group_labels("random", smiles)`, so that all rows of a
            molecule are in one part. By default each row is a group of its own.

    Raises:
        InputError: the sizes are not three numbers, or there are fewer groups than parts.
    """
    members, parts = _grouped(range(n) if groups is None else groups), _count_parts(sizes)
    if groups is not None and len(members) < parts:
        rows = "1 row holds" if n == 1 else f"{n} rows hold"
        raise InputError(f"a split needs at least {parts} different molecules, and the {rows} {len(members)}")
    order = np.random.default_rng(seed).permutation(len(members))
    return _filled([members[g] for g in order], split_counts(n, sizes), "train")


def scaffold_split(scaffolds: Sequence[str], sizes: Sequence[float] = (0.8, 0.1, 0.1)) -> Split:
    """Split by scaffold: molecules with the same scaffold stay in one part, and the most frequent scaffolds are for
    training.

    The groups of molecules with one scaffold are sorted by size, the largest first, and groups of equal size by their
    scaffold. Each group goes to the first of train, val and test that has room for the group, or to test. The largest
    group is always in train, and only a part of size 0 is empty. (Scaffolds: Bemis & Murcko 1996, https://doi.org/10.1021/jm9602928;
    the split: Wu et al. 2018, https://arxiv.org/abs/1703.00564, who break ties by position.)

    Args:
        scaffolds: scaffold of each row, computed by `gtx.molecules.murcko_scaffold`. Molecules without a ring have the
            empty scaffold.
        sizes: as in `random_split`.

    Raises:
        InputError: for bad sizes, or fewer scaffolds than parts.
    """
    groups, parts = _grouped(scaffolds), _count_parts(sizes)
    if len(groups) < parts:
        count = f"there are {len(groups)}: split at random"
        raise InputError(f"a scaffold split needs at least {parts} scaffolds, and {count}")
    in_order = sorted(groups, key=lambda group: (-len(group), scaffolds[group[0]]))
    last = [part for part, size in zip(SPLIT_PARTS, sizes, strict=True) if size][-1]
    return _filled(in_order, split_counts(len(scaffolds), sizes), last)


def ordered_split(
    groups: Sequence[Sequence[int] | np.ndarray], sizes: Sequence[float] = (0.8, 0.1, 0.1), noun: str = "groups"
) -> Split:
    """Split groups of rows in their given order: the first are for training, the next for validation, the last for
    test.

    Args:
        groups: groups of rows; each cut is between two groups, as close to the sizes as possible.
        sizes: as in `random_split`.
        noun: name of the groups, for messages.

    Raises:
        InputError: for bad sizes, or fewer groups than parts.
    """
    counts, parts = split_counts(sum(map(len, groups)), sizes), _count_parts(sizes)
    if len(groups) < parts:
        raise InputError(f"a split needs at least {parts} different {noun}, and there are {len(groups)}")
    return dict(zip(SPLIT_PARTS, cut_in_order(groups, counts), strict=True))


def cut_in_order(groups: Sequence[Sequence[int] | np.ndarray], counts: Sequence[int]) -> list[np.ndarray]:
    """Cut groups of rows, in their given order, into parts of about these numbers of rows.

    Args:
        groups: groups of rows, at least as many as there are parts that are not empty.
        counts: number of rows of each part; 0 for an empty part.

    Returns:
        Row indices of each part, int64, ascending.
    """
    ends, used, left = np.cumsum([len(group) for group in groups]), 0, np.count_nonzero(counts)
    parts = []
    for count, rows in zip(counts, np.cumsum(counts).tolist(), strict=True):
        cut = used
        if count:
            left -= 1  # parts after this one, each of a group or more
            cut = used + 1 + int(np.abs(ends[used : len(groups) - left] - rows).argmin())
        parts.append(np.sort(np.concatenate([np.zeros(0, np.int64), *groups[used:cut]])).astype(np.int64))
        used = cut
    return parts


def split_by_column(
    values: Sequence[str], row_log: RowLog | None = None, column: str = "split", numbers: Sequence[int] | None = None
) -> Split:
    """Read the split from a column of the table; a part that the column does not name is empty.

    Args:
        values: cells of the column: train, test, or one of val, valid, validation and dev, in upper or lower case.
        row_log: row log that gets a message for each row with any other cell; such a row is in no part.
        column: name of the column, for messages.
        numbers: numbers of the rows, for messages; by default from 1.

    Raises:
        InputError: no row has the part train.
    """
    parts: dict[str, list[int]] = {name: [] for name in SPLIT_PARTS}
    for i, value in enumerate(values):
        part = parse_split(value)
        if part:
            parts[part].append(i)
        elif row_log:
            number, hint = i + 1 if numbers is None else numbers[i], did_you_mean(value.strip().lower(), _SPELLINGS)
            row_log.leave_out(number, column, value, "is none of train, val and test", hint)
    if not parts["train"]:
        seen = ", ".join(f"'{printable(value, 40)}' ({n})" for value, n in Counter(values).most_common(8))
        raise InputError(f"split column {column!r} names no row 'train'; it holds {seen or 'nothing'}")
    return {name: np.array(part, np.int64) for name, part in parts.items()}


def parse_split(cell: str) -> str | None:
    """Return the part that a cell names: train, val or test; None for any other text."""
    return _SPELLINGS.get(cell.strip().lower())


def count_shared_molecules(smiles: Sequence[str | None], split: Mapping[str, np.ndarray]) -> dict[tuple[str, str], int]:
    """Count the molecules that two parts of a split have in common (data leakage), for each pair of parts with any.

    Args:
        smiles: canonical SMILES of each row; None or an empty text for a row without a molecule.
        split: row indices of each part.
    """
    parts = {name: {smiles[i] for i in rows if smiles[i]} for name, rows in split.items()}
    shared = {(a, b): len(parts[a] & parts[b]) for a, b in combinations(parts, 2)}
    return {pair: count for pair, count in shared.items() if count}


def write_split(
    path: str | os.PathLike[str], split: Mapping[str, np.ndarray], folds: Sequence[np.ndarray] = ()
) -> None:
    """Write a split as a table with a row number (from 1, without the header) and the name of a part in each line.

    With folds, each line also has the number of the row's fold, from 1; the cell is empty for a row in none.
    """
    part_of = {int(i): name for name, rows in split.items() for i in rows}
    fold_of = {int(i): str(k) for k, rows in enumerate(folds, 1) for i in rows}
    with TableWriter(path, ["row", "split", "fold"] if folds else ["row", "split"]) as out:
        for i in sorted(part_of):
            out.write([str(i + 1), part_of[i], *([fold_of.get(i, "")] if folds else [])])


def check_split_shares(sizes: Sequence[float]) -> None:
    """Raise InputError unless the shares of training, validation and test rows add up to 1 (to two decimals).

    Raises:
        InputError: the shares are not three numbers whose sum is 1, the first above 0.
    """
    _count_parts(sizes)
    if round(sum(sizes), 2) == 1:
        return
    shown, total = " ".join(f"{size:g}" for size in sizes), sum(sizes)
    hint = " ".join(f"{size / total:.3g}" for size in sizes)
    raise InputError(f"split sizes {shown} add up to {total:g}; shares must add up to 1, for instance {hint}")


def split_counts(n: int, sizes: Sequence[float]) -> list[int]:
    """Compute the numbers of train, val and test rows among n: integers that add up to n, 0 only for a size of 0."""
    parts = _count_parts(sizes)
    if n < parts:
        raise InputError(f"{plural(n, 'row')} cannot be split into {plural(parts, 'part')}")
    val, test = (max(1, round(n * size / sum(sizes))) if size else 0 for size in sizes[1:])
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
    """Put each group into the first part with room for it, or into `otherwise`; the first group is for training.

    A part that should have rows, and got no group, takes one from the part with most groups.
    """
    room = dict(zip(SPLIT_PARTS, counts, strict=True))
    parts: dict[str, list[list[int]]] = {name: [] for name in SPLIT_PARTS}
    for group in groups:
        part = (
            next((name for name in SPLIT_PARTS if room[name] >= len(group)), otherwise) if parts["train"] else "train"
        )
        parts[part].append(group)
        room[part] -= len(group)
    for members, count in zip(parts.values(), counts, strict=True):
        if count and not members:
            members.append(max(parts.values(), key=len).pop())
    return {name: np.array(sorted(i for group in part for i in group), np.int64) for name, part in parts.items()}


def _count_parts(sizes: Sequence[float]) -> int:
    """Count the parts that are not empty.

    Raises:
        InputError: the sizes are not three numbers of 0 or more, the first above 0.
    """
    if len(sizes) != len(SPLIT_PARTS) or not all(np.isfinite(size) and size >= 0 for size in sizes) or not sizes[0]:
        raise InputError(
            f"split sizes (train, val, test): expected three numbers of 0 or more, the first above 0, got {list(sizes)}"
        )
    return sum(size > 0 for size in sizes)


# --- Folds: every row is a test row once.

INNER = 10  # of the rows that are not test, a tenth validates


def assign_folds(
    groups: Labels, folds: int, seed: int | Sequence[int] = 0, classes: Labels | None = None
) -> list[np.ndarray]:
    """Assign rows to folds of similar size for a cross-validation, such that no group of rows is divided.

    Groups are shuffled and sorted by size, the largest first. Each group goes to the fold that has the fewest rows so
    far. A group of more than `n / folds` rows makes its fold larger than the others.

    Args:
        groups: group of each row, see `compute_group_labels`.
        folds: number of folds, 2 or more.
        seed: seed of the shuffling.
        classes: class of each row. Each class is then distributed evenly over the folds, as far as groups allow; a
            group has the class of its first row.

    Returns:
        Row indices of each fold, int64, ascending. Each row is in one fold.

    Raises:
        InputError: fewer groups than folds, or fewer than 2 folds.
    """
    _, first, group = np.unique(np.asarray(groups, dtype=str), return_index=True, return_inverse=True)
    sizes = np.bincount(group, minlength=len(first))
    if folds < 2:
        raise InputError(f"folds: expected 2 or more, got {folds}")
    if len(sizes) < folds:
        raise InputError(f"{folds} folds need as many groups of rows that stay together, and there are {len(sizes)}")
    class_of = np.zeros(len(sizes), int) if classes is None else np.unique(classes, return_inverse=True)[1][first]
    order = np.random.default_rng(seed).permutation(len(sizes))
    order = order[np.argsort(-sizes[order], kind="stable")]
    counts = np.zeros((folds, class_of.max() + 1), int)  # rows of each fold and class so far
    fold = np.empty(len(sizes), int)
    for g in order:
        fold[g] = np.lexsort((counts.sum(1), counts[:, class_of[g]]))[0]
        counts[fold[g], class_of[g]] += sizes[g]
    return [np.flatnonzero(fold[group] == f) for f in range(folds)]


def cross_validation_splits(
    groups: Labels, folds: int, seed: int | Sequence[int] = 0, classes: Labels | None = None
) -> list[Split]:
    """Make the splits of a cross-validation, one per fold.

    The rows of the fold are the test rows; a tenth of the other rows are validation rows, the rest training rows.

    The arguments are those of `assign_folds`.

    Raises:
        InputError: there are fewer groups than folds, or too few groups for validation rows.
    """
    splits = []
    labels = np.asarray(groups, dtype=str)
    for test in assign_folds(labels, folds, seed, classes):
        rest = np.setdiff1d(np.arange(len(labels)), test)
        inner = min(INNER, len(set(labels[rest].tolist())))
        if inner < 2:
            raise InputError("the rows that are not test are one group of rows that stay together: none can validate")
        parts = assign_folds(labels[rest], inner, seed, None if classes is None else np.asarray(classes)[rest])
        val = min(parts, key=lambda part: abs(len(part) - len(rest) / INNER))  # not the one that is a large group
        splits.append({"train": np.delete(rest, val), "val": rest[val], "test": test})
    return splits


def repeated_cross_validation_splits(
    groups: Labels, folds: int, repeats: int, seed: int = 0, classes: Labels | None = None
) -> list[list[Split]]:
    """Make the splits of a repeated cross-validation, from the seed `(seed, repeat)` for each repeat."""
    return [cross_validation_splits(groups, folds, (seed, repeat), classes) for repeat in range(repeats)]


# --- Split by time: the oldest rows train, the newest are test.


def parse_times(cells: Sequence[str]) -> np.ndarray:
    """Parse cells with dates or times as numbers: float64 `[n]`, NaN for cells that cannot be parsed.

    All cells are read either as numbers, such as years, or as ISO 8601 dates (`2024`, `2024-05`, `2024-05-17`,
    `2024-05-17T08:30:00+02:00`), whichever more of the cells are. The date 03/04/2024 is not read, because it may be in
    March or April.
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
    """Split by time: the oldest rows are for training, the next for validation, the newest for test.

    Rows of equal time stay together.

    Args:
        when: time of each row, float `[n]`.
        sizes: as in `random_split`; approximate, because rows of equal time are not divided.

    Raises:
        InputError: for bad sizes, or fewer different times than parts.
    """
    return ordered_split(_in_order_of_time(when), sizes, "times")


def time_folds(when: np.ndarray, folds: int) -> list[np.ndarray]:
    """Divide rows into folds of consecutive times, of similar size; rows of equal time stay together.

    Args:
        when: time of each row, float `[n]`.
        folds: number of folds.

    Returns:
        Row indices of each fold, int64, ascending; the oldest rows are the first fold.

    Raises:
        InputError: fewer different times than folds.
    """
    groups = _in_order_of_time(when)
    if len(groups) < folds:
        raise InputError(f"{folds} folds need as many different times, and there are {len(groups)}")
    return cut_in_order(groups, [len(part) for part in np.array_split(when, folds)])


def _in_order_of_time(when: np.ndarray) -> list[np.ndarray]:
    """Group rows of equal time, the oldest first."""
    _, row = np.unique(when, return_inverse=True)
    order = np.argsort(row, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(row[order])) + 1)


# --- Clusters of similar molecules.

MOST_COMPARED = 20_000
"""Largest number of different molecules of which all pairs are compared: half a minute and 400 MB."""


def group_by_butina(smiles: Sequence[str]) -> list[str]:
    """Return the Butina cluster of each row (see `gtx.molecules.butina_clusters`), whatever the order of the rows.

    Args:
        smiles: canonical SMILES of each row.

    Raises:
        InputError: more than `MOST_COMPARED` different molecules.
    """
    from gtx.molecules import butina_clusters

    molecules, row = np.unique(np.array(smiles, dtype=object), return_inverse=True)
    if len(molecules) > MOST_COMPARED:
        raise InputError(
            f"split cluster: expected at most {MOST_COMPARED:,} different molecules, whose pairs are all compared, got "
            f"{len(molecules):,}: split by 'scaffold'"
        )
    return [str(cluster) for cluster in butina_clusters(molecules.tolist())[row]]


# --- All ways to divide the rows of a table, by name. A new one is a function and a line of `SPLIT_METHODS`.


@dataclass(frozen=True)
class RowsToSplit:
    """The n rows of a table that a split method divides into training, validation and test rows.

    Attributes:
        smiles: canonical SMILES.
        sizes: sizes of train, val and test, as in `gtx.data.random_split`.
        seed: seed of random choices.
        values: cells of the column that the method reads, parsed by `SplitMethod.reads`; empty if the method reads no
            column.
        group_duplicates: whether a random split assigns all rows of a molecule together.
    """

    smiles: Sequence[str]
    sizes: Sequence[float] = (0.8, 0.1, 0.1)
    seed: int = 0
    values: np.ndarray = field(default_factory=lambda: np.zeros(0))
    group_duplicates: bool = True


@dataclass(frozen=True)
class SplitMethod:
    """Method that divides rows into training, validation and test rows.

    Attributes:
        divide: function that divides the rows in train, val and test.
        groups: function that returns a label for each row; rows with the same label are in one part or fold. None for a
            method without groups.
        folds: function that divides the rows into a number of folds, for a method without groups.
        reads: parser of the column that the method reads, if any. The parser takes n cells and returns n values, and a
            mask of the readable cells, bool `[n]`.
        spreads: whether each class is distributed evenly over the folds.
        expects: expected content of a cell of the column, for messages.
        seeded: whether the result depends on a seed.
    """

    divide: Callable[[RowsToSplit], Split]
    groups: Callable[[RowsToSplit], Sequence[str]] | None = None
    folds: Callable[[RowsToSplit, int], list[np.ndarray]] | None = None
    reads: Callable[[Sequence[str]], tuple[np.ndarray, np.ndarray]] | None = None
    expects: str = "filled"
    spreads: bool = False
    seeded: bool = True


def make_group_split_method(groups: Callable[[RowsToSplit], Sequence[str]], **more: Any) -> SplitMethod:
    """Make a split method from a function that groups rows: groups are shuffled, and no group is divided.

    Each group of rows goes to the first of train, val and test that has room for the group.
    """

    def divide(rows: RowsToSplit) -> Split:
        labels, parts = groups(rows), _count_parts(rows.sizes)
        if (count := len(set(labels))) < parts:
            raise InputError(f"a split needs at least {parts} groups of rows that stay together, and there are {count}")
        order = np.argsort(np.array(labels, dtype=str), kind="stable")  # not as rows come: that decides nothing
        split = random_split(len(labels), rows.sizes, rows.seed, [labels[i] for i in order])
        return {part: np.sort(order[index]) for part, index in split.items()}

    return SplitMethod(divide, groups, **more)


def _random(rows: RowsToSplit) -> Split:
    return random_split(len(rows.smiles), rows.sizes, rows.seed, rows.smiles if rows.group_duplicates else None)


def _scaffolds(rows: RowsToSplit) -> list[str]:
    from gtx.molecules import murcko_scaffold

    return [murcko_scaffold(text) for text in rows.smiles]


def _labels(cells: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    values = np.array([cell.strip() for cell in cells], dtype=object)
    return values, values != ""


def _times(cells: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    values = parse_times(cells)
    return values, ~np.isnan(values)


SPLIT_METHODS = {
    "random": SplitMethod(_random, lambda rows: rows.smiles, spreads=True),
    "scaffold": SplitMethod(
        lambda rows: scaffold_split(_scaffolds(rows), rows.sizes),
        _scaffolds,
        seeded=False,
    ),
    "cluster": make_group_split_method(lambda rows: group_by_butina(rows.smiles)),
    "group": make_group_split_method(lambda rows: rows.values.tolist(), reads=_labels),
    "time": SplitMethod(
        lambda rows: time_split(rows.values, rows.sizes),
        folds=lambda rows, count: time_folds(rows.values, count),
        reads=_times,
        expects="a number or a date such as 2024-05-17",
        seeded=False,
    ),
}
"""Split methods by the name that `--split` takes; add an entry to define a method of your own."""


def get_split_method(name: str) -> SplitMethod:
    """Return the split method with a given name, such as "scaffold".

    Raises:
        InputError: there is none.
    """
    if name not in SPLIT_METHODS:
        hint = did_you_mean(name, SPLIT_METHODS)
        raise InputError(f"split: expected one of {', '.join(SPLIT_METHODS)}, got {name!r}{hint}")
    return SPLIT_METHODS[name]


def compute_group_labels(
    name: str, smiles: Sequence[Any], seed: int = 0, featuriser: Featuriser | None = None
) -> list[str]:
    """Return a group label for each molecule, such as its cluster, for use as `groups` in scikit-learn's `GroupKFold`.

    Args:
        name: name of a method that makes groups of molecules: "random" (rows of one molecule), "scaffold" or "cluster".
        smiles: n SMILES in any spelling, or RDKit molecules; tuples of SMILES for a featuriser with several components.
        seed: seed of the method.
        featuriser: settings with which the model reads molecules, by default those of `gtx train`. Rows that are the
            same molecule to the model have the same label; with `Featuriser(standardise=True)`, also a salt and its
            parent.

    Raises:
        InputError: no method has this name, the method makes no groups of molecules, or a SMILES cannot be read.
    """
    from gtx.molecules import Featuriser
    from gtx.molecules.perception import featurise_texts
    from gtx.molecules.reading import molecule_text

    method = get_split_method(name)
    if method.groups is None or method.reads is not None:
        able = ", ".join(key for key, one in SPLIT_METHODS.items() if one.groups and not one.reads)
        raise InputError(f"split {name!r} makes no groups of molecules; these do: {able}")
    texts = [one if isinstance(one, tuple) else molecule_text(one) or "" for one in smiles]
    molecules = featurise_texts(replace(featuriser or Featuriser(), descriptors=False, molecule_features=()), texts)
    for i, error in enumerate(molecules.errors):
        if error is not None:
            raise InputError(f"number {i}, counted from 0: {printable(repr(texts[i]))} {error}")
    return list(method.groups(RowsToSplit([text or "" for text in molecules.smiles], seed=seed)))
