"""Options of a command, made from the fields of dataclasses: words, files of options, help, errors of one line."""

from __future__ import annotations

import itertools
import json
import shutil
import textwrap
from argparse import SUPPRESS, Action, ArgumentParser, BooleanOptionalAction, Namespace, RawTextHelpFormatter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass
from functools import cached_property, partial
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, NoReturn, Union, get_args, get_origin, get_type_hints

import yaml

from gtx.base.errors import InputError, did_you_mean, printable
from gtx.base.schema import check
from gtx.settings import option, option_fields

LONGEST_HELP = 60
"""Number of lines of a help that shows all options."""
COLUMN = 28
"""Where the help texts of options begin."""


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
    def entry(self) -> str:
        """Name in a file of options: `target_columns` for `--target-columns`, `table` for `TABLE`."""
        return (self.flag[2:] or self.metavar.lower()).replace("-", "_")

    @cached_property
    def shape(self) -> Any:
        """Type of the value without parameters, such as `list`."""
        return get_origin(first_type(self.kind)) or first_type(self.kind)

    @cached_property
    def item(self) -> Any:
        """Type of each value of a list or a mapping, else of the value itself."""
        kind = first_type(self.kind)
        return first_type(get_args(kind)[self.shape is dict]) if self.shape in (list, tuple, dict) else kind

    def add_to(self, add_argument: Callable[..., Action], width: int) -> Sequence[str]:
        """Add the option to a parser of texts, with its help in lines of a width; return its spellings."""
        text, default = self.text, self.default
        if "default" not in text and default not in (None, False, MISSING, {}, [], 0):
            shown = " ".join(map(str, default)) if isinstance(default, tuple) else default
            text = f"{text} (default: {self.flag if default is True else shown})"
        choices = f"{{{','.join(get_args(self.item))}}}" if get_origin(self.item) is Literal else ""
        usual = "NAME=VALUE" if self.shape is dict else {int: "N", float: "X"}.get(self.item, "NAME")
        value = self.metavar or (choices if 0 < len(choices) <= 32 else usual)
        more: dict[str, Any] = {"metavar": tuple(value.split()) if " " in value else value}
        if self.shape is bool:
            more = {"action": "store_true" if default is False else BooleanOptionalAction}
        elif self.shape is dict:
            more |= {"action": "extend", "nargs": "+"}
        elif self.shape is tuple:
            more["nargs"] = len(get_args(first_type(self.kind)))
        elif self.shape is list:
            more["nargs"] = "+" if self.flag else "*"
        elif not self.flag:
            more["nargs"] = "?"
        flags, text = filter(None, [self.flag]), fill(text, width).replace("%", "%%")
        return add_argument(*flags, dest=self.name, help=text, **more).option_strings

    def read(self, value: Any, entry: str) -> Any:
        """Convert a text, or a list or mapping of texts, to the type of the option.

        Raises:
            InputError: it is of another type or outside the limits; the message begins with `entry`.
        """
        if self.shape is dict:
            try:
                # names of targets may have a =, those of arguments not, but their values
                parts = (word.split("=", 1) if self.item is Any else word.rsplit("=", 1) for word in value)
                pairs = dict(parts) if isinstance(value, list) else value
                if "" in pairs:
                    raise ValueError
                value = convert_texts(pairs, str if self.item is str else plain_value)
            except (yaml.YAMLError, ValueError, AttributeError):
                text = " ".join(map(str, value)) if isinstance(value, list) else value
                raise InputError(f"{entry}: expected name=value, such as layers=4, got {text!r}") from None
        elif self.shape is list and isinstance(value, str):
            value = [value]
        elif self.shape is tuple and isinstance(value, list) and len(value) != (most := len(get_args(self.kind))):
            raise InputError(f"{entry}: expected {most} values, got {len(value)}")
        texts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else [value]
        odd = [text for text in texts if self.item in (int, float) and "_" in str(text)]
        if odd:  # Python reads 1_6 as 16
            raise InputError(f"{entry}: expected a number, got {odd[0]!r}")
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


WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}


def plain_value(text: str) -> Any:
    """Read a text as JSON, or else as YAML, but numbers are decimal: YAML reads 010 as 8, and 1:30 as 90.

    A text with an underscore, such as 1_6, is no number.
    """
    for read in (json.loads,) if "_" in text else (json.loads, float):
        with suppress(ValueError):
            return read(text)
    value = yaml.load(text, yaml.BaseLoader)
    if isinstance(value, (list, dict)):
        return convert_texts(value, plain_value)
    return WORDS.get((value or "").lower(), value)


def fill(text: str, width: int) -> str:
    """Break paragraphs into lines between words; a paragraph with indented lines stays as it is."""
    wrap = partial(textwrap.fill, width=width, break_on_hyphens=False, break_long_words=False)
    paragraphs = text.strip("\n").split("\n\n")
    return "\n\n".join(each if "\n  " in f"\n{each}" else wrap(" ".join(each.split())) for each in paragraphs)


class TextLoader(yaml.BaseLoader):
    """Loader of YAML whose values are texts, as on the command line; a name that is there twice is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Make the mapping of a node, after a look at its names, of which YAML's own loaders take the last."""
        names = [name.value for name, _ in node.value]
        for i, (name, _) in enumerate(node.value):
            if name.value in names[:i]:
                raise yaml.YAMLError(f"line {name.start_mark.line + 1}: {name.value!r} is there twice")
        return super().construct_mapping(node, deep)


