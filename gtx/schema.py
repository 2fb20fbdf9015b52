"""What plain values from outside, such as JSON, may be; a message names the entry that is something else.

counts = Record({"limit": whole(1, 100), "names": ListOf(text(), least=1)})
counts.check({"limit": 0, "names": ["a"]}, "header")  # InputError: header.limit: expected a whole number ...
"""

from __future__ import annotations

import reprlib
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, Protocol, Union, get_args, get_origin, get_type_hints

from gtx.errors import InputError, printable

LARGEST = 10**6
"""No count and no size that a file asks for is larger."""
LONGEST = 100
"""No list of arguments is longer."""
_SHORT = reprlib.Repr()
_SHORT.maxlist = _SHORT.maxtuple = 12
_SHORT.maxstring = 60


class Kind(Protocol):
    """What a value may be."""

    def check(self, value: Any, entry: str) -> None:
        """Raise an `InputError` that names the entry if the value is something else."""


@dataclass(frozen=True)
class Value:
    """One value.

    Attributes:
        words: what is expected.
        holds: whether a value is so.
    """

    words: str
    holds: Callable[[Any], bool]

    def check(self, value: Any, entry: str) -> None:
        if not self.holds(value):
            raise InputError(f"{entry}: expected {self.words}, got {shown(value)}")


@dataclass(frozen=True)
class OrNone:
    """None, or a value of some kind."""

    kind: Kind

    def check(self, value: Any, entry: str) -> None:
        if value is not None:
            self.kind.check(value, entry)


@dataclass(frozen=True)
class ListOf:
    """A list of `least` to `most` values of one kind."""

    kind: Kind
    least: int = 0
    most: int = LARGEST

    def check(self, value: Any, entry: str) -> None:
        if not isinstance(value, (list, tuple)):
            raise InputError(f"{entry}: expected a list, got {shown(value)}")
        if not self.least <= len(value) <= self.most:
            raise InputError(f"{entry}: expected {_range(self.least, self.most)} values, got {len(value)}")
        for i, item in enumerate(value):
            self.kind.check(item, f"{entry}[{i}]")


@dataclass(frozen=True)
class MappingOf:
    """Any names, each with a value of one kind."""

    kind: Kind

    def check(self, value: Any, entry: str) -> None:
        _check_mapping(value, entry)
        for name, item in value.items():
            self.kind.check(item, f"{entry}.{printable(name)}")


@dataclass(frozen=True)
class Record:
    """Known names, each with its kind; other names may have any value."""

    needed: Mapping[str, Kind]
    optional: Mapping[str, Kind] = field(default_factory=dict)

    def check(self, value: Any, entry: str = "") -> None:
        _check_mapping(value, entry)
        for name, kind in {**self.optional, **self.needed}.items():
            place = f"{entry}.{name}" if entry else name
            if name in value:
                kind.check(value[name], place)
            elif name in self.needed:
                raise InputError(f"{place}: this entry is missing")


def anything() -> Value:
    return Value("anything", lambda value: True)


def text() -> Value:
    return Value("a text", lambda value: isinstance(value, str))


def flag() -> Value:
    """True or False; 1 and 0 pass too."""
    return Value("true or false", lambda value: value in (True, False) and isinstance(value, int))


def whole(low: int = 0, high: int = LARGEST) -> Value:
    return Value(f"a whole number {_range(low, high)}", lambda value: _is(int, value) and low <= value <= high)


def number(low: float = -1e308, high: float = 1e308) -> Value:
    """A finite number, from `low` to `high`."""
    words = "a finite number" if (low, high) == (-1e308, 1e308) else f"a number from {low:g} to {high:g}"
    return Value(words, lambda value: _is((int, float), value) and low <= value <= high)


def one_of(values: Sequence[Any]) -> Value:
    return Value(f"one of {', '.join(map(repr, values))}", lambda value: isinstance(value, str) and value in values)


@cache
def kinds_of(function: Callable[..., Any]) -> Mapping[str, Kind]:
    """What each argument of a function may be, by its annotation.

    A whole number is a count or a size, from 0 to `LARGEST`; a list has at most `LONGEST` values. Arguments that no
    plain value can stand for, such as modules, are left out.
    """
    kinds = {name: _kind(hint) for name, hint in get_type_hints(function).items() if name != "return"}
    return {name: kind for name, kind in kinds.items() if kind is not None}


def shown(value: Any) -> str:
    """A value as a message shows it: on one line, and short."""
    return printable(_SHORT.repr(value))


def _kind(hint: Any) -> Kind | None:
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (types.UnionType, Union):
        given = [part for part in parts if part is not type(None)]
        kind = _kind(given[0]) if len(given) == 1 else None
        return kind and OrNone(kind)
    if origin is Literal:
        return one_of(parts)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return Value("entries with names", lambda value: isinstance(value, dict))
    if isinstance(origin, type) and issubclass(origin, Sequence):
        kind = _kind(parts[0])
        return kind and ListOf(kind, most=LONGEST)
    plain = {bool: flag, int: whole, float: number, str: text}
    return plain[hint]() if hint in plain else None


def _check_mapping(value: Any, entry: str) -> None:
    if not isinstance(value, dict):
        raise InputError(f"{entry or 'header'}: expected entries with names, got {shown(value)}")


def _is(kind: type | tuple[type, ...], value: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _range(low: int, high: int) -> str:
    return f"{low}" if low == high else f"from {low:,} to {high:,}"
