"""Imports at first use: of the names of a package (PEP 562), of functions, of annexes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, overload

from gtx.errors import InputError


def lazy_names(
    package: str, modules: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Make the `__getattr__` and `__dir__` of a package whose names are imported at first use.

    Args:
        package: its `__name__`.
        modules: the names that each module of the package defines. A module of an annex has its full name, such as
            `gtx.sequence.task`; its names are gone with the annex.
    """
    home = {
        name: module if module.startswith("gtx.") else f"{package}.{module}"
        for module, names in modules.items()
        for name in names
    }

    def getter(name: str) -> object:
        if name in home:
            return getattr(import_module(home[name]), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return getter, lambda: sorted({*vars(import_module(package)), *home})


@overload
def annex(name: str) -> ModuleType | None: ...
@overload
def annex(name: str, user: str) -> ModuleType: ...
def annex(name: str, user: str | None = None) -> ModuleType | None:
    """Import an annex: a folder of gtx that may have been deleted.

    Args:
        name: of the folder, optionally followed by a dot and a module.
        user: what needs it, such as "a folder of tables"; named in the error.

    Returns:
        The module; None if it was deleted and `user` is None.

    Raises:
        InputError: it was deleted, and `user` needs it.
    """
    room = name.partition(".")[0]
    if find_spec(f"gtx.{room}"):
        return import_module(f"gtx.{name}")
    if user is None:
        return None
    raise InputError(f"{user} needs gtx/{room}, which this gtx lacks")


@dataclass(frozen=True)
class LateFunction:
    """Function that is imported at its first call, from a package that is slow to import.

    Attributes:
        module: name of the module.
        name: name of the function.
    """

    module: str
    name: str

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return getattr(import_module(self.module), self.name)(*arguments, **options)
