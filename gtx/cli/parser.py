"""A parser of options whose errors are one line with a near name, and the values that options take."""

from __future__ import annotations

import argparse
from argparse import Action, ArgumentError, ArgumentTypeError, BooleanOptionalAction, Namespace
from collections.abc import Sequence
from typing import Any, NoReturn, get_args, get_origin

import yaml

from gtx.cli.config import plain_value, use_config
from gtx.errors import InputError, did_you_mean


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Keeps the line breaks of examples, and says the default of an option whose text does not."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=32)

    def _get_help_string(self, action: Action) -> str:
        text, default = action.help.removesuffix(" (default: %(default)s)"), action.default  # added by Python 3.11
        if "default:" in text or default is None or default is False or default in (argparse.SUPPRESS, {}, [], ()):
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
        if prog != "gtx":
            self.add_argument(
                "--config",
                metavar="FILE",
                help="a YAML file with options by name, such as epochs: 40; what the command line says wins over it",
            )

    def parse_args(self, words: Sequence[str]) -> Namespace:
        """The options that the words give, and `chosen`, the names of those that the words or their `--config` name.

        Raises:
            InputError: an option is unknown, missing, or has an unusable value.
        """
        self._refuse_unknown(words)
        chosen = self._named(words)
        for file in self._config_files(words) if "config" in chosen else ():
            chosen |= use_config(self, file)
        found = super().parse_args(words)
        found.chosen = frozenset(chosen)
        return found

    def error(self, message: str) -> NoReturn:
        message = message.removeprefix("argument ").replace("unrecognized arguments:", "unexpected:")
        raise InputError(f"{message} ({self.prog} --help)")

    def _named(self, words: Sequence[str]) -> set[str]:
        """The names of the options among the words."""
        options = words[: words.index("--")] if "--" in words else words
        known = self._option_string_actions
        return {known[name].dest for name in (word.partition("=")[0] for word in options) if name in known}

    def _config_files(self, words: Sequence[str]) -> list[str]:
        alone = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
        alone.add_argument("--config", action="append", default=[])
        try:
            return alone.parse_known_args(words)[0].config
        except ArgumentError:
            return []  # which the parser itself says better

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

    mapping = True

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
            found = plain_value(word) if word.startswith("{") else {name: plain_value(value)} if equals else None
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


def _is_option(word: str) -> bool:
    """As argparse tells options from other words: not a dash alone, a negative number or a sentence."""
    return word.startswith("-") and len(word) > 1 and " " not in word and not word[1].isdigit() and word[1] != "."
