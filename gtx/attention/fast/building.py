"""Loops in C, compiled on this machine for this CPU at first use: when they may run, and their second derivatives."""

from __future__ import annotations

import ctypes
import errno
import hashlib
import logging
import os
import platform
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gtx.base.files import atomic_file
from gtx.graph.packing import are_transformed

_FLAGS = ["-std=gnu11", "-O3", "-fPIC", "-shared", "-Wno-psabi", "-fno-math-errno", "-fno-trapping-math"]
_FLAGS += ["-ffp-contract=fast"]


def compiler() -> str | None:
    """Return the C compiler: the command in `CC`, else cc, gcc or clang; None if there is none, or `GTX_COMPILED=0`."""
    if os.environ.get("GTX_COMPILED") == "0" or os.name != "posix":
        return None
    return next(filter(None, map(shutil.which, [os.environ.get("CC", "cc"), "gcc", "clang"])), None)


@lru_cache
def build(source: Path, **macros: int) -> ctypes.CDLL | None:
    """Return a C file as a library, or None where it cannot be compiled.

    Threads are OpenMP's, those of torch: a second pool would wait for the first, which spins for a while after use.
    The library is kept in the user's cache, named by the hash of source, headers, macros and CPU. Where nothing can be
    kept, it is compiled in every run.

    Args:
        source: the file, which may include the headers in this folder.
        macros: defined for it.
    """
    command = compiler()
    if command is None:
        return None
    words = [*_FLAGS, *(f"-D{name}={value}" for name, value in macros.items())]
    headers = Path(__file__).parent
    files = [source, *sorted(headers.glob("*.h"))]
    text = " ".join([*(file.read_text() for file in files), *words, _processor()])
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    kept = Path(cache, "gtx", "compiled", f"{source.stem}-{hashlib.sha256(text.encode()).hexdigest()[:24]}.so")
    try:
        if _is_own(kept.parent):
            return ctypes.CDLL(str(kept))
    except OSError:  # not there yet, damaged, or made where other system libraries are
        pass
    try:
        with tempfile.TemporaryDirectory(prefix="gtx-") as scratch:
            compiled = Path(scratch, "compiled.so")
            _compile([command, *words, f"-I{headers}", str(source), "-lm", "-o", str(compiled)])
            _keep(compiled, kept)
            return ctypes.CDLL(str(compiled))
    except subprocess.CalledProcessError as error:
        reason = (error.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"])[0]
    except OSError as error:
        reason = str(error)
    logging.getLogger(__name__).warning("%s cannot be compiled, so the plain form runs: %s", source.name, reason)
    return None


def run(library: ctypes.CDLL | None, name: str, *arguments: object) -> int:
    """Call a function of a library that `build` returned: 0, or what went wrong.

    Tensors and None are passed as pointers, whole numbers as `int64_t`, others as `float`, arrays of ctypes as such.

    Raises:
        RuntimeError: the library could not be compiled.
    """
    if library is None:
        raise RuntimeError("expected a C compiler, which the caller is to ask for first; there is none")
    return getattr(library, name)(*map(_argument, arguments))


def _argument(x: Any) -> Any:
    if x is None or isinstance(x, Tensor):
        return ctypes.c_void_p(None if x is None else x.data_ptr())
    if isinstance(x, int):
        return ctypes.c_int64(x)
    return ctypes.c_float(x) if isinstance(x, float) else x


def _is_own(folder: Path) -> bool:
    """Return whether a folder is of this user, and no other user may write to it."""
    status = folder.stat()
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _keep(compiled: Path, kept: Path) -> None:
    """Copy a compiled library to the user's cache for the next run, or log why that is impossible."""
    try:
        kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_own(kept.parent):
            raise PermissionError(errno.EPERM, "others may write to it")
        with atomic_file(kept) as file:
            file.write(compiled.read_bytes())
    except OSError as error:
        logging.getLogger(__name__).warning("compiled code cannot be kept in %s: %s", kept.parent, error.strerror)


def _compile(command: list[str]) -> None:
    for more in (["-march=native", "-fopenmp"], ["-march=native"], ["-fopenmp"], []):  # not every compiler can
        done = subprocess.run([*command, *more], capture_output=True)
        if done.returncode == 0:
            return
    done.check_returncode()


def _processor() -> str:
    """Describe the CPU that the code is tuned for; machines may share a home folder."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    known = [line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part"))]
    return "\n".join([platform.machine(), platform.system(), *sorted(set(known))])


def are_plain(*tensors: Tensor, dtype: torch.dtype = torch.float32) -> bool:
    """Return whether these are tensors of this type on a CPU, neither traced nor transformed."""
    return (
        not torch.compiler.is_compiling()
        and not torch.is_autocast_enabled("cpu")
        and not are_transformed()
        and all(
            type(x.data if isinstance(x, torch.nn.Parameter) else x) is Tensor
            and x.device.type == "cpu"
            and x.dtype == dtype
            for x in tensors
        )
    )


def are_learned(*tensors: Tensor) -> bool:
    """Return whether one of these needs a gradient."""
    return torch.is_grad_enabled() and any(x.requires_grad for x in tensors)


def plain_gradients(
    definition: Callable[..., Tensor], tensors: Sequence[Tensor | None], needed: Sequence[bool], d_out: Tensor
) -> list[Tensor | None]:
    """Compute the gradients of a compiled loop by its plain form, so that they can be differentiated again.

    Args:
        definition: the plain form, of these tensors.
        tensors: what the loop was given.
        needed: of which tensors the gradient is wanted; others get None.
        d_out: the gradient of the loop's output.
    """
    # as views: where one tensor was made from another, its gradient is not that of the other too
    views = [None if x is None else x.view_as(x) for x in tensors]
    inputs = [x for x, need in zip(views, needed, strict=True) if need and x is not None]
    gradients = iter(torch.autograd.grad(definition(*views), inputs, d_out, create_graph=True))
    return [next(gradients) if need else None for need in needed]
