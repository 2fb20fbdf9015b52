"""The parser: options, their values, configuration files, errors of one line."""

from __future__ import annotations

import argparse
import itertools
import json
import re
import textwrap
from argparse import Action, ArgumentError, ArgumentTypeError, BooleanOptionalAction, Namespace
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, NoReturn, get_args, get_origin

import yaml

from gtx.errors import InputError, did_you_mean, printable

# --- A file of options: what the words of a command line would say, in YAML.


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
            if action.nargs is None:
                action.nargs = "?"
            elif action.nargs == "+":
                action.nargs = "*"
        given.add(action.dest)
    return given


def read_config(file: str) -> dict[str, Any]:
    """Read a file; every value is a text as on a command line, or a list or a mapping of such.

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
    """Read a text as JSON, whose numbers may be 1e-3, or else as YAML."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        found = yaml.safe_load(text)
        return found if isinstance(found, (bool, int, float, str, list, dict, type(None))) else text  # not a date


def _named(parser: argparse.ArgumentParser) -> dict[str, Action]:
    """Return the options of a parser by the names that a file uses."""
    found = {}
    for action in parser._actions:
        if action.dest in ("help", "version", "config"):
            continue
        names = [option[2:] for option in action.option_strings if not option.startswith("--no-")]
        for name in names or [str(action.metavar or action.dest).lower()]:
            found[name.replace("-", "_")] = action
    return found


def _checked(parser: argparse.ArgumentParser, action: Action, value: Any) -> Any:
    """Convert a value of a file as the command line would."""
    if action.nargs == 0:
        if value not in ("true", "false"):
            raise ArgumentError(action, f"expected true or false, got {value!r}")
        return value == "true"
    if isinstance(action, Pairs):
        if not isinstance(value, Mapping):
            raise ArgumentError(action, f"expected a mapping, such as {{layers: 4}}, got {value!r}")
        return {name: _plain(each, action.read) for name, each in value.items()}
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


def _plain(value: Any, read: Callable[[str], Any]) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(each, read) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each, read) for each in value]
    return read(value)


# --- A parser of options whose errors are one line with a near name, and the values that options take.


