"""Names that are imported when they are first asked for (PEP 562), and functions when they are first called."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from gtx.errors import InputError


def lazy_names(
    package: str, modules: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """A package's `__getattr__` and `__dir__`.

    Args:
        package: its `__name__`.
        modules: by module of the package, the names to take from it.
    """
    home = {name: f"{package}.{module}" for module, names in modules.items() for name in names}

    def getter(name: str) -> object:
        if name in home:
            return getattr(import_module(home[name]), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return getter, lambda: sorted({*vars(import_module(package)), *home})


def annex(name: str, user: str | None = None) -> ModuleType | None:
    """Import a room of gtx that may have been deleted.

    Args:
        name: of its folder, and after a dot of a module in it.
        user: what cannot do without it, such as "a folder of tables".

    Returns:
        The room or its module; None where it is gone and nobody needs it.

    Raises:
        InputError: it is gone, and `user` needs it.
    """
    room = name.partition(".")[0]
    if find_spec(f"gtx.{room}"):
        return import_module(f"gtx.{name}")
    if user is None:
        return None
    raise InputError(f"{user} needs gtx/{room}, which this gtx lacks")


@dataclass(frozen=True)
class LateFunction:
    """A function of a package that takes long to import; it is imported when it is first called.

    Attributes:
        module: where it is.
        name: of the function.
    """

    module: str
    name: str

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return getattr(import_module(self.module), self.name)(*arguments, **options)
