"""chemprop in an environment of its own, so that its requirements and those of gtx never meet.

    python -m experiments.rivals.chemprop_env

makes it once, below `$XDG_CACHE_HOME/gtx` (or `~/.cache/gtx`), with the torch of `constraints.txt`, and prints the
Python in it. An attempt that failed is remembered in `failed.txt` there and not made again until that is removed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CONSTRAINTS = Path(__file__).parents[2] / "constraints.txt"


class Unavailable(RuntimeError):
    """chemprop cannot be had here; the message says why."""


def folder() -> Path:
    """Where the environment lies."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gtx" / "chemprop"


def python() -> Path:
    """The Python of the environment that holds chemprop, made at the first call.

    Raises:
        Unavailable: it cannot be installed, now or at the attempt before.
    """
    home = folder()
    interpreter, done, failed = home / "bin" / "python", home / "installed.txt", home / "failed.txt"
    if done.is_file():
        return interpreter
    if failed.is_file():
        raise Unavailable(f"chemprop could not be installed: {failed.read_text().strip()}")
    torch = next(line for line in CONSTRAINTS.read_text().splitlines() if line.startswith("torch=="))
    pip = [str(interpreter), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    try:
        _run([sys.executable, "-m", "venv", str(home)])
        _run([*pip, torch])  # first, so that the build at hand is taken
        _run([*pip, torch, "chemprop"])
    except (OSError, subprocess.CalledProcessError) as error:
        lines = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
        home.mkdir(parents=True, exist_ok=True)
        failed.write_text(f"{lines[-1]}\n")
        raise Unavailable(f"chemprop could not be installed: {lines[-1]}") from None
    done.write_text(version(interpreter))
    return interpreter


def version(interpreter: Path) -> str:
    """chemprop's version in that environment."""
    code = "import importlib.metadata as m; print(m.version('chemprop'))"
    return _run([str(interpreter), "-c", code]).strip()


def _run(command: list[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    print(python())
