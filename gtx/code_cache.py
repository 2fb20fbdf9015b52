"""Code compiled on this machine, kept for the next run where nobody else can put something in its place."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import stat
import tempfile
import time
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

_DIGITS = 24  # of a hash, in a name
_DAYS = 90  # a file that was not used for so long is removed


def cache_folder(name: str, root: str | os.PathLike | None = None) -> Path | None:
    """The folder `gtx/name` for this user alone, mode 0700, or None where there can be none.

    There is none without a home folder, where nothing can be written, and where another user could write. A line in the
    log then says what to mend.

    Args:
        name: of the folder.
        root: it lies below; default the user's cache, `XDG_CACHE_HOME` or else `~/.cache`.
    """
    try:
        if root is None:
            known = Path(os.environ.get("XDG_CACHE_HOME", ""))
            root = known if known.is_absolute() else Path.home() / ".cache"
        return _private(Path(root).expanduser().absolute(), name)
    except RuntimeError as error:  # nobody knows the home folder
        _log_once(f"{error} Compiled code is not kept: set XDG_CACHE_HOME to a folder of your own.")
        return None


def find(folder: Path, name: str, suffix: str = "") -> Path | None:
    """The file that `keep` made under this name, whole and of this user; what is damaged is removed."""
    for file in sorted(folder.glob(f"{name}-{'?' * _DIGITS}{suffix}")):
        try:
            if _is_own(file) and file.name == f"{name}-{_digest(file.read_bytes())}{suffix}":
                with suppress(OSError):  # a folder that is only read
                    os.utime(file, ns=(time.time_ns(), file.stat().st_mtime_ns))  # used now
                return file
            file.unlink()
        except OSError:  # another process removed it
            continue
    return None


def keep(folder: Path, name: str, content: bytes, suffix: str = "") -> None:
    """Write a file whose name ends in the hash of its content, at once: others may be reading or writing the same.

    Where it cannot be written, on a full disk for example, a line in the log says so.
    """
    try:
        with tempfile.TemporaryDirectory(dir=folder, prefix="partial-") as scratch:
            partial = Path(scratch, "content")
            partial.write_bytes(content)
            partial.chmod(0o700)
            os.replace(partial, folder / f"{name}-{_digest(content)}{suffix}")
        _remove_old(folder)
    except OSError as error:
        _log_once(f"Compiled code cannot be kept in {folder}: {error.strerror}.")


def _remove_old(folder: Path) -> None:
    """Remove what nobody used for long: code of earlier versions, and what a killed process left half written."""
    for file in folder.iterdir():
        with suppress(OSError):  # another process removed it
            if time.time() - file.stat().st_atime > _DAYS * 86400:
                shutil.rmtree(file) if file.is_dir() else file.unlink()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_DIGITS]


@lru_cache
def _private(root: Path, name: str) -> Path | None:
    folder = root / "gtx" / name
    try:
        root.mkdir(parents=True, exist_ok=True)
        for part in (root / "gtx", folder):
            part.mkdir(mode=0o700, exist_ok=True)
        folder = folder.resolve()
        if shared := _shared(folder):
            _log_once(f"Others may write to {shared}, so compiled code is not kept in {folder}. Close it to them.")
            return None
        if stat.S_IMODE(folder.stat().st_mode) != 0o700:
            os.chmod(folder, 0o700)
    except OSError as error:
        _log_once(f"{folder} cannot be made ({error.strerror}), so compiled code is not kept.")
        return None
    return folder


def _shared(folder: Path) -> Path | None:
    """The folder on the way to this one where somebody else may put another in its place, if there is one."""
    if os.name != "posix":  # a user's folders are closed to others unless opened by hand
        return None
    own = folder.stat()
    if own.st_uid != os.geteuid() or own.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return folder
    owners = {0, os.geteuid(), Path(folder.anchor).stat().st_uid}  # in a container the root folder need not be root's
    for parent in folder.parents:
        found = parent.stat()
        by_group = found.st_mode & stat.S_IWGRP and found.st_gid != found.st_uid  # a group of the user alone is none
        open_to_others = (by_group or found.st_mode & stat.S_IWOTH) and not found.st_mode & stat.S_ISVTX
        if found.st_uid not in owners or open_to_others:
            return parent
    return None


def _is_own(file: Path) -> bool:
    found = file.lstat()
    if not stat.S_ISREG(found.st_mode):
        return False
    return os.name != "posix" or (found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


@lru_cache
def _log_once(message: str) -> None:
    logging.getLogger(__name__).warning(message)
