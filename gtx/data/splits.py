"""Splits and folds: which rows train, which choose the epoch, which are only scored; and the methods to make them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np

from gtx.base.errors import InputError, did_you_mean, printable
from gtx.data.cells import parse_number
from gtx.data.rows import RowLog, format_row_message, plural
from gtx.data.table_writer import TableWriter
from gtx.molecules.reading import is_blank

if TYPE_CHECKING:
    from gtx.molecules import Featuriser

SPLIT_PARTS = ("train", "val", "test")
"""Names of the three parts of a split."""

Split = dict[str, np.ndarray]
"""Division of a data set: int64 row indices, ascending, for each of the parts "train", "val" and "test"."""

Labels = Sequence[str] | Sequence[int] | np.ndarray
"""A label for each row, such as its group or its class."""

_SPELLINGS = {"train": "train", "test": "test"} | dict.fromkeys(("val", "valid", "validation", "dev"), "val")

# --- Groups of rows, none of which is divided, into train, val and test.

Order = Literal["as they come", "shuffled", "largest first", "ascending"]
"""Order in which groups fill the parts: shuffled from the order in which they come in the table, or from that of their
labels; by size, equal ones by label; or by label, so that the parts are consecutive."""


def random_split(
    n: int, sizes: Sequence[float] = (0.8, 0.1, 0.1), seed: int = 0, groups: Labels | None = None
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
        InputError: the sizes are not three numbers, a row has no group, or there are fewer groups than parts.
    """
    labels = np.arange(n) if groups is None else _check_labels(groups, n, "groups")
    return divide_groups(labels, sizes, seed, "as they come")


def divide_groups(
    labels: Labels,
    sizes: Sequence[float] = (0.8, 0.1, 0.1),
    seed: int = 0,
    order: Order = "shuffled",
    noun: str = "different molecules",
) -> Split:
    """Divide rows, those with the same label together; each group goes to the first part that has room for it, or to
    train, or, of groups by size, to the last part.

    Raises:
        InputError: the sizes are not three numbers, or there are fewer groups, called `noun`, than parts.
    """
    groups = _members(_as_texts(labels) if order == "shuffled" else labels, ascending=order != "as they come")
    count = _count_parts(sizes)
    if len(groups) < count:
        hint = "" if order == "as they come" else ": split at random"
        few = f"{plural(len(labels), 'row')} {'holds' if len(labels) == 1 else 'hold'} {len(groups)}"
        raise InputError(f"a split needs at least {count} {noun}, and the {few}{hint}")
    val, test = (max(1, round(len(labels) * size / sum(sizes))) if size else 0 for size in sizes[1:])
    while len(labels) - val - test < 1:
        val, test = (val - 1, test) if val >= test else (val, test - 1)
    counts, otherwise = [len(labels) - val - test, val, test], "train"  # 0 only for a size of 0
    if order == "ascending":
        return dict(zip(SPLIT_PARTS, _cut_in_order(groups, counts), strict=True))
    if order == "largest first":
        groups.sort(key=len, reverse=True)
        otherwise = [part for part, size in zip(SPLIT_PARTS, sizes, strict=True) if size][-1]
    else:
        groups = [groups[g] for g in np.random.default_rng(seed).permutation(len(groups))]
    return _fill_parts(groups, counts, otherwise)


def _check_labels(labels: Labels, n: int, source: str, smiles: Sequence[str] = ()) -> Labels:
    """Return the labels; raise InputError, which names their source, unless there is one for each of n rows."""
    import pandas as pd

    found = np.asarray(labels, dtype=object)
    if found.shape != (n,):
        came = plural(len(found), "label") if found.ndim == 1 else f"{type(labels).__name__} of shape {found.shape}"
        raise InputError(f"{source}: expected {plural(n, 'label')}, one for each row, got {came}")
    if len(missing := np.flatnonzero(pd.isna(found))):
        i = int(missing[0])
        row = f"row {i}, counted from 0" + (f": {printable(smiles[i])}" if smiles else "")
        raise InputError(f"{source}: expected a label for each row, got {found[i]} for {row}")
    return labels


