"""C compiled on this machine, for this processor, when it is first needed."""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import platform
import shutil
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

_FLAGS = ["-std=gnu11", "-O3", "-fPIC", "-shared", "-Wno-psabi", "-fno-math-errno", "-fno-trapping-math"]
_FLAGS += ["-ffp-contract=fast"]


def compiler() -> str | None:
    """The C compiler: the command in `CC`, else cc, gcc or clang; None if there is none, or `GTX_COMPILED=0`."""
    if os.environ.get("GTX_COMPILED") == "0" or os.name != "posix":
        return None
    return next(filter(None, map(shutil.which, [os.environ.get("CC", "cc"), "gcc", "clang"])), None)


@lru_cache
def build(source: Path, **macros: int) -> ctypes.CDLL | None:
    """A C file as a library, or None where it cannot be compiled.

    Threads are OpenMP's, those of torch: a second pool would wait for the first, which spins for a while after use.
    The library is kept in the user's cache (`XDG_CACHE_HOME`, else `~/.cache`), by the hash of source, macros and
    processor.

    Args:
        source: the file.
        macros: defined for it.
    """
    command = compiler()
    if command is None:
        return None
    words = [*_FLAGS, *(f"-D{name}={value}" for name, value in macros.items())]
    text = " ".join([source.read_text(), *words, _processor()])
    name = f"{source.stem}-{hashlib.sha256(text.encode()).hexdigest()[:24]}.so"
    for folder in (Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "gtx", "compiled"), None):
        try:
            folder = Path(tempfile.mkdtemp(prefix="gtx-")) if folder is None else folder
            folder.mkdir(parents=True, exist_ok=True)
            file = folder / name
            if not file.exists():
                _compile([command, *words, str(source), "-lm"], file)
            return ctypes.CDLL(str(file))
        except subprocess.CalledProcessError as error:
            said = error.stderr.decode(errors="replace").strip().splitlines() or ["nothing"]
            logging.getLogger(__name__).warning(
                "%s cannot be compiled, so the plain form runs: %s", source.name, said[0]
            )
            return None
        except OSError:  # a folder nobody may write to, or run from
            continue
    return None


def _compile(command: list[str], file: Path) -> None:
    with tempfile.TemporaryDirectory(dir=file.parent) as folder:
        made = Path(folder, "made.so")
        for more in (["-march=native", "-fopenmp"], ["-march=native"], ["-fopenmp"], []):  # not every compiler can
            done = subprocess.run([*command, *more, "-o", str(made)], capture_output=True)
            if done.returncode == 0:
                os.replace(made, file)  # at once: others may be looking
                return
        done.check_returncode()


def _processor() -> str:
    """What the code was tuned for; a home folder may be shared between machines."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    known = [line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part"))]
    return "\n".join([platform.machine(), platform.system(), *sorted(set(known))])
