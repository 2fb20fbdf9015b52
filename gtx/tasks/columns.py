"""Columns of a task: how the cells of a table become values, bounds, classes or lists, and what cannot be read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from gtx.base.errors import InputError, printable
from gtx.base.schema import Text, check, list_of
from gtx.data import MoleculeStore
from gtx.data.cells import (
    BLANK_WORDS,
    LARGEST,
    LIMIT,
    attach_lists,
    comma_advice,
    has_comma,
    parse_labels,
    parse_list,
    parse_number,
    split_list,
)
from gtx.data.rows import InputFile, Row, RowLog, find_column, find_columns, named, plural
from gtx.molecules.graphs import ATOM_INDEX, BOND_INDEX, name_code
from gtx.molecules.reading import is_blank

# --- Levels: molecules, atoms or bonds, and where a store and a batch keep the values of each.

LevelName = Literal["molecule", "atom", "bond"]


@dataclass(frozen=True)
class Level:
    """Level of targets. A store or a batch has R rows of a level, each of one molecule, whose targets `[R, T]` are its
    `field`; an item has `rows_each` of them, a bond two, one in each direction.
    """

    name: LevelName
    field: str
    rows_each: int = 1

    @property
    def lists(self) -> bool:
        """True if a cell is a list, with an item for each atom or bond of the molecule."""
        return self.name != "molecule"

    def targets(self, examples: Any) -> Tensor:
        """Return the targets `[R, T]` of a store or a batch."""
        y: Tensor | None = getattr(examples, self.field)
        if y is None:
            raise InputError(f"these molecules have no targets of {self.name}s: expected a store with {self.field}")
        return y

    def with_targets(self, store: MoleculeStore, y: Tensor) -> MoleculeStore:
        """Return a store with targets `[R, T]`, which become float64 on its device."""
        changes: dict[str, Any] = {self.field: y.double().to(store.device)}
        return replace(store, **changes)

    def truth(self, store: MoleculeStore) -> np.ndarray:
        """Return the targets of a store, each item once."""
        return self.targets(store).cpu().numpy()[:: self.rows_each]

    def ptr(self, store: MoleculeStore) -> Tensor:
        """Return int64 `[M + 1]`: molecule m has the atoms or bonds `ptr[m]` to `ptr[m + 1]` of a store."""
        return store.atom_ptr if self.name == "atom" else store.bond_ptr

    def owner(self, examples: Any) -> Tensor:
        """Return the molecule of each row of a store, or of each atom or directed bond of a batch, int64 `[R]`."""
        if isinstance(examples, MoleculeStore):
            each = torch.arange(len(examples), device=examples.device)
            return torch.repeat_interleave(each, self.ptr(examples).diff()) if self.lists else each
        return examples.batch if self.name == "atom" else examples.batch[examples.edge_index[0]]

    def rows(self, store: Any, batch: Any) -> Tensor:
        """Return the row of a store for each row of a batch of it, int64 `[R]`; -1 for an empty place."""
        if not self.lists:
            return batch.row
        owner = self.owner(batch)
        place = torch.arange(len(owner), device=owner.device)
        first = torch.searchsorted(owner, torch.arange(batch.num_graphs, device=owner.device))
        molecule = batch.row[owner]
        return torch.where(molecule < 0, -1, self.ptr(store)[molecule] + place - first[owner])

    def count(self, store: Any) -> int:
        """Count the rows of a store."""
        return int(self.ptr(store)[-1]) if self.lists else len(store)

    def weights(self, examples: Any) -> Tensor | None:
        """Return the weight of each row of a store or a batch, `[R]`: that of its molecule; None without weights."""
        weights: Tensor | None = getattr(examples, "weights", None)
        return weights if weights is None or not self.lists else weights[self.owner(examples)]

    def known(self, store: MoleculeStore) -> Tensor:
        """Find the molecules with a value or a bound, bool `[M]`."""
        measured = (~self.targets(store).isnan()).any(1)
        if self.lists:
            counts = torch.zeros(len(store), dtype=torch.long, device=store.device)
            return counts.index_add(0, self.owner(store), measured.long()) > 0
        return measured if store.bounds is None else measured | (~store.bounds.isnan()).any(1)

    def share(self, examples: Any) -> int | Tensor:
        """Return the weight of a store or a batch in an epoch: the number of molecules, or of values of atoms or bonds;
        with weights their sum.
        """
        weights = self.weights(examples)
        if not self.lists:
            count: int | Tensor = getattr(examples, "molecules", examples.num_graphs)
            return count if weights is None else weights.sum()
        measured = ~self.targets(examples).isnan()
        return measured.sum() if weights is None else (measured * weights[:, None]).sum()

    def kinds(self, store: MoleculeStore) -> np.ndarray:
        """Name the element of each atom, or the type of each bond, of a store: texts `[items]`."""
        if self.name == "atom":
            column = ATOM_INDEX["element"]
            names = [
                name_code("atom", column, code).removeprefix("element ") for code in store.atoms[:, column].tolist()
            ]
        else:
            column = BOND_INDEX["type"]
            names = [name_code("bond", column, code) for code in store.bond_codes[:, column].tolist()]
        return np.array(names, object)[:: self.rows_each]

    def codes(self, store: MoleculeStore) -> np.ndarray:
        """Return the codes `[items, K]` of the atoms of a store; of a bond its own and those of its two atoms,
        independent of their order: the smaller codes, then the larger.
        """
        if self.name == "atom":
            return store.atoms.numpy()
        ends = store.bonds.numpy() + store.atom_ptr.numpy()[self.owner(store).numpy()]
        one, other = (store.atoms.numpy()[end] for end in ends)
        both = [store.bond_codes.numpy(), np.minimum(one, other), np.maximum(one, other)]
        return np.concatenate(both, axis=1)[:: self.rows_each]


LEVELS: dict[LevelName, Level] = {
    "molecule": Level("molecule", "y"),
    "atom": Level("atom", "atom_y"),
    "bond": Level("bond", "bond_y", 2),
}
"""Levels by name. Atoms are in the order of the SMILES or the mol block, bonds in RDKit's order."""


