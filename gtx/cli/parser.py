"""A parser of options whose errors are one line with a near name, and the values that options take."""

from __future__ import annotations

import argparse
import json
from argparse import Action, ArgumentError, ArgumentTypeError, BooleanOptionalAction, Namespace
from collections.abc import Sequence
from typing import Any, NoReturn, get_args, get_origin

import yaml

from gtx.errors import InputError, did_you_mean


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Keeps the line breaks of examples, and says the default of an option whose text does not."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=32)

    def _get_help_string(self, action: Action) -> str:
        text, default = action.help.removesuffix(" (default: %(default)s)"), action.default  # added by Python 3.11
        if "default:" in text or default is None or default is False or default in (argparse.SUPPRESS, {}):
            return text
        if default is True:
            default = action.option_strings[0]
        elif isinstance(default, list):
            default = " ".join(map(str, default))
        return f"{text} (default: {default})"


class Parser(argparse.ArgumentParser):
    """Raises `InputError`, of one line, where argparse prints all options; options cannot be abbreviated.

    Args:
        prog: the command, e.g. "gtx train".
        more: as of `argparse.ArgumentParser`.
    """

    def __init__(self, prog: str, **more: Any) -> None:
        super().__init__(prog=prog, formatter_class=Formatter, allow_abbrev=False, **more)
        self.register("type", int, whole_number)
        self.register("type", float, number)

    def parse_args(self, words: Sequence[str]) -> Namespace:
        """The options that the words give.

        Raises:
            InputError: an option is unknown, missing, or has an unusable value.
        """
        self._refuse_unknown(words)
        return super().parse_args(words)

    def error(self, message: str) -> NoReturn:
        message = message.removeprefix("argument ").replace("unrecognized arguments:", "unexpected:")
        raise InputError(f"{message} ({self.prog} --help)")

    def _refuse_unknown(self, words: Sequence[str]) -> None:
        """Before what is missing is looked for: a misspelt option is often what is missing."""
        known = self._option_string_actions
        for word in words:
            name = word.partition("=")[0]
            if word == "--":
                break
            if name not in known and _is_option(word):
                self.error(f"unknown option {name}{did_you_mean(name, known, str)}")

    def _check_value(self, action: Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            expected = ", ".join(action.choices)
            raise ArgumentError(
                action, f"expected one of {expected}, got {value!r}{did_you_mean(value, action.choices)}"
            )


class Pairs(Action):
    """`name=value` words, or one word that is a JSON object, as a dictionary; given again, it adds to it."""

    def __init__(self, *names: Any, **more: Any) -> None:
        super().__init__(*names, nargs="+", metavar="NAME=VALUE", **more)

    def __call__(self, parser: Any, namespace: Namespace, values: Sequence[str], option: str | None = None) -> None:
        found = dict(getattr(namespace, self.dest) or {})
        for word in values:
            found |= self._pairs(word)
        setattr(namespace, self.dest, found)

    def _pairs(self, word: str) -> dict[str, Any]:
        name, equals, value = word.partition("=")
        try:
            found = _value(word) if word.startswith("{") else {name: _value(value)} if equals else None
        except (yaml.YAMLError, ValueError):
            found = None
        if isinstance(found, dict) and all(isinstance(name, str) and name for name in found):
            return found
        raise ArgumentError(self, f"expected name=value, such as layers=4, got {word!r}")


def whole_number(text: str) -> int:
    """What `type=int` reads, with a message of its own."""
    try:
        return int(text)
    except ValueError:
        raise ArgumentTypeError(f"expected a whole number, got {text!r}") from None


def number(text: str) -> float:
    """What `type=float` reads, with a message of its own."""
    try:
        return float(text)
    except ValueError:
        raise ArgumentTypeError(f"expected a number, got {text!r}") from None


def option_of(kind: Any) -> dict[str, Any]:
    """What `add_argument` needs to know for a value of a type: of `int | None`, the option of `int`."""
    if dict in map(get_origin, (kind, *get_args(kind))):
        return {"action": Pairs}
    if str in get_args(kind) and int in get_args(kind):
        return {"type": lambda text: int(text) if text.isdecimal() else text, "metavar": "N"}
    kind = next((part for part in get_args(kind) if part in (bool, int, float, str) or get_args(part)), kind)
    if kind is bool:
        return {"action": BooleanOptionalAction}
    if kind is int:
        return {"type": int, "metavar": "N"}
    if kind is float:
        return {"type": float, "metavar": "X"}
    return {"metavar": "NAME"} if kind is str else {"choices": list(get_args(kind))}


def _value(text: str) -> Any:
    """JSON, whose numbers may be 1e-3, else what YAML makes of it."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        found = yaml.safe_load(text)
        return found if isinstance(found, (bool, int, float, str, list, dict, type(None))) else text  # not a date


def _is_option(word: str) -> bool:
    """As argparse tells options from other words: not a dash alone, a negative number or a sentence."""
    return word.startswith("-") and len(word) > 1 and " " not in word and not word[1].isdigit() and word[1] != "."
