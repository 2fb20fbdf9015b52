from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import pytest

from gtx.base.errors import InputError
from gtx.base.schema import Number, Text, check, entries, integer, kinds_of, list_of, mapping_of, number, one_of

NUMBERS = list_of(number(0), least=1, most=3)


def test_what_a_value_may_be() -> None:
    for kind, good, bad in (
        (Text, ["", "a"], [None, 1, ["a"], "a" * 10_001, "\ud800"]),
        (bool, [True, False], [None, 1, 0, "true", 0.5]),
        (integer(1, 9), [1, 9], [0, 10, True, 1.0, "1", None]),
        (Number, [0, -1e300, 5], [True, float("nan"), float("inf"), 10**400, "1"]),
        (one_of(("a", "b")), ["a"], ["c", None, ["a"], {}]),
        (Text | None, [None, "a"], [1]),
        (NUMBERS, [[0.5], [1, 2, 3]], [[], [1] * 4, [-1], "abc", {"a": 1}, None]),
        (mapping_of(integer()), [{}, {"a": 1}], [[], {"a": None}]),
        (entries({"a": Text}, {"b": integer()}), [{"a": ""}, {"a": "", "b": 1, "c": None}], [{}, {"a": 1}, [], None]),
    ):
        for value in good:
            check(value, kind, "entry")
        for value in bad:
            with pytest.raises(InputError, match="entry"):
                check(value, kind, "entry")


def test_a_message_names_the_entry_and_the_value_however_long() -> None:
    header = entries({"inner": mapping_of(NUMBERS)})
    with pytest.raises(InputError, match=r"^inner\.a\[1\]: expected a number of 0 or more, got -2$"):
        check({"inner": {"a": [1, -2]}}, header)
    with pytest.raises(InputError, match=r"^inner: this entry is missing$"):
        check({}, header)
    with pytest.raises(InputError) as caught:
        check({"inner": {"a" * 10**6: [["b" * 10**6] * 1000]}}, header)
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
    first = [("size", 3, -1), ("rate", 1, "x"), ("names", ["x"], "x")]
    values = [*first, ("how", None, "c"), ("more", {"a": 1}, [1]), ("layer", None, "x")]
    assert list(kinds) == [name for name, _, _ in values]
    for name, good, bad in values:
        check(good, kinds[name], name)
        with pytest.raises(InputError, match=name):
            check(bad, kinds[name], name)