def lists_of(values: np.ndarray, ptr: np.ndarray) -> list[np.ndarray]:
    """Split the rows of all molecules, `[R, ...]`: molecule m has the rows `ptr[m]` to `ptr[m + 1]`."""
    return np.split(values, ptr[1:-1]) if len(ptr) > 1 else []  # numpy makes one part of none


# --- Bounds of values that were not measured exactly, such as `>5`, and relations beside values.

SIGNS = {">=": 1, "<=": -1, ">": 1, "<": -1, "≥": 1, "≤": -1}
"""Prefixes of a bound: 1 where values are above it, -1 where they are below."""


def parse_bound(cell: str) -> tuple[int, float] | None:
    """Parse a bound such as `>5` or `<= 0.1` to its side, 1 or -1, and its number; None for anything else."""
    cell = cell.strip()
    sign = next((sign for sign in SIGNS if cell.startswith(sign)), None)
    if sign is None:
        return None
    number = parse_number(cell[len(sign) :])
    return (SIGNS[sign], number) if abs(number) <= LARGEST else None  # a blank is NaN, a text infinite


RELATIONS = {
    **dict.fromkeys(("", "=", "==", "~", "\u2248"), ""),
    **dict.fromkeys((">", ">>"), ">"),
    **dict.fromkeys(("<", "<<"), "<"),
    **dict.fromkeys((">=", "\u2265"), ">="),
    **dict.fromkeys(("<=", "\u2264"), "<="),
}
"""Relations that a table has beside its values, and the signs of bounds that they are; no sign for an exact value."""
RELATION_WORDS = "=, ~, >, >=, <, <= or blank"


def parse_relation(cell: str) -> str | None:
    """Parse a relation, with or without quotes, as the sign of a bound; None for another text."""
    text = cell.strip().strip("'\"").strip()
    return RELATIONS.get("" if is_blank(text) else text)


def join_relation(cell: str, relation: str) -> str:
    """Write a value and its relation as one cell; what does not fit together is no number then."""
    sign = parse_relation(relation)
    if sign == "" or is_blank(cell):
        return cell
    if sign is None:
        return f"{relation.strip()} {cell.strip()}"  # the space keeps "-" and "5" from being the number -5
    bound = parse_bound(cell)
    return cell if bound and bound[0] == SIGNS[sign] else f"{sign}{cell.strip()}"


