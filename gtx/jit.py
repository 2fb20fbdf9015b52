"""numba's `njit`, whose compiled code is kept in `gtx.code_cache`.

numba's own cache lies beside the source or in a folder that the environment names. It fails where neither can be
written, loads what others may have put there, fails on a damaged file, and does not notice when a function that the
compiled one calls has changed in another file.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

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
        function: to be compiled.
        cache: whether the compiled function is kept for the next run: below `NUMBA_CACHE_DIR` if that is set, else in
            the user's cache. Where nothing can be kept it is compiled anew in every run.
        options: of `numba.njit`.
    """
    if function is None:
        return lambda function: njit(function, cache=cache, **options)
    compiled = numba.njit(**options)(function)
    if cache and isinstance(compiled, Dispatcher):  # with NUMBA_DISABLE_JIT it is the function itself
        compiled._cache = FunctionCache(function)
    return compiled


class FunctionCache(NullCache):
    """The compiled forms of one function, a file each.

    A file's name holds the hash of all that the code depends on: the function, what it calls and the constants that it
    reads, the types of its arguments, the processor, and the versions of Python, numpy and numba. So nothing is ever
    out of date, and processes that compile at the same time write the same file or different ones.

    Args:
        function: the Python function.
    """

    def __init__(self, function: FunctionType) -> None:
        self.function = function

    @property
    def folder(self) -> Path | None:
        """Where the files are, or None where none can be kept."""
        return cache_folder("numba", os.environ.get("NUMBA_CACHE_DIR") or None)

    @property
    def cache_path(self) -> str:
        """The folder, as numba asks for it."""
        return str(self.folder)

    def load_overload(self, sig: Any, target_context: Any) -> CompileResult | None:
        """The function for these types of arguments, if it was kept."""
        target_context.refresh()
        folder = self.folder
        file = None if folder is None else find(folder, self._name(sig, target_context.codegen()))
        return None if file is None else CompileResult._rebuild(target_context, *pickle.loads(file.read_bytes()))

    def save_overload(self, sig: Any, cres: CompileResult) -> None:
        """Keep it, if it can be."""
        folder = self.folder
        if folder is None or cres.lifted or cres.library.has_dynamic_globals:
            return
        keep(folder, self._name(sig, cres.codegen), dumps(cres._reduce()))

    def _name(self, sig: Any, codegen: Any) -> str:
        versions = (numba.__version__, np.__version__, sys.version_info[:3], getattr(sys, "abiflags", ""))
        text = repr((fingerprint(self.function), sig, codegen.magic_tuple(), versions))
        return f"{self.function.__name__}-{hashlib.sha256(text.encode()).hexdigest()[:24]}"


def fingerprint(function: FunctionType, callers: frozenset[FunctionType] = frozenset()) -> tuple:
    """Collect everything that a compiled function depends on: its module, its code, and the objects that it finds by
    name, including the functions that it calls.

    Args:
        function: the Python function.
        callers: those whose fingerprint this is a part of.
    """
    if function in callers:
        return (function.__name__,)
    code, callers = function.__code__, callers | {function}
    cells = {name: cell.cell_contents for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True)}
    scope = {**function.__globals__, **cells}
    found = tuple((name, _plain(scope[name], callers)) for name in _names(code) if name in scope)
    return function.__module__, _parts(code), found


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
