from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import pytest

from gtx.base.errors import InputError
from gtx.schema import Kind, ListOf, MappingOf, OrNone, Record, flag, kinds_of, number, one_of, text, whole

NUMBERS = ListOf(number(0), least=1, most=3)


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (text(), ["", "a"], [None, 1, ["a"]]),
        (flag(), [True, False, 1, 0], [None, 2, "true", 0.5]),
        (whole(1, 9), [1, 9], [0, 10, True, 1.0, "1", None]),
        (number(), [0, -1e300, 5], [True, float("nan"), float("inf"), 10**400, "1"]),
        (one_of(("a", "b")), ["a"], ["c", None, ["a"], {}]),
        (OrNone(text()), [None, "a"], [1]),
        (NUMBERS, [[0.5], [1, 2, 3]], [[], [1] * 4, [-1], "abc", {"a": 1}, None]),
        (MappingOf(whole()), [{}, {"a": 1}], [[], {"a": None}]),
        (Record({"a": text()}, {"b": whole()}), [{"a": ""}, {"a": "", "b": 1, "c": None}], [{}, {"a": 1}, [], None]),
    ],
)
def test_what_a_value_may_be(kind: Kind, good: list[Any], bad: list[Any]) -> None:
    for value in good:
        kind.check(value, "entry")
    for value in bad:
        with pytest.raises(InputError, match="entry"):
            kind.check(value, "entry")


def test_a_message_names_the_entry_and_the_value_however_long() -> None:
    header = Record({"inner": MappingOf(NUMBERS)})
    with pytest.raises(InputError, match=r"^inner\.a\[1\]: expected a number from 0 to 1e\+308, got -2$"):
        header.check({"inner": {"a": [1, -2]}})
    with pytest.raises(InputError, match=r"^inner: this entry is missing$"):
        header.check({})
    with pytest.raises(InputError) as caught:
        header.check({"inner": {"a" * 10**6: [["b" * 10**6] * 1000]}})
    assert len(str(caught.value)) < 300


def test_annotations_say_what_arguments_may_be() -> None:
    def make(
        size: int,
        rate: float = 0.1,
        names: Sequence[str] = (),
        how: Literal["a", "b"] | None = None,
        *,
        more: Mapping[str, Any] | None = None,
        layer: Callable[[int], int] | None = None,
        **rest: Any,
    ) -> None: ...

    kinds = kinds_of(make)
    assert list(kinds) == ["size", "rate", "names", "how", "more"]
    for name, good, bad in [
        ("size", 3, -1),
        ("rate", 1, "x"),
        ("names", ["x"], "x"),
        ("how", None, "c"),
        ("more", {"a": 1}, [1]),
    ]:
        kinds[name].check(good, name)
        with pytest.raises(InputError, match=name):
            kinds[name].check(bad, name)
