"""The parser: options, their values, configuration files, help, errors of one line."""

from __future__ import annotations

import argparse
import itertools
import json
import re
import shutil
import textwrap
from argparse import Action, ArgumentError, ArgumentTypeError, BooleanOptionalAction, Namespace
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, get_args, get_origin

import yaml

from gtx.base.errors import InputError, did_you_mean, printable

# --- Options, by the groups in which the help shows them.


class UsageError(Exception):
    """Words that do not fit the options; the message is argparse's."""


class WordParser(argparse.ArgumentParser):
    """Parser of argparse that raises `UsageError` where argparse prints all options; nothing is abbreviated."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, add_help=False, allow_abbrev=False)
        self.register("type", int, whole_number)
        self.register("type", float, number)

    def error(self, message: str) -> NoReturn:
        raise UsageError(message.replace("unrecognized arguments:", "unexpected:"))


@dataclass(frozen=True)
class Option:
    """Option or word of a command, as it was added.

    Attributes:
        action: action of argparse.
        names: spellings, such as `--epochs`, or the attribute of a word without dashes.
        arguments: further arguments of `argparse.ArgumentParser.add_argument`.
    """

    action: Action
    names: tuple[str, ...]
    arguments: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Name in a file of options: `target_columns` for `--target-columns`, `table` for `TABLE`."""
        option = next((name for name in self.names if name.startswith("--")), None)
        return (option or str(self.action.metavar or self.action.dest).lower()).removeprefix("--").replace("-", "_")

    def invocation(self) -> str:
        """Return the spellings and what follows them, such as `--epochs N`."""
        value = self.action.metavar or (self.action.dest.upper() if self.action.nargs != 0 else "")
        value = " ".join(value) if isinstance(value, tuple) else value
        value += " ..." if self.action.nargs in ("+", "*") else ""
        return " ".join(filter(None, (", ".join(self.action.option_strings), value)))

    def about(self) -> str:
        """Return the help text, and the default if the text does not give one."""
        text = (self.action.help or "").removesuffix(" (default: %(default)s)").replace("%%", "%")  # added by Python
        default = self.action.default
        if "default:" in text or default in (None, False, argparse.SUPPRESS, {}, [], ()):
            return text
        if default is True:
            default = self.action.option_strings[0]
        elif isinstance(default, list):
            default = " ".join(map(str, default))
        return f"{text} (default: {default})"

    def read(self, value: Any) -> Any:
        """Read the value of a file of options, a text or a list or mapping of texts, as words would be.

        Raises:
            UsageError: it is unusable.
        """
        action = self.action
        if action.nargs == 0:
            if value not in ("true", "false"):
                raise UsageError(f"expected true or false, got {value!r}")
            return value == "true"
        if isinstance(action, Pairs):
            if not isinstance(value, Mapping):
                raise UsageError(f"expected a mapping, such as {{layers: 4}}, got {value!r}")
            return {name: _plain(each, action.read) for name, each in value.items()}
        if isinstance(value, Mapping):
            raise UsageError(f"expected a value, got a mapping with {', '.join(value)}")
        words = value if isinstance(value, list) else [value]
        if not all(isinstance(word, str) for word in words):
            raise UsageError(f"expected plain values, got {value!r}")
        if action.nargs in (None, "?") and len(words) != 1:
            raise UsageError(f"expected one value, got {len(words)}")
        if isinstance(action.nargs, int) and len(words) != action.nargs:
            raise UsageError(f"expected {action.nargs} values, got {len(words)}")
        alone = WordParser("")
        alone.add_argument(*self.names, **self.arguments)
        namespace = alone.parse_args([*action.option_strings[:1], *words])
        return getattr(namespace, action.dest)


@dataclass(frozen=True)
class Group:
    """Options that the help shows together."""

    parser: Parser
    title: str

    def add_argument(self, *names: str, **arguments: Any) -> Action:
        """Add an option, with the arguments of `argparse.ArgumentParser.add_argument`."""
        return self.parser.add_argument(*names, group=self.title, **arguments)


