"""Schemas of plain values from outside, such as JSON; errors name the entry that does not fit.

counts = Record({"limit": whole(1, 100), "names": ListOf(text(), least=1)})
counts.check({"limit": 0, "names": ["a"]}, "header")  # InputError: header.limit: expected a whole number ...
"""

from __future__ import annotations

import reprlib
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, Literal, Protocol, Union, get_args, get_origin, get_type_hints

from gtx.base.errors import InputError, printable

LARGEST = 10**6
"""Maximum of counts and sizes in a file."""
LONGEST = 100
"""Maximum length of a list of arguments."""
LONGEST_TEXT = 10_000
"""Default maximum number of characters of a text."""
_SHORT = reprlib.Repr()
_SHORT.maxlist = _SHORT.maxtuple = 12
_SHORT.maxstring = 60


class Kind(Protocol):
    """Type of value that a schema accepts."""

    def check(self, value: Any, entry: str) -> None:
        """Raise an `InputError` that names the entry if the value is something else."""


@dataclass(frozen=True)
class Value:
    """Single value.

    Attributes:
        words: description of the expected value.
        holds: predicate of expected values.
    """

    words: str
    holds: Callable[[Any], bool]

    def check(self, value: Any, entry: str) -> None:
        if not self.holds(value):
            raise InputError(f"{entry}: expected {self.words}, got {shown(value)}")


@dataclass(frozen=True)
class Text:
    """Text of at most `most` characters, without lone surrogates (which Python reads stray bytes as)."""

    most: int

    def check(self, value: Any, entry: str) -> None:
        if not isinstance(value, str):
            raise InputError(f"{entry}: expected a text, got {shown(value)}")
        if len(value) > self.most:
            raise InputError(f"{entry}: expected a text of at most {self.most:,} characters, got {len(value):,}")
        if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
            raise InputError(f"{entry}: expected a text in UTF-8, got {shown(value)}")


@dataclass(frozen=True)
class Anything:
    """Any value of JSON; its texts must satisfy `text()`."""

    def check(self, value: Any, entry: str) -> None:
        left = [value]
        while left:
            one = left.pop()
            if isinstance(one, str):
                text().check(one, entry)
            elif isinstance(one, dict):
                left += [*one, *one.values()]
            elif isinstance(one, (list, tuple)):
                left += one


@dataclass(frozen=True)
class OrNone:
    """None, or a value of a kind."""

    kind: Kind

    def check(self, value: Any, entry: str) -> None:
        if value is not None:
            self.kind.check(value, entry)


@dataclass(frozen=True)
class ListOf:
    """List of `least` to `most` values of one kind."""

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
    """Mapping from any names to values of one kind."""

    kind: Kind

    def check(self, value: Any, entry: str) -> None:
        _check_mapping(value, entry)
        for name, item in value.items():
            text().check(name, entry)
            self.kind.check(item, f"{entry}.{printable(name)}")


@dataclass(frozen=True)
class Record:
    """Mapping with a kind for each known name; other names may have any value."""

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


def anything() -> Anything:
    """Accept any value of JSON."""
    return Anything()


def text(most: int = LONGEST_TEXT) -> Text:
    """Accept a text of at most `most` characters."""
    return Text(most)


def flag() -> Value:
    """Accept True, False, 1 and 0."""
    return Value("true or false", lambda value: value in (True, False) and isinstance(value, int))


def whole(low: int = 0, high: int = LARGEST) -> Value:
    """Accept an integer from `low` to `high`."""
    return Value(f"a whole number {_range(low, high)}", lambda value: _is(int, value) and low <= value <= high)


def number(low: float = -1e308, high: float = 1e308) -> Value:
    """Accept a finite number from `low` to `high`."""
    words = "a finite number" if (low, high) == (-1e308, 1e308) else f"a number from {low:g} to {high:g}"
    return Value(words, lambda value: _is((int, float), value) and low <= value <= high)


def storable() -> Value:
    """Accept what a model file can store: finite numbers of 64 bits, texts, and lists and mappings of such."""

    def holds(value: Any) -> bool:
        if isinstance(value, (list, tuple, dict)):
            return all(map(holds, value.values() if isinstance(value, dict) else value))
        return not isinstance(value, (int, float)) or abs(value) < 2**63  # which NaN is not

    return Value("finite numbers of at most 64 bits", holds)


def one_of(values: Sequence[Any]) -> Value:
    """Accept one of some texts."""
    return Value(f"one of {', '.join(map(repr, values))}", lambda value: isinstance(value, str) and value in values)


@cache
def kinds_of(function: Callable[..., Any]) -> Mapping[str, Kind]:
    """Derive the accepted value of each argument of a function from its annotation.

    An integer is a count or a size, from 0 to `LARGEST`; a list has at most `LONGEST` values. Arguments without a
    plain value, such as modules, are left out.
    """
    kinds = {name: _kind(hint) for name, hint in get_type_hints(function).items() if name != "return"}
    return {name: kind for name, kind in kinds.items() if kind is not None}


def plain(value: Any) -> Any:
    """Convert scalars and arrays of numpy, also within lists, tuples and dicts, to Python's own numbers and lists."""
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(plain, value))
    return value.tolist() if hasattr(value, "tolist") else value


def plain_fields(settings: Any, **kinds: Kind) -> None:
    """Make the values of a frozen dataclass `plain`, and check them.

    Args:
        settings: an instance.
        kinds: kinds of fields whose metadata and annotation do not determine one.

    Raises:
        InputError: a value is not of the kind of its field.
    """
    constructor: Callable[..., Any] = type(settings)
    kinds = {**kinds_of(constructor), **kinds}
    for entry in fields(settings):
        value, kind = plain(getattr(settings, entry.name)), entry.metadata.get("kind") or kinds.get(entry.name)
        if kind is not None:
            (OrNone(kind) if entry.default is None else kind).check(value, entry.name)
        object.__setattr__(settings, entry.name, value)


def shown(value: Any) -> str:
    """Format a value for a message: short, on one line."""
    return printable(_SHORT.repr(value))


def _kind(hint: Any) -> Kind | None:
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (types.UnionType, Union):
        members = [part for part in parts if part is not type(None)]
        kind = _kind(members[0]) if len(members) == 1 else None
        return kind and OrNone(kind)
    if origin is Literal:
        return one_of(parts)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return Value("entries with names", lambda value: isinstance(value, dict))
    if isinstance(origin, type) and issubclass(origin, Sequence):
        kind = _kind(parts[0])
        return kind and ListOf(kind, most=LONGEST)
    kinds: dict[Any, Callable[[], Kind]] = {bool: flag, int: whole, float: number, str: text}
    return kinds[hint]() if hint in kinds else None


def _check_mapping(value: Any, entry: str) -> None:
    if not isinstance(value, dict):
        raise InputError(f"{entry or 'header'}: expected entries with names, got {shown(value)}")


def _is(kind: type | tuple[type, ...], value: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _range(low: int, high: int) -> str:
    return f"{low}" if low == high else f"from {low:,} to {high:,}"
