"""Options of a command, made from the fields of dataclasses: words, files of options, help, errors of one line."""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import textwrap
from argparse import SUPPRESS, BooleanOptionalAction, Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass
from functools import cached_property
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, NoReturn, Union, get_args, get_origin, get_type_hints

import yaml

from gtx.base.errors import InputError, did_you_mean, printable
from gtx.base.schema import check
from gtx.settings import option, option_fields

# --- Options, and how their values are read.


@dataclass(frozen=True)
class Option:
    """Option of a command, or a word without dashes.

    Attributes:
        name: attribute of the result.
        kind: type of the value, with its limits.
        default: default value; `MISSING` for an option that must be set.
        text: help text.
        group: title of its group in the help.
        flag: spelling, such as `--epochs`; empty for a word.
        metavar: name of the value in the help; empty: by its type.
        common: True for an option in the short help.
        tasks: the tasks that have the option; empty for all.
    """

    name: str
    kind: Any
    default: Any
    text: str
    group: str
    flag: str
    metavar: str = ""
    common: bool = False
    tasks: Sequence[str] = ()

    @property
    def spellings(self) -> list[str]:
        """The flag and, of a switch that is on or that gtx decides, the one that turns it off."""
        return [self.flag, f"--no-{self.flag[2:]}"] if self.shape is bool and self.default is not False else [self.flag]

    @property
    def entry(self) -> str:
        """Name in a file of options: `target_columns` for `--target-columns`, `table` for `TABLE`."""
        return (self.flag[2:] or self.metavar.lower()).replace("-", "_")

    @cached_property
    def shape(self) -> Any:
        """Type of the value without parameters, such as `list`."""
        return get_origin(first_type(self.kind)) or first_type(self.kind)

    def invocation(self) -> str:
        """Return the spellings and what follows them, such as `--epochs N`."""
        kind = first_type(self.kind)
        item = first_type(get_args(kind)[0]) if self.shape is list else kind
        choices = f"{{{','.join(get_args(item))}}}" if get_origin(item) is Literal else ""
        usual = {bool: "", int: "N", float: "X", dict: "NAME=VALUE"}.get(get_origin(item) or item, "NAME")
        value = self.metavar or (choices if 0 < len(choices) <= 32 else usual)
        several = "..." if self.shape in (list, dict) else ""
        return " ".join(filter(None, (", ".join(self.spellings), value, several)))

    def about(self) -> str:
        """Return the help text, with the default if the text does not give one."""
        if "default" in self.text or self.default in (None, False, MISSING, {}, [], 0):
            return self.text
        default = " ".join(map(str, self.default)) if isinstance(self.default, tuple) else self.default
        return f"{self.text} (default: {self.flag if default is True else default})"

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        """Add the option to a parser of argparse that collects texts."""
        if not self.flag:
            parser.add_argument(self.name, nargs="*" if self.shape is list else "?", default=SUPPRESS)
            return
        more: dict[Any, dict[str, Any]] = {
            bool: {"action": "store_true" if self.default is False else BooleanOptionalAction},
            dict: {"action": "extend", "nargs": "+"},
            list: {"nargs": "+"},
            tuple: {"nargs": len(get_args(first_type(self.kind)))},
        }
        parser.add_argument(self.flag, dest=self.name, default=SUPPRESS, **more.get(self.shape, {}))

    def read(self, value: Any, entry: str) -> Any:
        """Convert a text, or a list or mapping of texts, to the type of the option.

        Raises:
            InputError: it is of another type or outside the limits; the message begins with `entry`.
        """
        if self.shape is dict:
            text = " ".join(value) if isinstance(value, list) else value
            try:
                pairs = dict(word.split("=", 1) for word in value) if isinstance(value, list) else value
                if "" in pairs:
                    raise ValueError
                value = convert_texts(pairs, str if get_args(first_type(self.kind))[1] is str else plain_value)
            except (yaml.YAMLError, ValueError):
                raise InputError(f"{entry}: expected name=value, such as layers=4, got {text!r}") from None
        elif self.shape is list and isinstance(value, str):
            value = [value]
        return check(value, self.kind, entry, convert=True)


def first_type(kind: Any) -> Any:
    """Return the first alternative of a type, without limits: `int` for `Annotated[int, ...] | None`."""
    while get_origin(kind) in (Annotated, Union, UnionType):
        kind = get_args(kind)[0]
    return kind