class RelationColumns:
    """Columns of a table whose cells are all relations, beside `targets` that are read without them; or the `named` one
    that they are read with, which may be missing.
    """

    def __init__(self, columns: Sequence[str], targets: Sequence[str], named: str | None = None) -> None:
        self.columns = columns
        self.places: list[int] = list(find_columns(columns, targets).values())
        others = [i for i in range(len(columns)) if i not in self.places and named is None]
        self.counts: dict[int, Counter[str]] = {i: Counter() for i in others}
        self.missing: str | None = None if named is None or find_columns(columns, [named]) else named

    def add(self, rows: Sequence[Row]) -> None:
        """Add some rows; a column with another cell is left out."""
        for place, counts in list(self.counts.items()):
            for row in (row for row in rows if not row.error):
                sign = parse_relation(row.cells[place])
                if sign is None:
                    del self.counts[place]
                    break
                counts[sign] += any(parse_number(row.cells[i]) < np.inf for i in self.places)

    def lines(self) -> list[str]:
        """Name the columns with the relation of a bound, or the relation column that is missing."""
        lines = []
        if self.missing is not None:
            lines.append(f"there is no column {self.missing!r} with relations, and all values are read as exact")
        for place, counts in self.counts.items():
            bounds = {sign: number for sign, number in counts.items() if sign and number}
            if bounds:
                signs = ", ".join(f"{number} {sign!r}" for sign, number in bounds.items())
                name = printable(self.columns[place])
                lines.append(f"column {name!r} has relations of bounds ({signs}) beside values that are read as exact")
        return lines


# --- The label in a cell, and which of two labels is the positive one.

POSITIVE = frozenset({"1", "active", "yes", "true", "positive", "pos", "toxic", "high", "y", "t", "hit"})
"""Labels of a positive class, upper or lower case."""
NEGATIVE = frozenset({"negative", "neg", "false", "low", "n", "f", "decoy", "no", "non", "not"})
"""Labels, or words of a label, of a negative class, upper or lower case."""
_NEGATIONS = "no", "in", "un"  # which non and not begin with, too
_NO_NEGATIONS = "inhib", "induc", "inter", "intra"
_NEGATED = re.compile(r"(no|non|not|in|im|il|ir|un|dis|a)[ _-]*")
_MINUS = re.compile(r"[-\u2212\u2013]\)?$")


def label(cell: str) -> str | None:
    """Read the label in a cell, see `normal_label`; None for a blank."""
    return None if is_blank(cell) else normal_label(cell)


def normal_label(text: str) -> str:
    """Normalise a label: without white space around it; a number in its shortest form."""
    number = parse_number(text)
    return f"{number + 0.0:.15g}" if np.isfinite(number) else text.strip()  # -0 is 0


def same_label(label: str) -> str:
    """Return a text that equal labels share: booleans are equal in upper and lower case, `True` and `TRUE`."""
    return label.lower() if label.lower() in ("true", "false") else label


def polarity(label: str) -> int:
    """Return the sign of a label as one of two: 2 or 1 for a positive class, -1 for a negative one, else 0.

    A label is negative if it is in `NEGATIVE` or has a word from there, begins with no, non, not, in or un, or ends in
    a minus sign, such as `non-mutagen`, `inactive` or `BBB-`.
    """
    text = label.lower()
    words = {word for word in re.findall(r"[a-z]+", text) if len(word) > 1}
    if text in POSITIVE:
        return 2
    begins = text.startswith(_NEGATIONS) and not text.startswith(_NO_NEGATIONS)
    if begins or text in NEGATIVE or words & NEGATIVE or _MINUS.search(text):
        return -1
    return int(bool(words & POSITIVE) or text.endswith(("+", "+)")))


def negates(label: str, other: str) -> bool:
    """Return whether a label is the negation of another, such as `noninhibitor` of `inhibitor`."""
    label, other = label.lower(), other.lower()
    return label.endswith(other) and _NEGATED.fullmatch(label.removesuffix(other)) is not None


# --- The classes of a column, in order.


def count_labels(labels: Iterable[str | None]) -> Counter[str]:
    """Count the equal labels, each in its first spelling by the alphabet; None, for a blank, is left out."""
    counts: Counter[str] = Counter()
    spellings: dict[str, str] = {}
    for name in labels:
        if name is not None:
            key = same_label(name)
            spellings[key] = min(name, spellings.get(key, name))
            counts[key] += 1
    return Counter({spellings[key]: number for key, number in counts.items()})


