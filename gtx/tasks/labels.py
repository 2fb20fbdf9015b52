"""Labels of classes: how a cell is read, the classes of a column and their order, and the index of each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from gtx.base.errors import InputError
from gtx.base.schema import Text, check, list_of
from gtx.data.cells import BLANKS, parse_number

MOST_CLASSES = 100

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
    return None if cell.strip().lower() in BLANKS else normal_label(cell)


def normal_label(text: str) -> str:
    """Normalise a label: without white space around it; a number in its shortest form."""
    number = parse_number(text)
    return f"{number:.15g}" if np.isfinite(number) else text.strip()


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
        raise InputError(f"target column {name!r} holds only the class {labels[0]!r}; {task} needs two or more")
    if len(labels) > MOST_CLASSES:
        many = f"holds {len(labels)} different values, e.g. {listed(labels, 3)}"
        raise InputError(f"target column {name!r} {many}; {task} takes at most {MOST_CLASSES} classes{hint}")
    check(labels, list_of(Text), f"target column {name!r}, classes")


def listed(labels: Sequence[str], most: int = 8) -> str:
    """List labels in a text, the first few of many."""
    shown = ", ".join(map(repr, labels[:most]))
    return shown if len(labels) <= most else f"{shown} and {len(labels) - most} more"
