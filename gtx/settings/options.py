"""Fields of tasks that users choose or that training fills in, and the table's entry of a task."""

from __future__ import annotations

from dataclasses import Field, field, fields
from importlib import import_module
from typing import Any, Literal, NamedTuple


def option(default: Any, text: str) -> Any:
    """Declare a field of a task that users choose; `text` is its help on the command line."""
    return field(default=default, metadata={"help": text}, kw_only=True)


def learned() -> Any:
    """Declare a field of a task that training fills in; it is written into the model file.

    It is None before `Task.fitted`. Annotate it by the type that it has afterwards, `| None` only if it may stay None.
    """
    return field(default=None, kw_only=True, repr=False, compare=False)


def chosen(task: Any) -> list[Field[Any]]:
    """List the fields of a task, or of a class of options, that users choose."""
    return [each for each in fields(task) if "help" in each.metadata]


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