def options_of(settings: type, group: str) -> list[Option]:
    """List the fields of a dataclass that are options, see `gtx.settings.option`, as a group of the help."""
    kinds = get_type_hints(settings, include_extras=True)
    options = []
    for field in option_fields(settings):
        default = field.default if field.default_factory is MISSING else field.default_factory()
        more = {name: field.metadata[name] for name in ("flag", "metavar", "common")}
        if more["flag"] is None:
            more["flag"] = f"--{field.name.replace('_', '-')}"
        kind = field.metadata["kind"] or kinds[field.name]
        options.append(Option(field.name, kind, default, field.metadata["help"], group, **more))
    return options


def convert_texts(value: Any, read: Callable[[str], Any]) -> Any:
    """Convert the texts within lists and mappings."""
    if isinstance(value, Mapping):
        return {name: convert_texts(each, read) for name, each in value.items()}
    return [convert_texts(each, read) for each in value] if isinstance(value, list) else read(value)


def plain_value(text: str) -> Any:
    """Read a text as JSON, whose numbers may be 1e-3, or else as YAML."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        value = yaml.safe_load(text)
        return value if isinstance(value, (bool, int, float, str, list, dict, type(None))) else text  # not a date


def read_config(file: str) -> Mapping[str, Any]:
    """Read a file of options; every value is a text as on a command line, or a list or a mapping of such.

    Raises:
        InputError: it cannot be read, or it is no mapping, or what `gtx train` notes of a run.
    """
    try:
        config = yaml.load(Path(file).read_text(encoding="utf-8"), yaml.BaseLoader) or {}
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--config {file}: {getattr(error, 'strerror', None) or error}") from None
    except yaml.YAMLError as error:
        raise InputError(f"--config {file} is no YAML: {printable(' '.join(str(error).split()), 200)}") from None
    if not isinstance(config, Mapping):
        raise InputError(f"--config {file}: expected options by name, such as epochs: 40")
    if {"settings", "featuriser"} <= config.keys():
        raise InputError(
            f"--config {file}: this is what gtx train notes of a run to know it again, not a file of options; "
            "write those that you need, such as epochs: 40, into a file of your own"
        )
    return config


# --- Commands.


@dataclass(frozen=True)
class GeneralOptions:
    """Options of every command."""

    help: bool = option(False, "show this help; --help all shows every option")
    config: str | None = option(
        None,
        "a YAML file with options by name, such as epochs: 40; the command line overrides it",
        metavar="FILE",
        common=True,
    )
    quiet: bool = option(False, "print results and errors: no notes, no progress")


class WordParser(argparse.ArgumentParser):
    """Parser of argparse that raises an `InputError` where argparse prints all options and exits."""

    def error(self, message: str) -> NoReturn:
        raise InputError(message.removeprefix("argument "))


@dataclass(frozen=True)
class Command:
    """Command with its options and its help.

    Attributes:
        name: name on the command line, such as "gtx train".
        about: what the command does.
        own_options: its options, without those of every command.
        usage: first line of the help.
        examples: text of the help before the options.
        notes: text of the help after the options.
        run: carries it out, and returns the exit status.
    """

    name: str
    about: str
    own_options: Sequence[Option]
    usage: str
    examples: str
    notes: str
    run: Callable[[Namespace], int]

    @property
    def options(self) -> list[Option]:
        """All options and words."""
        return [*options_of(GeneralOptions, "options"), *self.own_options]

    def parse(self, words: Sequence[str]) -> Namespace:
        """Parse the words; `chosen` of the result names the options that the words or their `--config` set.

        Raises:
            InputError: an option is unknown, missing, or has an unusable value.
        """
        if {"-h", "--help"} & set(words[: words.index("--")] if "--" in words else words):
            print(self.help(words))
            raise SystemExit(0)
        options = {each.name: each for each in self.options}
        try:
            texts = self._split(words)
            values = {name: options[name].read(text, options[name].flag or name) for name, text in texts.items()}
        except InputError as error:
            raise InputError(f"{error} ({self.name} --help)") from None
        for name, value in self._read_config(values["config"]).items() if "config" in values else ():
            values[name] = {**value, **values.get(name, {})} if isinstance(value, dict) else values.get(name, value)
        required = [each for each in self.options if each.default is MISSING and each.name not in values]
        if required:
            names = ", ".join(each.flag or each.metavar for each in required)
            raise InputError(f"the following arguments are required: {names} ({self.name} --help)")
        defaults = {name: each.default for name, each in options.items()}
        if values.get("quiet"):
            defaults["progress"] = False
        return Namespace(**{**defaults, **values, "chosen": frozenset(values)})

    def _split(self, words: Sequence[str]) -> dict[str, Any]:
        """Return the text of each option that is set, or its list of texts, or True or False.

        Raises:
            InputError: an option is unknown, or has no value.
        """
        parser = WordParser(usage=self.usage, add_help=False, allow_abbrev=False)
        for each in self.options:
            each.add_to(parser)
        namespace, unknown = parser.parse_known_intermixed_args(words)
        if names := [word.partition("=")[0] for word in unknown if word.startswith("-")]:
            spellings = list(itertools.chain(*(each.spellings for each in self.options if each.flag)))
            longer = [spelling for spelling in spellings if spelling.startswith(names[0].rstrip("s"))]
            hint = did_you_mean(names[0], longer[:1], str) or did_you_mean(names[0], spellings, str)
            raise InputError(f"unknown option {names[0]}{hint}")
        if unknown:
            raise InputError(f"unexpected: {' '.join(unknown)}")
        return vars(namespace)

    def _read_config(self, file: str) -> dict[str, Any]:
        """Read a file of options, whose entries have the names of options, words those of the help: `table: a.csv`.

        Options that take `name=value` are mappings. An entry without a value is left out.

        Raises:
            InputError: the file cannot be read, or an entry is no option of the command or has an unusable value.
        """
        options = {each.entry: each for each in self.options if each.name not in ("help", "config")}
        values = {}
        for entry, value in read_config(file).items():
            if (each := options.get(entry.replace("-", "_"))) is None:
                raise InputError(f"{file}: {self.name} has no option {entry!r}{did_you_mean(entry, options)}")
            if value not in ("", "null"):
                values[each.name] = each.read(value, f"{file}: {entry}")
        return values

    def help(self, words: Sequence[str] = ()) -> str:
        """Return all options after `--help all`, those of a task beside `--task`, else the common ones.

        Where all options fit `LONGEST_HELP` lines, they are shown.
        """
        following = dict(itertools.pairwise(words))
        if task := following.get("--task"):
            entry = next(each for each in self.options if each.name == "task")
            entry.read(task, "--task")
            own = [each for each in self.options if task in each.tasks]
            groups = {f"options of --task {task}" if own else f"--task {task} has no options": own}
            return self._format(groups, f"{self.name} --help all shows every option, and notes")
        by_group: dict[str, list[Option]] = {}
        for each in self.options:
            title = "words" if each.group == "options" and not each.flag else each.group
            by_group.setdefault(title, []).append(each)
        every = self._format(by_group, self.notes)
        if following.get("--help") == "all" or every.count("\n") < LONGEST_HELP:
            return every
        end = f"{self.name} --help all shows every option, and notes"
        if any(each.tasks for each in self.options):
            end += "; --task NAME --help, the options of a task"
        return self._format({"common options": [each for each in self.options if each.common]}, end)

    def _format(self, groups: Mapping[str, Sequence[Option]], end: str) -> str:
        width = shutil.get_terminal_size().columns - 2
        parts = [f"usage: {self.usage}", fill(self.about, width), fill(self.examples, width)]
        for title, options in groups.items():
            parts.append("\n".join([f"{title}:", *(_describe(each, width) for each in options)]))
        return "\n\n".join(filter(None, [*parts, fill(end, width)]))


LONGEST_HELP = 60
"""Number of lines of a help that shows all options."""
COLUMN = 28
"""Where the help texts of options begin."""


def _describe(each: Option, width: int) -> str:
    """Format an option and its help text, which begins in a column of its own."""
    left, indent = f"  {each.invocation()}", " " * COLUMN
    start = left.ljust(COLUMN) if len(left) < COLUMN - 1 else f"{left}\n{indent}"
    return start + f"\n{indent}".join(_lines(each.about(), width - COLUMN))


def fill(text: str, width: int) -> str:
    """Break paragraphs into lines between words; a paragraph with indented lines stays as it is."""
    paragraphs = text.strip("\n").split("\n\n")
    return "\n\n".join(each if "\n  " in f"\n{each}" else "\n".join(_lines(each, width)) for each in paragraphs)


def _lines(text: str, width: int) -> list[str]:
    return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False, break_long_words=False)