class Parser:
    """Parser of a command, whose errors are `InputError`s of one line that name near options.

    Args:
        prog: the command, e.g. "gtx train".
        description: what the command does.

    Attributes:
        usage: line of the help in place of a list of all options.
        examples: text of the help before the options.
        epilog: text of the help after the options.
        common: attributes whose options `--help` shows, where all are too many; empty for all.
        tasks: by attribute, the words of the tasks that alone have its option.
        groups: options by the title of their group.
    """

    def __init__(self, prog: str, description: str = "") -> None:
        self.prog = prog
        self.description = description
        self.usage = self.examples = self.epilog = ""
        self.common: Sequence[str] = ()
        self.tasks: dict[str, list[str]] = {}
        self._parser = WordParser(prog)
        self.groups: dict[str, list[Option]] = {}
        self.add_argument("-h", "--help", action="store_true", help="show this help; --help all shows every option")
        if prog != "gtx":
            self.add_argument(
                "--config",
                metavar="FILE",
                help="a YAML file with options by name, such as epochs: 40; the command line overrides it",
            )
            self.add_argument("--quiet", action="store_true", help="print results and errors: no notes, no progress")

    def add_argument(self, *names: str, group: str = "options", **arguments: Any) -> Action:
        """Add an option or a word, with the arguments of `argparse.ArgumentParser.add_argument`."""
        if choices := arguments.pop("choices", None):
            arguments = {"metavar": f"{{{','.join(choices)}}}", **arguments, "type": one_of(choices)}
        action = self._parser.add_argument(*names, **arguments)
        title = group if action.option_strings or group != "options" else "words"
        self.groups.setdefault(title, []).append(Option(action, names, arguments))
        return action

    def add_argument_group(self, title: str) -> Group:
        """Start a group of options."""
        return Group(self, title)

    def set_defaults(self, **values: Any) -> None:
        """Set attributes of the result that no option sets."""
        self._parser.set_defaults(**values)

    @property
    def options(self) -> list[Option]:
        """All options and words."""
        return list(itertools.chain(*self.groups.values()))

    @property
    def option_strings(self) -> Collection[str]:
        """The spellings of all options, such as `--epochs`."""
        return self._by_spelling.keys()

    @property
    def _by_spelling(self) -> dict[str, Option]:
        return {spelling: option for option in self.options for spelling in option.action.option_strings}

    def parse(self, words: Sequence[str]) -> Namespace:
        """Parse the words; `chosen` of the result names the options that the words or their `--config` set.

        Raises:
            InputError: an option is unknown, missing, or has an unusable value.
        """
        named = words[: words.index("--")] if "--" in words else words
        if {"-h", "--help"} & set(named):
            print(self.help(words))
            raise SystemExit(0)
        self._refuse_unknown(named)
        spellings = self._by_spelling
        chosen = {
            spellings[name].action.dest for name in (word.partition("=")[0] for word in named) if name in spellings
        }
        for file in self._config_files(words) if "config" in chosen else ():
            chosen |= self.use_config(file)
        try:
            namespace = self._parser.parse_args(words)
        except UsageError as error:
            self.error(str(error))
        if getattr(namespace, "out", None) == "":
            self.error("--out: expected a name, got ''")
        del namespace.help
        namespace.chosen = frozenset(chosen)
        if getattr(namespace, "quiet", False):
            namespace.progress = False
        return namespace

    def error(self, message: str) -> NoReturn:
        """Raise an `InputError` that ends with the command whose help tells more."""
        raise InputError(f"{message.removeprefix('argument ')} ({self.prog} --help)")

    def _refuse_unknown(self, words: Sequence[str]) -> None:
        """Raise an `InputError` for an unknown option, before a missing one, which may be the same, is reported."""
        known = self.option_strings
        for name in (word.partition("=")[0] for word in words if _is_option(word)):
            if name not in known:
                longer = [option for option in known if option.startswith(name.rstrip("s"))]
                hint = did_you_mean(name, longer[:1], str) or did_you_mean(name, known, str)
                self.error(f"unknown option {name}{hint}")

    # --- A file of options: what the words of a command line would say, in YAML.

    def _config_files(self, words: Sequence[str]) -> list[str]:
        alone = WordParser("")
        alone.add_argument("--config", action="append", default=[])
        with suppress(UsageError):  # which parsing all words says better
            return alone.parse_known_args(words)[0].config
        return []

    def use_config(self, file: str) -> set[str]:
        """Make the entries of a file the defaults, checked as words of the command line are.

        An entry has the name of an option: `target_columns: [y]`; the words without a dash are named as in the help:
        `table: data.csv`. Options that take `name=value` are mappings. An entry without a value is none.

        Returns:
            The names of the attributes that it sets.

        Raises:
            InputError: the file cannot be read, or an entry is no option of the command or has an unusable value.
        """
        options = {option.name: option for option in self.options if option.name not in ("help", "version", "config")}
        names: set[str] = set()
        for name, value in read_config(file).items():
            option = options.get(name.replace("-", "_"))
            if option is None:
                raise InputError(f"{file}: {self.prog} has no option {name!r}{did_you_mean(name, options)}")
            if value in ("", "null"):
                continue
            action = option.action
            try:
                action.default = option.read(value)
            except UsageError as error:
                raise InputError(f"{file}: {name}: {re.sub(r'^argument [^:]+: ', '', str(error))}") from None
            action.required = False
            if not action.option_strings:
                action.nargs = "*" if action.nargs == "+" else "?"
            names.add(action.dest)
        return names

    # --- The help.

    def help(self, words: Sequence[str] = ()) -> str:
        """Return all options after `--help all`, those of a task beside `--task`, else the common ones."""
        task = dict(itertools.pairwise(words)).get("--task")
        every = f"{self.prog} --help all shows every option, and notes"
        if ("--help", "all") in itertools.pairwise(words) or not (self.common or task):
            return self._format(self.groups, self.epilog)
        if task:
            try:
                self._by_spelling["--task"].read(task)
            except UsageError as error:
                self.error(str(error))
            own = [option for option in self.options if task in self.tasks.get(option.action.dest, ())]
            return self._format({f"options of --task {task}" if own else f"--task {task} has no options": own}, every)
        options = {option.action.dest: option for option in self.options}
        if "task" in options:
            every += "; --task NAME --help, the options of a task"
        return self._format({"common options": [options[name] for name in self.common]}, every)

    def _format(self, groups: Mapping[str, Sequence[Option]], end: str) -> str:
        width = shutil.get_terminal_size().columns - 2
        usage = f"usage: {self.usage}" if self.usage else self._parser.format_usage().strip()
        parts = [usage, fill(self.description, width), fill(self.examples, width)]
        for title, options in groups.items():
            parts.append("\n".join([f"{title}:", *(_describe(option, width) for option in options)]))
        return "\n\n".join(filter(None, [*parts, fill(end, width)]))


