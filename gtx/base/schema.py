"""Checks by pydantic of plain values from outside, such as JSON; errors name the entry, the expected and the value.

    header = entries({"limit": integer(1, 100), "names": list_of(Text, least=1)})
    check({"limit": 0, "names": ["a"]}, header, "header")  # InputError: header.limit: expected a ...

A kind is a type, with limits as `Annotated` holds them. Nothing is converted: `"1"` and `True` are no numbers.
"""

from __future__ import annotations

import re
import reprlib
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache, lru_cache
from typing import Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin, get_type_hints

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    PydanticSchemaGenerationError,
    TypeAdapter,
    ValidationError,
    with_config,
)
from pydantic_core import ErrorDetails
from typing_extensions import TypedDict  # pydantic does not take Python's own before 3.12

from gtx.base.errors import InputError, did_you_mean, printable

LARGEST = 10**6
"""Maximum of counts and sizes in a file."""
LONGEST = 100
"""Maximum length of a list of arguments."""
LONGEST_TEXT = 10_000
"""Default maximum number of characters of a text."""
_SHORT = reprlib.Repr()
_SHORT.maxlist = _SHORT.maxtuple = 12
_SHORT.maxstring = 60


# --- Kinds of values.


def valid(words: str, holds: Callable[[Any], bool]) -> AfterValidator:
    """Make a limit of a kind from a predicate, described by `words`."""

    def check(value: Any) -> Any:
        if not holds(value):
            raise ValueError(words)
        return value

    return AfterValidator(check)


def _leaves(value: Any) -> Iterator[Any]:
    """Yield the values within lists and mappings, and the names of the latter."""
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, dict):
            left += [*one, *one.values()]
        elif isinstance(one, (list, tuple)):
            left += one
        else:
            yield one


def _has_texts(value: Any) -> bool:
    """Return whether all texts in a value are such as `Text`, without lone surrogates, as stray bytes are read."""
    texts = (leaf for leaf in _leaves(value) if isinstance(leaf, str))
    return all(len(each) <= LONGEST_TEXT and not re.search("[\ud800-\udfff]", each) for each in texts)


def _is_storable(value: Any) -> bool:
    """Return whether all numbers in a value are of 64 bits, which NaN is not."""
    return all(abs(leaf) < 2**63 for leaf in _leaves(value) if isinstance(leaf, (int, float)))


def text(most: int = LONGEST_TEXT) -> Any:
    """Make the kind of texts of at most `most` characters."""
    return Annotated[str, Field(max_length=most)]


def integer(low: int = 0, high: int = LARGEST) -> Any:
    """Make the kind of integers from `low` to `high`."""
    return Annotated[int, Field(ge=low, le=high)]


def number(low: float | None = None, high: float | None = None) -> Any:
    """Make the kind of finite numbers from `low` to `high`."""
    return Annotated[float, Field(ge=low, le=high, allow_inf_nan=False)]


def list_of(kind: Any, least: int = 0, most: int = LARGEST) -> Any:
    """Make the kind of lists of `least` to `most` values of one kind."""
    return Annotated[Sequence[kind], Field(min_length=least, max_length=most)]


def per_target(kind: Any) -> Callable[[int], Any]:
    """Make the kind of lists with a value for each target, by number of targets."""
    return lambda targets: list_of(kind, targets, targets)


def mapping_of(kind: Any) -> Any:
    """Make the kind of mappings from names to values of one kind."""
    return dict[Text, kind]


def one_of(values: Iterable[str]) -> Any:
    """Make the kind of some texts."""
    return Literal[tuple(values)]


def entries(needed: Mapping[str, Any], optional: Mapping[str, Any] | None = None) -> Any:
    """Make the kind of mappings with a kind for each known name; other names may have any value."""
    members: dict[str, Any] = {name: Required[kind] for name, kind in needed.items()}
    members |= {name: NotRequired[kind] for name, kind in (optional or {}).items() if name not in needed}
    kind = TypedDict("Entries", members)  # type: ignore[misc]  # its names are known now
    return with_config(ConfigDict(extra="allow", strict=True))(kind)


Text: Any = text()
Number: Any = number()
Anything = Annotated[Any, valid(f"texts in UTF-8 of at most {LONGEST_TEXT:,} characters", _has_texts)]
"""Any value of JSON; its texts are such as `Text`."""
Entries = mapping_of(Anything)
"""Mapping from names to any values of JSON."""
Storable = Annotated[Any, valid("finite numbers of at most 64 bits", _is_storable)]
"""What a model file can store: finite numbers of 64 bits, texts, and lists and mappings of such."""


# --- Checks.

_adapter = lru_cache(maxsize=256)(TypeAdapter)
"""What pydantic makes of a kind in some milliseconds."""


