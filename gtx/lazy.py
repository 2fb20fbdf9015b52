"""Imports at first use: of the names of a package (PEP 562), of functions, of annexes, of modules of other packages."""

from __future__ import annotations

import ast
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any, overload

from gtx.base.errors import InputError

_LOCK = threading.RLock()


def lazy_names(package: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Make the `__getattr__` and `__dir__` of a package whose names are imported at first use.

    They are the names that its `__init__.py` imports under `if TYPE_CHECKING:`, where editors and mypy find them too.
    Names of an annex, such as those of `gtx.sequence.task`, are gone with the annex.

    Args:
        package: its `__name__`.
    """
    loader: Any = sys.modules[package].__loader__
    blocks = [block for block in ast.parse(loader.get_source(package)).body if isinstance(block, ast.If)]
    imports = [one for block in blocks for one in block.body if isinstance(one, ast.ImportFrom)]
    home = {name.asname or name.name: (str(one.module), name.name) for one in imports for name in one.names}

    def getter(name: str) -> object:
        if name in home:
            module, original = home[name]
            return getattr(import_module(module), original)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return getter, lambda: sorted({*vars(sys.modules[package]), *home})


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


class Postponed(MetaPathFinder, Loader):
    """Finder of modules that another package imports and seldom uses: each is run when one of its names is first read.

    `importlib.util.LazyLoader` runs a module already when something asks for its file, as `inspect` does of all.

    Args:
        names: of the modules, such as `torch_geometric.datasets`.
    """

    def __init__(self, *names: str) -> None:
        self.names = set(names)
        self.loaders: dict[str, Loader] = {}
        sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Find one of the modules, with this class as its loader."""
        if name not in self.names:
            return None
        self.names.remove(name)  # for the other finders
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            self.loaders[name], spec.loader = spec.loader, self
        return spec

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave it to Python to make the empty module."""

    def exec_module(self, module: ModuleType) -> None:
        """Let the module wait; also who imports a module inside a package reads a name of the package, its path."""
        module.__dict__.pop("__path__", None)
        module.__class__ = _Waiting


class _Waiting(ModuleType):
    """Module that is run when a name is read that an empty module lacks."""

    def __getattr__(self, name: str) -> Any:
        spec = self.__spec__
        with _LOCK:
            if isinstance(self, _Waiting) and spec is not None and isinstance(spec.loader, Postponed):
                spec.loader = self.__loader__ = spec.loader.loaders[self.__name__]
                if spec.submodule_search_locations is not None:
                    self.__path__ = spec.submodule_search_locations
                setattr(self, "__class__", ModuleType)  # noqa: B010  # mypy takes it for a change of this class
                spec.loader.exec_module(self)
        return getattr(self, name)