class Formatter(argparse.HelpFormatter):
    """Help formatter that keeps indented lines, breaks lines between words, and appends defaults to help texts."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        blocks = re.split(r"\n(?=  )|\n\n|(?<=:)\n", text.strip("\n"))
        seams = re.findall(r"\n(?=  )|\n\n|(?<=:)\n", text.strip("\n"))
        filled = (block if block.startswith("  ") else "\n".join(self._split_lines(block, width)) for block in blocks)
        return "".join(chain(*zip_longest(filled, seams, fillvalue="")))

    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False, break_long_words=False)

    def _format_args(self, action: Action, default_metavar: str) -> str:
        """`NAME ...` for one or more."""
        return re.sub(r"^(.+) \[\1 \.\.\.\]$", r"\1 ...", super()._format_args(action, default_metavar))

    def _get_help_string(self, action: Action) -> str:
        text = (action.help or "").removesuffix(" (default: %(default)s)")  # added by Python 3.11
        default = action.default
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

    Attributes:
        examples: what the help shows before the options; the epilog comes after them.
        common: the attributes whose options `--help` shows, where all are too many; empty for all.
        tasks: by attribute, the words of the tasks that alone have its option.
    """

    examples = ""
    common: Sequence[str] = ()

    def __init__(self, prog: str, **more: Any) -> None:
        super().__init__(prog=prog, formatter_class=Formatter, allow_abbrev=False, add_help=False, **more)
        self.tasks: dict[str, list[str]] = {}
        self.add_argument("-h", "--help", action="help", help="show this help; --help all shows every option")
        self.register("type", int, whole_number)
        self.register("type", float, number)
        if prog != "gtx":
            self.add_argument(
                "--config",
                metavar="FILE",
                help="a YAML file with options by name, such as epochs: 40; the command line overrides it",
            )
            self.add_argument("--quiet", action="store_true", help="print results and errors: no notes, no progress")

    def parse(self, words: Sequence[str]) -> Namespace:
        """Parse the words; `chosen` of the result names the options that the words or their `--config` set.

        Raises:
            InputError: an option is unknown, missing, or has an unusable value.
        """
        if {"-h", "--help"} & set(words[: words.index("--")] if "--" in words else words):
            print(self._help(words), end="")
            self.exit()
        self._refuse_unknown(words)
        chosen = self._named(words)
        for file in self._config_files(words) if "config" in chosen else ():
            chosen |= use_config(self, file)
        found = super().parse_args(words)
        if getattr(found, "out", None) == "":
            self.error("argument --out: expected a name, got ''")
        found.chosen = frozenset(chosen)
        if getattr(found, "quiet", False):
            found.progress = False
        return found

    def format_help(self, groups: Sequence[tuple[str | None, list[Action]]] = (), end: str | None = None) -> str:
        """Format the examples, then the options by groups (by default all), and the notes at the end."""
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        formatter.add_text(self.examples)
        for title, actions in groups or [(group.title, group._group_actions) for group in self._action_groups]:
            formatter.start_section(title)
            formatter.add_arguments(actions)
            formatter.end_section()
        formatter.add_text(end or self.epilog)
        return formatter.format_help()

    def _help(self, words: Sequence[str]) -> str:
        """Return all options after `--help all`, those of a task beside `--task`, else the common ones."""
        task = dict(itertools.pairwise(words)).get("--task")
        if ("--help", "all") in itertools.pairwise(words) or not (self.common or task):
            return self.format_help()
        every = f"{self.prog} --help all shows every option, and notes"
        if task:
            try:
                self._check_value(self._option_string_actions["--task"], task)
            except ArgumentError as error:
                self.error(str(error))
            own = [action for action in self._actions if task in self.tasks.get(action.dest, ())]
            return self.format_help(
                [(f"options of --task {task}" if own else f"--task {task} has no options", own)], every
            )
        options = {action.dest: action for action in self._actions}
        if "--task" in self._option_string_actions:
            every += "; --task NAME --help, the options of a task"
        return self.format_help([("common options", [options[name] for name in self.common])], every)

    def error(self, message: str) -> NoReturn:
        message = message.removeprefix("argument ").replace("unrecognized arguments:", "unexpected:")
        raise InputError(f"{message} ({self.prog} --help)")

    def _named(self, words: Sequence[str]) -> set[str]:
        """Return the names of the options among the words."""
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

    @property
    def option_strings(self) -> Collection[str]:
        """The options of the command, such as `--epochs`."""
        return self._option_string_actions.keys()

    def _refuse_unknown(self, words: Sequence[str]) -> None:
        """Raise an `InputError` for an unknown option, before a missing one, which may be the same, is reported."""
        known = self._option_string_actions
        for word in words:
            name = word.partition("=")[0]
            if word == "--":
                break
            if name not in known and _is_option(word):
                longer = [option for option in known if option.startswith(name.rstrip("s"))]
                self.error(
                    f"unknown option {name}{did_you_mean(name, longer[:1], str) or did_you_mean(name, known, str)}"
                )

    def _check_value(self, action: Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            expected = ", ".join(action.choices)
            raise ArgumentError(
                action, f"expected one of {expected}, got {value!r}{did_you_mean(value, action.choices)}"
            )


class Pairs(Action):
    """`name=value` words as a dictionary; given again, it adds to it."""

    read: Callable[[str], Any] = staticmethod(plain_value)
    example = "layers=4"

    def __init__(self, option_strings: Sequence[str], dest: str, **more: Any) -> None:
        super().__init__(option_strings, dest, nargs="+", metavar="NAME=VALUE", **more)

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        found = dict(getattr(namespace, self.dest) or {})
        for word in values or ():
            name, equals, value = word.partition("=")
            try:
                if not (name and equals):
                    raise ValueError
                found[name] = self.read(value)
            except (yaml.YAMLError, ValueError):
                raise ArgumentError(self, f"expected name=value, such as {self.example}, got {word!r}") from None
        setattr(namespace, self.dest, found)


class Texts(Pairs):
    """`name=text` words."""

    read: Callable[[str], Any] = staticmethod(str)
    example = "dG_water=kcal/mol"


def whole_number(text: str) -> int:
    """Convert a text to an integer, for `type=int`."""
    try:
        return int(text)
    except ValueError:
        raise ArgumentTypeError(f"expected a whole number, got {text!r}") from None


def file_of_rows(text: str) -> str:
    """Return the name of a file as it is, for `type=`; a number that names no file was meant as a share."""
    with suppress(ValueError):
        float(text)
        if not Path(text).exists():
            raise ArgumentTypeError(f"expected a file, got the number {text!r}; --split-sizes sets shares")
    return text


def number(text: str) -> float:
    """Convert a text to a number, for `type=float`."""
    try:
        return float(text)
    except ValueError:
        raise ArgumentTypeError(f"expected a number, got {text!r}") from None


def option_of(kind: Any, default: Any = None) -> dict[str, Any]:
    """Return the arguments of `add_argument` for a value of a type; `int | None` counts as `int`.

    A switch that is off has one spelling, which sets it; one that is on, or that gtx decides, has two.
    """
    if any(get_origin(one) is dict for one in (kind, *get_args(kind))):
        return {"action": Pairs}
    if lists := [one for one in (kind, *get_args(kind)) if get_origin(one) is list]:
        return {"nargs": "+", **option_of(get_args(lists[0])[0])}
    if str in get_args(kind) and int in get_args(kind):
        return {"type": lambda text: int(text) if text.isdecimal() else text, "metavar": "N"}
    kind = next((part for part in get_args(kind) if part in (bool, int, float, str) or get_args(part)), kind)
    if kind is bool:
        return {"action": "store_true"} if default is False else {"action": BooleanOptionalAction}
    if kind is int:
        return {"type": int, "metavar": "N"}
    if kind is float:
        return {"type": float, "metavar": "X"}
    return {"metavar": "NAME"} if kind is str else choices_of(get_args(kind))


def choices_of(names: Sequence[str]) -> dict[str, Any]:
    """Return the arguments of `add_argument` for a choice of names; long lists are left to the help text."""
    return {"choices": list(names), "metavar": "NAME" if len("".join(names)) > 30 else None}


def _is_option(word: str) -> bool:
    """Return True for an option by argparse's rule: no dash alone, no negative number, no sentence."""
    return word.startswith("-") and len(word) > 1 and " " not in word and not word[1].isdigit() and word[1] != "."