def in_order(labels: Iterable[str | None], positive: str | None = None) -> tuple[str, ...]:
    """Sort the distinct labels: numbers by size, then texts; of two classes, the positive one comes last.

    Of two labels that are not both numbers, the positive one has the higher `polarity`, or is the one that the other
    negates; `positive` names another one. Of more classes, a label of `POSITIVE` comes last.
    """
    names = list(count_labels(labels))
    numbers = {name: parse_number(name) for name in names}
    pair_of_texts = len(names) == 2 and not all(map(np.isfinite, numbers.values()))

    def place(name: str) -> tuple:
        if pair_of_texts:
            return not any(negates(name, other) for other in names), polarity(name), name
        return numbers[name], name.lower() in POSITIVE, name  # of texts the number is infinite

    ordered = sorted(names, key=place)
    if positive is not None:
        ordered.sort(key=lambda name: same_label(name) == same_label(normal_label(positive)))
    return tuple(ordered)


FEWEST_CELLS = 10
"""Fewest filled cells of a column among which one may be odd."""
ODD_SHARE = 0.02
"""Largest share of odd cells; one cell may be odd in any case."""


def numbers_among(labels: Iterable[str]) -> list[str]:
    """List the labels that are finite numbers."""
    return [name for name in labels if np.isfinite(parse_number(name))]


def main_labels(counts: Counter[str]) -> list[str]:
    """List the labels of a column apart from odd cells, which are mistakes rather than classes.

    Of a column with exactly two different numbers, all texts are odd if more than half of the cells are numbers.
    Otherwise all labels but two are odd if these two are both numbers or both texts, and the others have one cell, or
    2 % of the cells, at most.
    """
    total, numbers = counts.total(), numbers_among(counts)
    texts = [name for name in counts if name not in numbers]
    if len(numbers) == 2 and sum(counts[name] for name in numbers) * 2 > total:
        return numbers
    for group in (numbers, texts):
        pair = sorted(group, key=lambda name: -counts[name])[:2]
        odd = total - sum(counts[name] for name in pair)
        if total >= FEWEST_CELLS and odd <= max(1, ODD_SHARE * total):
            return pair
    return list(counts)


def label_indices(names: Iterable[str | None], labels: Sequence[str]) -> np.ndarray:
    """Look up the index of each label among `labels`, float64 `[n]`: NaN for None, infinity for unknown labels."""
    index = {same_label(name): float(i) for i, name in enumerate(labels)}
    return np.array([np.nan if name is None else index.get(same_label(name), np.inf) for name in names], np.float64)


def check_count(labels: Sequence[str], name: str, task: str, hint: str = "") -> None:
    """Raise an `InputError` unless a column has two classes or more, not too many (`hint` ends that message), and texts
    that a model file can store.
    """
    if len(labels) < 2:
        raise InputError(f"{all_equal(name, labels[0])}; {task} needs two or more classes")
    if len(labels) > MOST_CLASSES:
        many = f"holds {len(labels)} different values, e.g. {list_labels(labels, 3)}"
        raise InputError(f"target column {name!r} {many}; {task} takes at most {MOST_CLASSES} classes{hint}")
    check(labels, list_of(Text), f"target column {name!r}, classes")


def all_equal(name: str, label: str) -> str:
    """Describe a target column with one label alone."""
    needed = {"0": " and none 1", "1": " and none 0"}.get(label, "")
    return f"all cells of target column {name!r} that are not blank hold {label!r}{needed}"


def list_labels(labels: Sequence[str], most: int = 8) -> str:
    """List labels in a text, the first few of many."""
    shown = ", ".join(map(repr, labels[:most]))
    return shown if len(labels) <= most else f"{shown} and {len(labels) - most} more"


# --- Columns of numbers, or of lists of numbers.

BAD_TARGET = "with a bad target"
NO_NUMBER = f"is not a finite number, nor blank: {BLANK_WORDS}"