def _as_texts(labels: Labels) -> np.ndarray:
    """Return labels as texts, object `[n]`: numpy's own texts would all take the memory of the longest."""
    return np.array(list(map(str, labels)), dtype=object)


def _members(labels: Labels, ascending: bool = True) -> list[np.ndarray]:
    """Return the rows of each label, the labels in ascending order, or else in that of their first rows."""
    import pandas as pd

    group, _ = pd.factorize(np.asarray(labels, dtype=object), sort=ascending)
    order = np.argsort(group, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(group[order])) + 1)
    return [rows for rows in parts if len(rows)]


def _cut_in_order(groups: Sequence[np.ndarray], counts: Sequence[int]) -> list[np.ndarray]:
    """Cut groups of rows, in their order, into parts of about these numbers of rows, int64, ascending.

    There are as many groups as parts that are not empty, or more; an empty part has a count of 0.
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


def _fill_parts(groups: Sequence[np.ndarray], counts: Sequence[int], otherwise: str) -> Split:
    """Put each group into the first part with room for it, or into `otherwise`; the first group is for training.

    A part that should have rows, and got no group, takes the group with the number of rows nearest to its own from the
    part with most groups, then more of them as long as it has room and, by its share, no more rows than that part.
    """
    wanted, rows = dict(zip(SPLIT_PARTS, counts, strict=True)), dict.fromkeys(SPLIT_PARTS, 0)
    parts: dict[str, list[np.ndarray]] = {name: [] for name in SPLIT_PARTS}
    for group in groups:
        fitting = [name for name in SPLIT_PARTS if rows[name] + len(group) <= wanted[name]]
        part = next(iter(fitting), otherwise) if parts["train"] else "train"
        parts[part].append(group)
        rows[part] += len(group)
    for empty, count in wanted.items():
        if count and not parts[empty]:
            donor = max(parts, key=lambda part: len(parts[part]))
            nearest, parts[donor] = sorted(parts[donor], key=lambda group: abs(len(group) - count)), []
            for group in nearest:
                after, left = rows[empty] + len(group), rows[donor] - len(group)
                if parts[empty] and (after > count or after * wanted[donor] > left * count):
                    parts[donor].append(group)
                else:
                    parts[empty].append(group)
                    rows[empty], rows[donor] = after, left
    return {name: np.sort(np.concatenate([np.zeros(0, np.int64), *members])) for name, members in parts.items()}


def check_split_shares(sizes: Sequence[float]) -> None:
    """Raise InputError unless the shares of training, validation and test rows add up to 1 (to two decimals)."""
    _count_parts(sizes)
    if round(sum(sizes), 2) == 1:
        return
    shown, total = " ".join(f"{size:g}" for size in sizes), sum(sizes)
    val, test = (float(f"{size / total:.2g}") for size in sizes[1:])
    hint = f"{1 - val - test:.6g} {val:g} {test:g}"
    raise InputError(f"split sizes {shown} add up to {total:g}; shares must add up to 1, for instance {hint}")


def _count_parts(sizes: Sequence[float]) -> int:
    """Count the parts that are not empty; raise InputError unless the sizes are three numbers, the first above 0."""
    if len(sizes) != len(SPLIT_PARTS) or not all(np.isfinite(size) and size >= 0 for size in sizes) or not sizes[0]:
        raise InputError(
            f"split sizes (train, val, test): expected three numbers of 0 or more, the first above 0, got {list(sizes)}"
        )
    return sum(size > 0 for size in sizes)


# --- A split that a column of the table names; and a split as a table.


def split_by_column(
    values: Sequence[str], row_log: RowLog | None = None, column: str = "split", numbers: Sequence[int] | None = None
) -> Split:
    """Read the split from the cells of a column: train, test, or one of val, valid, validation and dev, in any case.

    A part that the column does not name is empty; it is an `InputError` if train is. A row with any other cell is in no
    part, and gets a message with its number, by default from 1.
    """
    parts: dict[str, list[int]] = {name: [] for name in SPLIT_PARTS}
    for i, value in enumerate(values):
        part = _SPELLINGS.get(value.strip().lower())
        if part:
            parts[part].append(i)
        elif row_log:
            number, hint = i + 1 if numbers is None else numbers[i], did_you_mean(value.strip().lower(), _SPELLINGS)
            row_log.leave_out(number, column, value, "is none of train, val and test", hint)
    if not parts["train"]:
        seen = ", ".join(f"'{printable(value, 40)}' ({n})" for value, n in Counter(values).most_common(8))
        raise InputError(f"split column {column!r} names no row 'train'; it holds {seen or 'nothing'}")
    return {name: np.array(part, np.int64) for name, part in parts.items()}


def count_shared_molecules(smiles: Sequence[str | None], split: Mapping[str, np.ndarray]) -> dict[tuple[str, str], int]:
    """Count the molecules, by canonical SMILES, that two parts of a split have in common (data leakage), if any."""
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


# --- Folds: every row is a test row once.

INNER = 10  # of the rows that are not test, a tenth validates


def assign_folds(
    groups: Labels, folds: int, seed: int | Sequence[int] = 0, classes: Labels | None = None
) -> list[np.ndarray]:
    """Assign rows to folds of similar size, int64, ascending, such that no group of rows is divided.

    Groups are shuffled and sorted by size, the largest first. Each group goes to the fold that has the fewest rows so
    far. A group of more than `n / folds` rows makes its fold larger than the others.

    Args:
        groups: group of each row, see `compute_group_labels`.
        folds: number of folds, 2 or more.
        seed: seed of the shuffling.
        classes: class of each row. Each class is then distributed evenly over the folds, as far as groups allow; a
            group has the class of its first row.

    Raises:
        InputError: fewer groups than folds, or fewer than 2 folds.
    """
    _check_labels(groups, len(groups), "groups")
    if classes is not None:
        _check_labels(classes, len(groups), "classes")
    _, first, group = np.unique(_as_texts(groups), return_index=True, return_inverse=True)
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
    labels = _as_texts(groups)
    for test in assign_folds(groups, folds, seed, classes):
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


# --- Cells that a split method reads: times and labels. The functions return values, and a mask of the readable cells.


def parse_times(cells: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Parse cells with dates or times as numbers, float64 `[n]`, NaN for cells that cannot be parsed.

    All cells are read either as numbers, such as years, or as ISO 8601 dates (`2024`, `2024-05`, `2024-05-17`,
    `2024-05-17T08:30:00+02:00`), whichever more of the cells are. The date 03/04/2024 is not read, because it may be in
    March or April.
    """
    import pandas as pd

    times: np.ndarray = np.array(list(map(parse_number, cells)), np.float64)
    usable: np.ndarray = np.isfinite(times)
    texts = [cell.strip() if any(map(str.isdigit, cell)) else "" for cell in cells]  # pandas reads the word "now" too
    dates = pd.to_datetime(pd.Series(texts, dtype=str), format="ISO8601", errors="coerce", utc=True)
    if dates.notna().sum() > usable.sum():
        times, usable = dates.dt.as_unit("us").astype("int64").to_numpy(float), dates.notna().to_numpy()
    return np.where(usable, times, np.nan), usable


