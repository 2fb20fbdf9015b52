"""A file of options: what the words of a command line would say, in YAML."""

from __future__ import annotations

import argparse
import json
from argparse import Action, ArgumentError
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from gtx.errors import InputError, did_you_mean, printable


def use_config(parser: argparse.ArgumentParser, file: str) -> set[str]:
    """Make the entries of a file the defaults of a parser, checked as words of the command line are.

    An entry has the name of an option: `target_columns: [y]`; the words without a dash are named as in the help:
    `table: data.csv`. Options that take `name=value` are mappings. An entry without a value is none.

    Returns:
        The names of the parser's attributes that it sets.

    Raises:
        InputError: the file cannot be read, or an entry is no option of the command or has an unusable value.
    """
    actions = _named(parser)
    given: set[str] = set()
    for name, value in read_config(file).items():
        action = actions.get(name.replace("-", "_"))
        if action is None:
            raise InputError(f"{file}: {parser.prog} has no option {name!r}{did_you_mean(name, actions)}")
        if value in ("", "null"):
            continue
        try:
            action.default = _checked(parser, action, value)
        except ArgumentError as error:
            raise InputError(f"{file}: {name}: {error.message}") from None
        action.required = False
        if not action.option_strings:
            action.nargs = {None: "?", "+": "*"}.get(action.nargs, action.nargs)
        given.add(action.dest)
    return given


def read_config(file: str) -> dict[str, Any]:
    """The entries of a file, every value a text as a command line has it, or a list or a mapping of such.

    Raises:
        InputError: it cannot be read, or it is no mapping, or what `gtx train` notes of a run.
    """
    try:
        found = yaml.load(Path(file).read_text(encoding="utf-8"), yaml.BaseLoader)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--config {file}: {getattr(error, 'strerror', None) or error}") from None
    except yaml.YAMLError as error:
        raise InputError(f"--config {file} is no YAML: {printable(' '.join(str(error).split()), 200)}") from None
    found = {} if found in ("", None) else found
    if not isinstance(found, Mapping):
        raise InputError(f"--config {file}: expected options by name, such as epochs: 40")
    if {"settings", "featuriser"} <= found.keys():
        raise InputError(
            f"--config {file}: this is what gtx train notes of a run to know it again, not a file of options; "
            "write those that you need, such as epochs: 40, into a file of your own"
        )
    return dict(found)


def plain_value(text: str) -> Any:
    """JSON, whose numbers may be 1e-3, else what YAML makes of it."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        found = yaml.safe_load(text)
        return found if isinstance(found, (bool, int, float, str, list, dict, type(None))) else text  # not a date


def _named(parser: argparse.ArgumentParser) -> dict[str, Action]:
    """The options of a parser by the names that a file uses."""
    found = {}
    for action in parser._actions:
        if action.dest in ("help", "version", "config"):
            continue
        names = [option[2:] for option in action.option_strings if not option.startswith("--no-")]
        for name in names or [str(action.metavar or action.dest).lower()]:
            found[name.replace("-", "_")] = action
    return found


def _checked(parser: argparse.ArgumentParser, action: Action, value: Any) -> Any:
    """The value that words of the command line would give."""
    if action.nargs == 0:
        if value not in ("true", "false"):
            raise ArgumentError(action, f"expected true or false, got {value!r}")
        return value == "true"
    if getattr(action, "mapping", False):
        if not isinstance(value, Mapping):
            raise ArgumentError(action, f"expected a mapping, such as {{layers: 4}}, got {value!r}")
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, Mapping):
        raise ArgumentError(action, f"expected a value, got a mapping with {', '.join(value)}")
    words = value if isinstance(value, list) else [value]
    if not all(isinstance(word, str) for word in words):
        raise ArgumentError(action, f"expected plain values, got {value!r}")
    if action.nargs in (None, "?") and len(words) != 1:
        raise ArgumentError(action, f"expected one value, got {len(words)}")
    if isinstance(action.nargs, int) and len(words) != action.nargs:
        raise ArgumentError(action, f"expected {action.nargs} values, got {len(words)}")
    return parser._get_values(action, words)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return plain_value(value)