COLUMN = 28
"""Where the help texts of options begin."""


def _describe(option: Option, width: int) -> str:
    """Format an option and its help text, which begins in a column of its own."""
    left, indent = f"  {option.invocation()}", " " * COLUMN
    first = left.ljust(COLUMN) if len(left) < COLUMN - 1 else f"{left}\n{indent}"
    return first + f"\n{indent}".join(_lines(option.about(), width - COLUMN))


def fill(text: str, width: int) -> str:
    """Break the lines of a text between words; indented lines stay as they are, and so do blank ones."""
    paragraphs: list[str] = []
    for line in text.strip("\n").split("\n"):
        goes_on = paragraphs and paragraphs[-1] and line and not line.startswith("  ")
        if goes_on and not paragraphs[-1].startswith("  ") and not paragraphs[-1].endswith(":"):
            paragraphs[-1] += f" {line}"
        else:
            paragraphs.append(line)
    return "\n".join(
        each if each.startswith("  ") or not each else "\n".join(_lines(each, width)) for each in paragraphs
    )


def _lines(text: str, width: int) -> list[str]:
    return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False, break_long_words=False)


# --- Values: of files of options, and of the words of a command line.


def read_config(file: str) -> dict[str, Any]:
    """Read a file; every value is a text as on a command line, or a list or a mapping of such.

    Raises:
        InputError: it cannot be read, or it is no mapping, or what `gtx train` notes of a run.
    """
    try:
        config = yaml.load(Path(file).read_text(encoding="utf-8"), yaml.BaseLoader)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--config {file}: {getattr(error, 'strerror', None) or error}") from None
    except yaml.YAMLError as error:
        raise InputError(f"--config {file} is no YAML: {printable(' '.join(str(error).split()), 200)}") from None
    config = {} if config in ("", None) else config
    if not isinstance(config, Mapping):
        raise InputError(f"--config {file}: expected options by name, such as epochs: 40")
    if {"settings", "featuriser"} <= config.keys():
        raise InputError(
            f"--config {file}: this is what gtx train notes of a run to know it again, not a file of options; "
            "write those that you need, such as epochs: 40, into a file of your own"
        )
    return dict(config)


def plain_value(text: str) -> Any:
    """Read a text as JSON, whose numbers may be 1e-3, or else as YAML."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        value = yaml.safe_load(text)
        return value if isinstance(value, (bool, int, float, str, list, dict, type(None))) else text  # not a date


def _plain(value: Any, read: Callable[[str], Any]) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(each, read) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each, read) for each in value]
    return read(value)


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
    return {"choices": list(names), **({"metavar": "NAME"} if len("".join(names)) > 30 else {})}


def one_of(names: Collection[str]) -> Callable[[str], str]:
    """Make a function for `type=` that takes some names, and says of another word which is near."""

    def name(text: str) -> str:
        if text not in names:
            raise ArgumentTypeError(f"expected one of {', '.join(names)}, got {text!r}{did_you_mean(text, names)}")
        return text

    return name


def _is_option(word: str) -> bool:
    """Return True for an option by argparse's rule: no dash alone, no negative number, no sentence."""
    return word.startswith("-") and len(word) > 1 and " " not in word and not word[1].isdigit() and word[1] != "."