def _parse_labels(cells: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    values = np.array([cell.strip() for cell in cells], dtype=object)
    return values, np.array([not is_blank(value) for value in values], bool)


# --- All ways to divide the rows of a table, by name. A new one is a function and a line of `SPLIT_METHODS`.

MOST_COMPARED = 20_000
"""Largest number of different molecules of which all pairs are compared: half a minute and 400 MB."""


@dataclass(frozen=True)
class RowsToSplit:
    """The n rows of a table that a split method divides.

    Attributes:
        smiles: canonical SMILES.
        values: cells of the column that the method reads, parsed by `SplitMethod.reads`; empty if the method reads no
            column.
        classes: class of each row, int `[n]`, if the task has one target of classes; a random split distributes each
            evenly over folds.
    """

    smiles: Sequence[str]
    values: np.ndarray = field(default_factory=lambda: np.zeros(0))
    classes: np.ndarray | None = None


@dataclass(frozen=True)
class SplitMethod:
    """Method that divides rows into training, validation and test rows, and into folds.

    Attributes:
        groups: function that returns a label for each row; rows with the same label are in one part or fold.
        order: order of the groups; there is no cross-validation of the method whose parts and folds are consecutive.
        noun: word for several groups, for messages.
        reads: parser of the column that the method reads, if any. The parser takes n cells and returns n values, and a
            mask of the readable cells, bool `[n]`.
        expects: expected content of a cell of the column, for messages.

    Raises:
        InputError: the order is none of `Order`.
    """

    groups: Callable[[RowsToSplit], Labels]
    order: Order = "shuffled"
    noun: str = "groups of rows that stay together"
    reads: Callable[[Sequence[str]], tuple[np.ndarray, np.ndarray]] | None = None
    expects: str = "filled"

    def __post_init__(self) -> None:
        if self.order not in (known := get_args(Order)):
            hint = did_you_mean(str(self.order), known)
            raise InputError(f"order: expected one of {', '.join(known)}, got {self.order!r}{hint}")

    @property
    def seeded(self) -> bool:
        """Whether the split depends on a seed."""
        return self.order in ("as they come", "shuffled")


def _scaffolds(rows: RowsToSplit) -> list[str]:
    from gtx.molecules import murcko_scaffold

    return [murcko_scaffold(text) for text in rows.smiles]


def _clusters(rows: RowsToSplit) -> list[str]:
    """Return the Butina cluster of each row (see `gtx.molecules.butina_clusters`), whatever the order of the rows."""
    from gtx.molecules import butina_clusters

    molecules, row = np.unique(np.array(rows.smiles, dtype=object), return_inverse=True)
    if len(molecules) > MOST_COMPARED:
        raise InputError(
            f"split cluster: expected at most {MOST_COMPARED:,} different molecules, whose pairs are all compared, got "
            f"{len(molecules):,}: split by 'scaffold'"
        )
    return [str(cluster) for cluster in butina_clusters(molecules.tolist())[row]]


SPLIT_METHODS = {
    "random": SplitMethod(lambda rows: rows.smiles, "as they come", "different molecules"),
    "scaffold": SplitMethod(_scaffolds, "largest first", "scaffolds"),
    "cluster": SplitMethod(_clusters, noun="clusters"),
    "group": SplitMethod(lambda rows: rows.values.tolist(), reads=_parse_labels),
    "time": SplitMethod(
        lambda rows: rows.values,
        "ascending",
        "different times",
        reads=parse_times,
        expects="a number or a date such as 2024-05-17",
    ),
}
"""Split methods by the name that `--split` takes; add an entry to define a method of your own."""


def get_split_method(name: str) -> SplitMethod:
    """Return the split method with a given name, such as "scaffold"; `InputError` if there is none."""
    for key, method in SPLIT_METHODS.items():
        if not isinstance(method, SplitMethod):
            got = f"got {type(method).__name__}: write SPLIT_METHODS[{key!r}] = SplitMethod(function)"
            raise InputError(f"split {key!r}: expected a gtx.data.SplitMethod, {got}")
    if name not in SPLIT_METHODS:
        hint = did_you_mean(name, SPLIT_METHODS)
        raise InputError(f"split: expected one of {', '.join(SPLIT_METHODS)}, got {name!r}{hint}")
    return SPLIT_METHODS[name]


def _label_rows(name: str, rows: RowsToSplit) -> Labels:
    """Return the label of each row by the split method with this name."""
    return _check_labels(get_split_method(name).groups(rows), len(rows.smiles), f"split {name!r}", rows.smiles)


def compute_group_labels(name: str, smiles: Sequence[Any], featuriser: Featuriser | None = None) -> list[str]:
    """Return a group label for each molecule, such as its cluster, for use as `groups` in scikit-learn's `GroupKFold`.

    Args:
        name: name of a method that makes groups of molecules: "random" (rows of one molecule), "scaffold" or "cluster".
        smiles: n SMILES in any spelling, or RDKit molecules; tuples of SMILES for a featuriser with several components.
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
    if method.reads is not None:
        able = ", ".join(key for key, one in SPLIT_METHODS.items() if not one.reads)
        raise InputError(f"split {name!r} makes no groups of molecules; these do: {able}")
    texts = [one if isinstance(one, tuple) else molecule_text(one) or "" for one in smiles]
    molecules = featurise_texts(replace(featuriser or Featuriser(), descriptors=False, molecule_features=()), texts)
    for i, error in enumerate(molecules.errors):
        if error is not None:
            raise InputError(f"number {i}, counted from 0: {printable(repr(texts[i]))} {error}")
    return list(_label_rows(name, RowsToSplit([text or "" for text in molecules.smiles])))


# --- Settings of a split, and the split that follows from them.


@dataclass(frozen=True, kw_only=True)
class SplitSettings:
    """Settings of a split: the method, the sizes of the parts, the seed, and the column that the method reads.

    Attributes:
        split: name of the split method in `SPLIT_METHODS`.
        split_by: column that the split method reads, if any: groups, or numbers or dates.
        split_sizes: shares of train, val and test, which add up to 1.
        test_folds: number of folds of a cross-validation. One of them has the test rows, and a tenth of the other rows
            are validation rows. None for a split by sizes.
        test_fold: number of the fold with the test rows, 1 to `test_folds`; the folds are those of the first repeat of
            `gtx benchmark`.
        seed: seed of random choices.
        group_duplicates: whether a random split puts all rows of a molecule into one part.

    Raises:
        InputError: a setting is out of range, or two settings contradict each other.
    """

    split: str = "random"
    split_by: str | None = None
    split_sizes: tuple[float, float, float] = (0.8, 0.1, 0.1)
    test_folds: int | None = None
    test_fold: int = 1
    seed: int = 0
    group_duplicates: bool = True

    def __post_init__(self) -> None:
        method = self.method
        check_split_shares(self.split_sizes)
        if self.seed < 0:
            raise InputError(f"split_seed: expected a value 0 or more, got {self.seed}")
        if self.split_by is not None and method.reads is None:
            able = " and ".join(name for name, one in SPLIT_METHODS.items() if one.reads)
            raise InputError(f"split {self.split} reads no column; `split_by` goes with {able}")
        if self.split_by is None and method.reads is not None:
            raise InputError(f"split {self.split} reads a column: say which with `split_by`")
        if self.test_folds is not None:
            if self.test_folds < 2:
                raise InputError(f"test_folds: expected 2 or more, got {self.test_folds}")
            self.check_cross_validation()
        if not 1 <= self.test_fold <= (self.test_folds or 1):
            expected = "only with test_folds" if self.test_folds is None else f"1 to {self.test_folds}"
            raise InputError(f"test_fold: expected {expected}, got {self.test_fold}")

    def check_cross_validation(self) -> None:
        """Raise an `InputError` if the rows of the method have an order, so that not every fold can be the test."""
        if self.method.order == "ascending":
            able = ", ".join(name for name, one in SPLIT_METHODS.items() if one.order != "ascending")
            raise InputError(f"split {self.split} makes no folds; these do: {able}")

    def without(self, parts: Collection[str]) -> Self:
        """Return the settings without some parts, such as "test", to which the split then gives no rows."""
        sizes = [0.0 if part in parts else size for part, size in zip(SPLIT_PARTS, self.split_sizes, strict=True)]
        train, val, test = (size / sum(sizes) for size in sizes)
        return replace(self, split_sizes=(train, val, test))

    @property
    def method(self) -> SplitMethod:
        """Split method with the name `split`."""
        return get_split_method(self.split)

    def candidates(
        self, cells: Sequence[str], numbers: Sequence[int], row_logs: Sequence[RowLog], smiles: Sequence[str]
    ) -> tuple[np.ndarray, RowsToSplit]:
        """Select the rows that the method can divide: their indices, int64, and their molecules and values.

        The `cells` are those of the column `split_by`; none if the method reads no column. A row whose cell cannot be
        used is in no part of the split, and gets a message with its number in the log of its file; it is an
        `InputError` if too few can be used.
        """
        method, rows, values = self.method, np.arange(len(smiles)), np.zeros(0)
        if method.reads is not None:
            values, usable = method.reads(cells)
            unread = np.flatnonzero(~usable).tolist()
            for i in unread:
                row_logs[i].leave_out(numbers[i], self.split_by, cells[i], f"is not {method.expects}")
            if not usable.any():
                raise InputError(f"split {self.split}: no cell of column {self.split_by!r} is {method.expects}")
            rows, values = rows[usable], values[usable]
            bad = [i for i in unread if cells[i].strip()]
            if bad and self.test_folds is None and len(set(values.tolist())) < len(SPLIT_PARTS):
                number, cell = int(numbers[bad[0]]), cells[bad[0]]
                first = format_row_message(number, self.split_by, cell, f"is not {method.expects}")
                few = f"only {len(rows)} of the {len(cells)} cells of column {self.split_by!r} can be read"
                raise InputError(f"split {self.split}: {few}; the first that cannot: {first}")
        return rows, RowsToSplit([smiles[i] for i in rows.tolist()], values)

    def divide(self, rows: RowsToSplit) -> Split:
        """Make the split, by sizes or with one fold as test rows."""
        if self.test_folds is not None:
            return self.repeated(rows, self.test_folds, 1)[0][self.test_fold - 1]
        if self.split == "random" and not self.group_duplicates:
            return random_split(len(rows.smiles), self.split_sizes, self.seed)
        labels, method = _label_rows(self.split, rows), self.method
        return divide_groups(labels, self.split_sizes, self.seed, method.order, method.noun)

    def repeated(self, rows: RowsToSplit, folds: int, repeats: int) -> list[list[Split]]:
        """Cross-validate the rows `repeats` times; all rows of a group, such as a scaffold, are in one fold."""
        self.check_cross_validation()
        classes = rows.classes if self.split == "random" else None
        return repeated_cross_validation_splits(_label_rows(self.split, rows), folds, repeats, self.seed, classes)

    def folds(self, rows: RowsToSplit, count: int) -> list[np.ndarray]:
        """Divide rows into two folds or more by the rule of the split; times are consecutive."""
        groups = _label_rows(self.split, rows)
        if self.method.order != "ascending":
            return assign_folds(groups, count, self.seed, rows.classes if self.split == "random" else None)
        if len(members := _members(groups)) < count:
            raise InputError(f"{count} folds need as many {self.method.noun}, and there are {len(members)}")
        return _cut_in_order(members, [len(part) for part in np.array_split(groups, count)])

    def describe(self, smiles: Sequence[str], split: Split, unit: str = "molecule") -> str:
        """Describe how rows with these SMILES, each a `unit`, were divided."""
        parts = [self.split if self.split_by is None else f"{self.split} by column {self.split_by!r}"]
        if self.test_folds is not None:
            parts.append(f"fold {self.test_fold} of {self.test_folds}")
        if self.method.seeded or self.test_folds is not None:
            parts.append(f"seed {self.seed}")
        if len(set(smiles)) < len(smiles) and not count_shared_molecules(smiles, split):
            parts.append(f"each repeated {unit} in one part")
        return ", ".join(parts)
