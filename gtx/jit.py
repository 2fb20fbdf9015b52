"""numba's `njit` with compiled code in `gtx.code_cache`.

numba's own cache, next to the source or in a folder that the environment names, fails if neither can be written, loads
files that other users may have put there, raises `EOFError` for a truncated file, and does not notice a change in
another file of a function that the compiled one calls. Two processes that compile one function for different types at
the same time may exchange their files; every later call then raises `TypeError`.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, cast

import numba
import numpy as np
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.dispatcher import Dispatcher
from numba.core.serialize import dumps

from gtx.code_cache import cache_folder, find, keep


def njit(function: Callable | None = None, *, cache: bool = False, **options: Any) -> Any:
    """Compile a function with `numba.njit`, which it replaces.

    Args:
        function: function to compile.
        cache: keep the compiled function for the next run: below `NUMBA_CACHE_DIR` if that is set, else in the user's
            cache. Without a private folder it is compiled in every run.
        options: further options of `numba.njit`.
    """
    if function is None:
        return lambda function: njit(function, cache=cache, **options)
    compiled = numba.njit(**options)(function)
    if cache and isinstance(compiled, Dispatcher):  # with NUMBA_DISABLE_JIT it is the function itself
        setattr(compiled, "_cache", FunctionCache(cast(FunctionType, function)))  # noqa: B010  # not in its types
    return compiled


class FunctionCache(NullCache):
    """Compiled forms of one function, a file for each set of argument types.

    The file name holds a hash of everything that the code depends on: the function, the functions that it calls, the
    constants that it reads, the types of its arguments, the CPU, and the versions of Python, numpy and numba. So
    no file is ever out of date, and processes that compile at the same time write the same file or different ones.

    Args:
        function: the Python function.
    """

    def __init__(self, function: FunctionType) -> None:
        self.function = function

    @property
    def folder(self) -> Path | None:
        """Folder of the files, or None without a private folder."""
        return cache_folder("numba", os.environ.get("NUMBA_CACHE_DIR") or None)

    @property
    def cache_path(self) -> str:
        """Folder of the files, under the name that numba reads."""
        return str(self.folder)

    def load_overload(self, sig: Any, target_context: Any) -> CompileResult | None:
        """Load the function for these types of arguments; None if it is not in the cache."""
        target_context.refresh()
        folder = self.folder
        file = None if folder is None else find(folder, self._name(sig, target_context.codegen()))
        return None if file is None else CompileResult._rebuild(target_context, *pickle.loads(file.read_bytes()))

    def save_overload(self, sig: Any, cres: Any) -> None:
        """Write the function to the cache, if it can be stored."""
        folder = self.folder
        if folder is None or cres.lifted or cres.library.has_dynamic_globals:
            return
        keep(folder, self._name(sig, cres.codegen), dumps(cres._reduce()))

    def _name(self, sig: Any, codegen: Any) -> str:
        versions = (numba.__version__, np.__version__, sys.version_info[:3], getattr(sys, "abiflags", ""))
        text = repr((fingerprint(self.function), sig, codegen.magic_tuple(), versions))
        return f"{self.function.__name__}-{hashlib.sha256(text.encode()).hexdigest()[:24]}"


def fingerprint(function: FunctionType, callers: frozenset[FunctionType] = frozenset()) -> tuple[Any, ...]:
    """Collect everything that a compiled function depends on: its module, its code, and the objects that it refers to.

    Args:
        function: the Python function.
        callers: functions whose fingerprint includes this one.
    """
    if function in callers:
        return (function.__name__,)
    code, callers = function.__code__, callers | {function}
    cells = {name: cell.cell_contents for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True)}
    scope = {**function.__globals__, **cells}
    references = tuple((name, _plain(scope[name], callers)) for name in _names(code) if name in scope)
    return function.__module__, _parts(code), references


def _plain(value: Any, callers: frozenset[FunctionType]) -> Any:
    if isinstance(value, Dispatcher):
        return fingerprint(value.py_func, callers)
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    return tuple(_plain(one, callers) for one in value) if isinstance(value, tuple) else repr(value)


def _parts(code: CodeType) -> tuple:
    constants = tuple(_parts(one) if isinstance(one, CodeType) else repr(one) for one in code.co_consts)
    return code.co_code, code.co_names, code.co_varnames, constants


def _names(code: CodeType) -> list[str]:
    inner = [name for one in code.co_consts if isinstance(one, CodeType) for name in _names(one)]
    return [*code.co_names, *code.co_freevars, *inner]