def or_none(parse: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function parses, or None in place of its `InputError`."""
    try:
        return parse(*arguments)
    except InputError:
        return None


class TargetCells(NamedTuple):
    """What the cells of T targets hold in n rows.

    Attributes:
        y: values, float64 `[n, T]`, NaN for blanks and for what cannot be read; of a list the mean, by which duplicates
            and blank rows are recognised.
        bounds: bounds of values that were not measured, float64 `[n, 2T]`: T lower, then T upper, NaN without a bound;
            None for columns without bounds.
        lists: list of each row by target, float64 `[a]`; None if cells are no lists.
        bad: index of the row, index of the target, text and reason of each cell that cannot be read.
    """

    y: np.ndarray
    bounds: np.ndarray | None = None
    lists: list[dict[str, np.ndarray]] | None = None
    bad: Sequence[tuple[int, int, str, str]] = ()


@dataclass(frozen=True)
class Columns:
    """T target columns whose cells are numbers, or, for atoms and bonds, lists of numbers.

    A subclass reads other cells: it overrides `values` (and `items`, the same for a list), `complaint`, and, if the
    values of a row belong together, `check_rows` and `row_complaint`.

    Attributes:
        targets: names of the columns.
        level: level of the targets; a cell of atoms or bonds is a list.
        censored: whether cells such as `>5` are bounds to learn from, or errors; None for values that have no bounds.
        relation_column: column with the relation of each value of the one target, such as `>`, which makes it a bound.
    """

    targets: tuple[str, ...]
    level: Level = LEVELS["molecule"]
    censored: bool | None = field(default=None, kw_only=True)
    relation_column: str | None = field(default=None, kw_only=True)

    discrete: ClassVar[bool] = False
    """True if values are numbers of classes."""
    nouns: ClassVar[tuple[str, str]] = ("number", "numbers")
    """Singular and plural of an item of a list."""

    # what a kind of column defines

    def values(self, target: int, cells: Sequence[str]) -> np.ndarray:
        """Parse the cells of a target, float64 `[n]`: NaN for blanks, infinity for what is no value."""
        numbers = np.array([parse_number(cell) for cell in cells], np.float64)
        numbers[np.abs(numbers) > LARGEST] = np.inf
        if self.censored:
            numbers[[i for i in np.flatnonzero(np.isinf(numbers)).tolist() if parse_bound(cells[i])]] = np.nan
        return numbers

    def items(self, target: int, cell: str) -> np.ndarray | None:
        """Parse the list of a cell, float64 `[a]`, NaN for blanks; None for a blank cell.

        Raises:
            InputError: it is no such list.
        """
        return parse_list(cell, parse_bound)

    def complaint(self, target: int, cell: str) -> str:
        """Describe the error of a cell that is not a value of a target."""
        if self.censored is False and parse_bound(cell):
            return "is a bound, not a number; --censored learns from bounds too"
        if np.isfinite(parse_number(cell)):
            return f"is too large: {LIMIT}"
        if self.relation_column is not None:
            relation = f"the relation of column {self.relation_column!r} before it: {RELATION_WORDS}"
            return f"{NO_NUMBER}; expected a number, and {relation}"
        return NO_NUMBER

    def check_rows(self, y: np.ndarray) -> np.ndarray:
        """Check the values of each row `[n, T]` together, NaN for blanks; infinity where they do not fit."""
        return y

    def row_complaint(self, y: np.ndarray) -> str:
        """Say why `check_rows` refuses the values of a row, `[T]`."""
        return "the values do not fit together"

    # what follows from it

    def cells(self, target: int, rows: Sequence[Row], columns: Sequence[str]) -> list[str]:
        """Return the cells of a target, with their relations; blank for broken rows.

        Raises:
            InputError: there is no such column, or several.
        """
        place = find_column(columns, self.targets[target])
        cells = ["" if row.error else row.cells[place] for row in rows]
        for at in find_columns(columns, [self.relation_column] if self.relation_column else []).values():
            pairs = zip(rows, cells, strict=True)
            cells = ["" if row.error else join_relation(cell, row.cells[at]) for row, cell in pairs]
        return cells

    def relations(self, columns: Sequence[str]) -> RelationColumns:
        """Return the columns of a table that may hold relations of the targets; none for columns without bounds."""
        if self.censored is None or self.level.lists:
            return RelationColumns((), ())
        return RelationColumns(columns, self.targets, self.relation_column)

    def infer(self, files: Sequence[InputFile]) -> dict[str, Any]:
        """Return the fields of the task that depend on the cells of the tables, such as the names of classes.

        Raises:
            InputError: a column is missing or cannot be learned.
        """
        for t, name in enumerate(self.targets):
            with named(files[0].source):
                cells = self.cells(t, files[0].rows, files[0].columns)
            if self.level.lists:
                if all(or_none(self.items, t, cell) is None for cell in cells):
                    raise InputError(
                        f"target column {name!r} holds no list of {self.nouns[1]} in any of the {len(cells)} rows; "
                        f"one {self.nouns[0]} for each {self.level.name} was expected"
                    )
            elif not np.isfinite(values := self.values(t, cells)).any():
                if self.censored and any(map(parse_bound, cells)):
                    raise InputError(f"target column {name!r} holds bounds alone; exact values were expected too")
                why = f"is blank in all of the {len(cells)} rows; numbers were expected"
                if wrong := [cell for cell, value in zip(cells, values, strict=True) if np.isinf(value)]:
                    complaint = self.complaint(t, wrong[0]) + comma_advice(wrong)
                    why = f"holds no value: '{printable(wrong[0])}' {complaint}"
                raise InputError(f"target column {name!r} {why}")
        return {}

    def read(self, rows: Sequence[Row], columns: Sequence[str]) -> TargetCells:
        """Read the cells of those targets that a table has."""
        y = np.full((len(rows), len(self.targets)), np.nan)
        lists: list[dict[str, np.ndarray]] = [{} for _ in rows]
        bad: list[tuple[int, int, str, str]] = []
        known = {t: self.cells(t, rows, columns) for t in find_columns(columns, self.targets)}
        for t, cells in known.items():
            if not self.level.lists:
                y[:, t] = self.values(t, cells)
                unread = np.flatnonzero(np.isinf(y[:, t])).tolist()
                advice = "" if self.discrete else comma_advice(cells[i] for i in unread)
                for i in unread:
                    reason = self.complaint(t, cells[i]) + (advice if has_comma(cells[i]) else "")
                    bad.append((i, t, cells[i], reason))
                continue
            for i, cell in enumerate(cells):
                try:
                    items = self.items(t, cell)
                except InputError as reason:
                    bad.append((i, t, cell, str(reason)))
                    continue
                if items is not None:
                    lists[i][self.targets[t]] = items
                    measured = np.sort(items[~np.isnan(items)])  # independent of the order of the atoms
                    y[i, t] = measured.mean() if len(measured) else np.nan
        y[np.isinf(y)] = np.nan
        bounds = self.bounds_in([known.get(t, [""] * len(rows)) for t in range(len(self.targets))])
        return TargetCells(y, bounds, lists if self.level.lists else None, sorted(bad))

    def parse(self, rows: Sequence[Row], columns: Sequence[str], row_log: RowLog) -> TargetCells:
        """Read the targets of all rows; a wrong cell is an error of its row, which has no values then.

        Raises:
            InputError: there is no such column.
        """
        places = [find_column(columns, name) for name in self.targets]
        if self.relation_column is not None:
            find_column(columns, self.relation_column)
        cells = self.read(rows, columns)
        for i, t, cell, reason in cells.bad:
            row_log.error(rows[i].number, self.targets[t], cell, reason, category=BAD_TARGET)
        refused = {i for i, *_ in cells.bad}
        y = cells.y
        y[sorted(refused)] = np.nan
        if self.level.lists:
            for i, t in [(i, t) for i in range(len(rows)) if i not in refused for t in range(len(places))]:
                cell = "" if rows[i].error or self.discrete else rows[i].cells[places[t]]
                if number := sum(parse_bound(item) is not None for item in split_list(cell)):
                    words = f"left out as blank: of {self.level.name}s only exact values are learned"
                    row_log.warn(rows[i].number, self.targets[t], cell, f"{plural(number, 'bound')} {words}")
            return cells
        joined = self.check_rows(y)
        for i in np.flatnonzero(np.isinf(joined).any(1)).tolist():
            row_log.error(rows[i].number, None, None, self.row_complaint(y[i]), category=BAD_TARGET)
        return cells._replace(y=np.where(np.isinf(joined), np.nan, joined))

    def bounds_in(self, columns: Sequence[Sequence[str]]) -> np.ndarray | None:
        """Parse the bounds in the cells of T targets, see `TargetCells`."""
        if not self.censored:
            return None
        bounds = np.full((len(columns[0]), 2, len(columns)), np.nan)
        for t, cells in enumerate(columns):
            for i, cell in enumerate(cells):
                if bound := parse_bound(cell):
                    side, number = bound
                    bounds[i, 0 if side > 0 else 1, t] = number
        return bounds.reshape(len(columns[0]), 2 * len(columns))

    def attach_lists(
        self, store: MoleculeStore, lists: Sequence[dict[str, np.ndarray]]
    ) -> tuple[MoleculeStore, dict[int, tuple[str, str]]]:
        """Add the lists of rows, see `TargetCells`, to the molecules of a store.

        Returns:
            The store, and for each molecule whose list does not fit, by its index, the target and the reason.
        """
        ptr = self.level.ptr(store).numpy()
        y, wrong = attach_lists(lists, self.targets, ptr, "bond" if self.level.name == "bond" else "atom", self.nouns)
        return self.level.with_targets(store, torch.from_numpy(y)), wrong


# --- Columns: labels of classes.

ZERO_ONE = ("0", "1")
MOST_CLASSES = 100


@dataclass(frozen=True)
class ClassColumns(Columns):
    """Columns of labels, which become numbers of classes.

    Attributes:
        classes: labels of each target in order; None before the table is read.
        task: name of the task, for messages.
        binary: whether each target has exactly two classes, the positive one last; 0 and 1 before the table is read.
        positive: positive class of every target of two; by default see `gtx.tasks.columns.in_order`.
    """

    classes: tuple[tuple[str, ...], ...] | None = None
    task: str = "multiclass"
    binary: bool = False
    positive: str | None = None

    discrete: ClassVar[bool] = True
    nouns: ClassVar[tuple[str, str]] = ("class", "classes")

    def labels(self, target: int) -> tuple[str, ...]:
        """Return the labels of a target's classes."""
        if self.classes is not None:
            return tuple(self.classes[target])
        return ZERO_ONE if self.binary else ()

    def infer(self, files: Sequence[InputFile]) -> dict[str, Any]:
        return self.infer_from_cells([files[0].cells(name) for name in self.targets])

    def infer_from_cells(self, columns: Sequence[Sequence[str]]) -> dict[str, Any]:
        """Return the classes in the cells of each target, as a field of the task.

        Raises:
            InputError: the cells of a target cannot be learned.
        """
        hint = f"; for numbers there is --task {self.level.name}s" if self.level.lists else ""
        classes = []
        for name, cells in zip(self.targets, columns, strict=True):
            labels = self.classes_of(name, cells)
            if self.binary and len(labels) > 2:
                exactly = f"{self.task} needs exactly two; for more than two there is --task multiclass"
                raise InputError(
                    f"target column {name!r} holds {len(labels)} classes, {list_labels(labels)}; {exactly}"
                )
            check_count(labels, name, self.task, hint)
            if self.positive is not None and same_label(labels[-1]) != same_label(normal_label(self.positive)):
                raise InputError(
                    f"positive: target {name!r} has the classes {list_labels(labels)}, not {self.positive!r}"
                )
            classes.append(labels)
        return {"classes": tuple(classes)}

    def classes_of(self, name: str, cells: Sequence[str]) -> tuple[str, ...]:
        """List the classes in the cells of a target column, in order.

        Raises:
            InputError: there is none.
        """
        if self.level.lists:
            labels = in_order((item for cell in cells for item in or_none(_labels, cell) or ()), self.positive)
            if not labels:
                what = f"holds no list of classes in any of the {len(cells)} rows"
                raise InputError(f"target column {name!r} {what}; one class for each {self.level.name} was expected")
            return labels
        counts = count_labels(map(label, cells))
        if not counts:
            raise InputError(f"target column {name!r} is blank in all of the {len(cells)} rows; classes were expected")
        return in_order(main_labels(counts) if self.binary and len(counts) != 2 else counts, self.positive)

    def values(self, target: int, cells: Sequence[str]) -> np.ndarray:
        return label_indices(map(label, cells), self.labels(target))

    def items(self, target: int, cell: str) -> np.ndarray | None:
        names = _labels(cell)
        if names is None:
            return None
        labels = self.labels(target)
        values = label_indices(names, labels)
        for i in np.flatnonzero(np.isinf(values)).tolist()[:1]:
            item = f"item {i + 1}, '{printable(str(names[i]), 20)}',"
            raise InputError(f"{item} is none of the classes {list_labels(labels)} of the training table, nor null")
        return values

    def complaint(self, target: int, cell: str) -> str:
        labels = self.labels(target)
        if self.binary:
            return f"is neither {labels[0]} nor {labels[1]}, nor blank"
        return f"is none of the classes {list_labels(labels)} of the training table, nor blank"


def _labels(cell: str) -> list[str | None] | None:
    """Parse the labels of a cell's list; None if it is blank."""
    items = parse_labels(cell)
    return None if items is None else [None if item is None else normal_label(item) for item in items]
