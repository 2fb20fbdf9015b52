"""Fields of settings that are options of the command line, fields that training fills in, entries of tasks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, field, fields
from importlib import import_module
from typing import Annotated, Any, Literal, NamedTuple

from gtx.base.schema import valid

Name = Annotated[str, valid("a name", bool)]
ReactionMode = Literal[
    "reactants-difference",
    "reactants-products",
    "products-difference",
    "reactants-difference-balanced",
    "reactants-products-balanced",
    "products-difference-balanced",
]
"""Codes of a reaction, see `gtx.molecules.reactions.MODES`; the default first."""


def option(
    default: Any,
    text: str,
    *,
    metavar: str = "",
    flag: str | None = None,
    kind: Any = None,
    common: bool = False,
    harmless: bool = False,
) -> Any:
    """Declare a field that is an option of the command line, whose annotation has the limits of its value.

    Args:
        default: default value; `MISSING` for an option that must be set.
        text: help text.
        metavar: name of the value in the help; default: by its type.
        flag: spelling on the command line; default: that of the field, such as `--batch-pairs` of `batch_pairs`.
        kind: type of the value on the command line, where the annotation admits more.
        common: True for an option in the short help.
        harmless: True for an option that changes no result, so that it may differ when a run resumes.
    """
    metadata = {"help": text, "metavar": metavar, "flag": flag, "kind": kind, "common": common, "harmless": harmless}
    if isinstance(default, (dict, list)):
        return field(default_factory=type(default), metadata=metadata, kw_only=True)
    return field(default=default, metadata=metadata, kw_only=True)


def word(name: str, text: str) -> Any:
    """Declare a field that is a word without dashes on the command line; `name` stands for it in the help."""
    return option(MISSING, text, metavar=name, flag="", common=True)


def learned(kind: Callable[[int], Any] | None = None, needed: bool = False) -> Any:
    """Declare a field of a task that training fills in; it is written into the model file.

    It is None before `Task.fit`. Annotate it by the type that it has afterwards, `| None` only if it may stay None. A
    model file is checked for its kind, by number of targets, such as `gtx.base.schema.per_target(Number)`, and whether
    it has one that is `needed`.
    """
    metadata = {} if kind is None else {"fitted": kind, "needed": needed}
    return field(default=None, metadata=metadata, kw_only=True, repr=False, compare=False)


def option_fields(settings: Any) -> list[Field[Any]]:
    """List the fields of a task, or of a class of options, that users choose."""
    return [each for each in fields(settings) if "help" in each.metadata]


class TaskEntry(NamedTuple):
    """Entry in the table of tasks, which is read without PyTorch.

    Attributes:
        module: name of the module of the task.
        name: name of the class of the task.
        options: class of its options.
        labels: what a column of more than two different texts is learned as, for messages; None if it cannot be.
        level: level of the targets.
    """

    module: str
    name: str
    options: type
    labels: str | None = None
    level: Literal["molecule", "atom", "bond"] = "molecule"

    def load(self) -> type[Any]:
        """Import the class of the task."""
        return getattr(import_module(self.module), self.name)
