"""The folder that parts go to: whose they are, and that nobody else writes there."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from gtx.data.library.shards import Library, Shard
from gtx.errors import InputError
from gtx.files import write_text

FACTS = "_gtx.json"


@contextmanager
def held(folder: Path, facts: dict[str, Any], words: str) -> Iterator[None]:
    """Nobody else writes to the folder within; what a killed process has left there is removed.

    Args:
        folder: where `_gtx.json` is.
        facts: plain values that decide what is written, kept for who goes on.
        words: what is there if the facts differ, such as "other predictions".

    Raises:
        InputError: somebody else is there, or the folder holds something else.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; give another --out, which will be a folder")
    file, facts = folder / FACTS, json.loads(json.dumps(facts))  # as they will be read
    if folder.exists() and not file.exists() and any(p.name != ".lock" for p in folder.iterdir()):
        raise InputError(f"{folder} holds other files: give another --out, or empty it")
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / ".lock", blocking=False, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout:
        raise InputError(f"another gtx writes to {folder}: wait for its end") from None
    try:
        if file.exists():
            _check(folder, facts, words)
        else:
            write_text(file, json.dumps(facts, indent=1))
        _sweep(folder)
        yield
    finally:
        _sweep(folder)
        (folder / ".lock").unlink(missing_ok=True)
        lock.release()


def check_outside(source: str | os.PathLike[str], out: Path, words: str) -> None:
    """Raise an `InputError` if a folder to be written lies in the folder that is read: `words` is what is written."""
    if Path(source).is_dir() and out.resolve().is_relative_to(Path(source).resolve()):
        raise InputError(f"{out} is within {source}: {words} would be taken for molecules")


def check_unchanged(library: Library, shard: Shard, path: Path) -> None:
    """Raise an `InputError` if the part at `path` belongs to a file that has changed, or is no more."""
    if library.stamps.get(shard.file) != shard.stamp:
        what = "has changed since" if shard.file in library.stamps else "is not there any more, but"
        raise InputError(f"{library.root / shard.file} {what} {path} was written: remove its parts")


def _check(folder: Path, facts: dict[str, Any], words: str) -> None:
    try:
        before = json.loads((folder / FACTS).read_text())
        other = [name for name in {**before, **facts} if before.get(name) != facts.get(name)]
    except (ValueError, AttributeError, TypeError):
        raise InputError(f"{folder / FACTS} is damaged: give another --out, or empty the folder") from None
    if other:
        raise InputError(
            f"{folder} holds {words} ({other[0]}: {before.get(other[0])}, and now "
            f"{facts.get(other[0])}): give another --out, or empty it"
        )


def _sweep(folder: Path) -> None:
    for pattern in (".*.part", ".*.journal"):
        for left in folder.rglob(pattern):
            left.unlink(missing_ok=True)