# --- Commands.


@dataclass(frozen=True)
class GeneralOptions:
    """Options of every command."""

    help: bool = option(False, "show this help")
    config: str | None = option(
        None,
        "a YAML file with options by name, such as epochs: 40; the command line overrides it",
        metavar="FILE",
        common=True,
    )
    quiet: bool = option(False, "print results and errors: no notes, no progress")


class WordParser(ArgumentParser):
    """Parser of argparse that raises an `InputError` where argparse prints all options and exits."""

    def error(self, message: str) -> NoReturn:
        message = message.removeprefix("argument ")
        raise InputError(message.replace("ignored explicit argument", "expected no value, got"))


@dataclass(frozen=True)
class Command:
    """Command with its options and its help.

    Attributes:
        name: name on the command line, such as "gtx train".
        about: what the command does.
        module: module with `USAGE`, `EXAMPLES`, `NOTES`, `OPTIONS` and `run`, see `gtx.cli`.
    """

    name: str
    about: str
    module: Any

    @property
    def options(self) -> list[Option]:
        """Options and words, also those of every command."""
        return [*self.module.OPTIONS, *options_of(GeneralOptions, "options")]

    def parse(self, words: Sequence[str]) -> Namespace:
        """Parse the words; `chosen` of the result names the options that the words or their `--config` set.

        Raises:
            InputError: an option is unknown, missing, or has an unusable value.
        """
        if {"-h", "--help"} & set(words[: words.index("--")] if "--" in words else words):
            print(self.help(words), end="")
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
        parser, spellings = self._parser({"options": self.options})
        namespace, unknown = parser.parse_known_intermixed_args(words)
        if names := [word.partition("=")[0] for word in unknown if word.startswith("-")]:
            longer = [spelling for spelling in spellings if spelling.startswith(names[0].rstrip("s"))]
            hint = did_you_mean(names[0], longer[:1], str) or did_you_mean(names[0], spellings, str)
            raise InputError(f"unknown option {names[0]}{hint}")
        if unknown:
            raise InputError(f"unexpected: {' '.join(unknown)}")
        return vars(namespace)

    def _parser(self, groups: Mapping[str, Sequence[Option]], end: str = "") -> tuple[ArgumentParser, list[str]]:
        """Make a parser of some options, whose help ends with a text, and list the spellings of the options."""
        width = shutil.get_terminal_size().columns - 2  # as argparse has it
        parser = WordParser(
            usage=self.module.USAGE,
            description=fill(f"{self.about}\n\n{self.module.EXAMPLES.strip()}", width),
            epilog=fill(end, width),
            formatter_class=partial(RawTextHelpFormatter, max_help_position=COLUMN),
            argument_default=SUPPRESS,
            allow_abbrev=False,
            add_help=False,
        )
        spellings: list[str] = []
        for title, options in groups.items():
            group = parser.add_argument_group(title)
            for each in options:
                spellings += each.add_to(group.add_argument, width - COLUMN)
        return parser, spellings

    def _read_config(self, file: str) -> dict[str, Any]:
        """Read a YAML file of options by name, words by their names in the help, such as `table: a.csv`.

        Every value is a text as on the command line, or a list or a mapping of such, as of options that take
        `name=value`. An entry without a value is left out.

        Raises:
            InputError: the file cannot be read, or is what `gtx train` notes of a run, or an entry is no option of the
                command or has an unusable value.
        """
        try:
            config = yaml.load(Path(file).read_text(encoding="utf-8"), TextLoader) or {}
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
        options = {each.entry: each for each in self.options if each.name not in ("help", "config")}
        values = {}
        for entry, value in config.items():
            if (each := options.get(entry.replace("-", "_"))) is None:
                raise InputError(f"{file}: {self.name} has no option {entry!r}{did_you_mean(entry, options)}")
            if each.name in values:
                raise InputError(f"--config {file}: {each.entry!r} is there twice, with - and with _")
            if value not in ("", "null"):
                values[each.name] = each.read(value, f"{file}: {entry}")
        return values

    def help(self, words: Sequence[str] = ()) -> str:
        """Return all options after `--help all`, those of a task beside `--task`, else the common ones.

        Where all options fit `LONGEST_HELP` lines, they are shown.
        """
        following, end = dict(itertools.pairwise(words)), f"{self.name} --help all shows every option, and notes"
        groups: dict[str, list[Option]] = {}
        if task := following.get("--task"):
            next(each for each in self.options if each.name == "task").read(task, "--task")
            own = [each for each in self.options if task in each.tasks]
            groups = {f"options of --task {task}" if own else f"--task {task} has no options": own}
        else:
            for each in self.options:
                groups.setdefault(each.group, []).append(each)
            every = self._parser(groups, self.module.NOTES)[0].format_help()
            if following.get("--help") == "all" or every.count("\n") <= LONGEST_HELP:
                return every
            if any(each.tasks for each in self.options):
                end += "; --task NAME --help, the options of a task"
            groups = {"common options": [each for each in self.options if each.common]}
        return self._parser(groups, end)[0].format_help()