def check(value: Any, kind: Any, entry: str = "", convert: bool = False) -> Any:
    """Return a value of a kind, or raise an `InputError` that names the entry at fault.

    With `convert`, texts of a user are read as numbers and truth values, such as "3" and "true"; of a list an error
    shows the text at fault, not its place.
    """
    try:
        return _adapter(kind).validate_python(value, strict=not convert)
    except ValidationError as error:
        raise InputError(_message(error.errors(include_url=False)[0], value, entry, placed=not convert)) from None


_EXPECTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a finite number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "greater_than": "a number above {gt:,}",
    "greater_than_equal": "a number of {ge:,} or more",
    "less_than": "a number below {lt:,}",
    "less_than_equal": "a number of at most {le:,}",
    "string_type": "a text",
    "string_unicode": "a text in UTF-8",
    "string_too_long": "a text of at most {max_length:,} characters",
    "too_long": "at most {max_length:,} values",
    "too_short": "at least {min_length:,} values",
    "is_instance_of": "a list",
    "sequence_str": "a list",
    "list_type": "a list",
    "tuple_type": "a list",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "dict_type": "entries with names",
    "literal_error": "one of {expected}",
}
"""What was expected, by pydantic's names of errors (https://docs.pydantic.dev/latest/errors/validation_errors)."""


def _message(error: ErrorDetails, value: Any, entry: str, placed: bool) -> str:
    """Write pydantic's error in one line; parts of its place that are no entries, such as members of unions, are left
    out, and without `placed` those in lists.
    """
    for part in error["loc"]:
        if isinstance(value, Mapping) and (part in value or error["type"] == "missing"):
            entry, value = f"{entry}.{printable(str(part))}" if entry else printable(str(part)), value.get(part)
        elif isinstance(value, Sequence) and isinstance(part, int) and part < len(value):
            entry, value = f"{entry}[{part}]" if placed else entry, value[part]
    if error["type"] == "missing":
        return f"{entry}: this entry is missing"
    words = error["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    limits = error.get("ctx", {})
    limits = {
        name: int(limit) if isinstance(limit, float) and limit.is_integer() else limit for name, limit in limits.items()
    }
    expected = _EXPECTED.get(error["type"], words).format(**limits)
    came = error["input"]
    counted = error["type"] in ("too_long", "too_short", "string_too_long")
    names = re.findall("'(.*?)'", expected) if error["type"] == "literal_error" and isinstance(came, str) else ()
    text = f"{len(came):,}" if counted else f"{shown(came)}{did_you_mean(came, names) if names else ''}"
    return f"{entry or 'header'}: expected {expected}, got {text}"


@cache
def kinds_of(function: Callable[..., Any]) -> Mapping[str, Any]:
    """Derive the kind of each argument of a function, or field of a dataclass, from its annotation.

    An integer is a count or a size, from 0 to `LARGEST`; a list has at most `LONGEST` values. Arguments without a
    plain value, such as modules, are left out.
    """
    hints = get_type_hints(function, include_extras=True)
    kinds = {name: _limited(hint) for name, hint in hints.items() if name != "return"}
    return {name: kind for name, kind in kinds.items() if _is_plain(kind)}


@cache
def arguments_of(*functions: Callable[..., Any]) -> Any:
    """Make the kind of mappings with the arguments of functions, of which each may be left out, see `kinds_of`."""
    return entries({}, {name: kind for function in functions for name, kind in kinds_of(function).items()})


def _limited(hint: Any) -> Any:
    """Add the limits of a count, a number, a text or a list to an annotation without limits."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (types.UnionType, Union):
        return Union[tuple(map(_limited, parts))]  # noqa: UP007  # its members are known now
    if origin in (Annotated, Literal, dict):
        return hint
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return dict[str, Any]
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return list_of(_limited(parts[0]), most=LONGEST)
    limited: dict[Any, Any] = {int: integer(), float: Number, str: Text}
    return limited.get(hint, hint)


def _is_plain(kind: Any) -> bool:
    if kind is Any:
        return False
    try:
        TypeAdapter(kind)
    except PydanticSchemaGenerationError:  # a module, a function
        return False
    return True


def check_fields(settings: Any) -> None:
    """Make the values of a frozen dataclass `plain`, and check them by the annotations of its fields.

    Raises:
        InputError: a value is not of the kind of its field.
    """
    values = {entry.name: plain(getattr(settings, entry.name)) for entry in fields(settings)}
    constructor: Callable[..., Any] = type(settings)
    check(values, arguments_of(constructor))
    for name, value in values.items():
        object.__setattr__(settings, name, value)


def plain(value: Any) -> Any:
    """Convert scalars and arrays of numpy, also within lists, tuples and dicts, to Python's own numbers and lists."""
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(plain, value))
    return value.tolist() if hasattr(value, "tolist") else value


def shown(value: Any) -> str:
    """Format a value for a message: short, on one line."""
    return printable(_SHORT.repr(value))
