"""A cache of code compiled on this machine, in folders that no other user can write to."""

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
_DAYS = 90  # a file that was not used for this long is removed


def cache_folder(name: str, root: str | os.PathLike[str] | None = None) -> Path | None:
    """Return the folder `gtx/name` with mode 0700, or None, with a warning in the log.

    The result is None if there is no home folder, if the folder cannot be written, or if another user could write to
    it.

    Args:
        name: name of the folder.
        root: parent folder; by default the user's cache, `XDG_CACHE_HOME` or else `~/.cache`.
    """
    try:
        if root is None:
            cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
            root = cache if cache.is_absolute() else Path.home() / ".cache"
        return _private(Path(root).expanduser().absolute(), name)
    except RuntimeError as error:  # no home folder
        _log_once(f"{error} Compiled code is not kept: set XDG_CACHE_HOME to a folder of your own.")
        return None


def find(folder: Path, name: str, suffix: str = "") -> Path | None:
    """Return the file that `keep` wrote under this name, if it is intact and of this user; delete a damaged one."""
    for file in sorted(folder.glob(f"{name}-{'?' * _DIGITS}{suffix}")):
        try:
            if _is_own(file) and file.name == f"{name}-{_digest(file.read_bytes())}{suffix}":
                with suppress(OSError):  # a read-only folder
                    os.utime(file, ns=(time.time_ns(), file.stat().st_mtime_ns))  # used now
                return file
            file.unlink()
        except OSError:  # another process removed it
            continue
    return None


def keep(folder: Path, name: str, content: bytes, suffix: str = "") -> None:
    """Write a file whose name ends in the hash of its content, atomically: other processes may read or write it.

    If it cannot be written, for example on a full disk, a warning goes to the log.
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
    """Remove files that were not used for long: code of earlier versions, and half files of killed processes."""
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
    """Return the folder, or parent, in which another user could replace its entries; None if there is none."""
    if os.name != "posix":  # elsewhere a user's folders are closed to others by default
        return None
    status = folder.stat()
    if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return folder
    owners = {0, os.geteuid(), Path(folder.anchor).stat().st_uid}  # in a container the root folder need not be root's
    for parent in folder.parents:
        status = parent.stat()
        by_group = status.st_mode & stat.S_IWGRP and status.st_gid != status.st_uid  # not the user's private group
        open_to_others = (by_group or status.st_mode & stat.S_IWOTH) and not status.st_mode & stat.S_ISVTX
        if status.st_uid not in owners or open_to_others:
            return parent
    return None


def _is_own(file: Path) -> bool:
    status = file.lstat()
    if not stat.S_ISREG(status.st_mode):
        return False
    return os.name != "posix" or (status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


@lru_cache
def _log_once(message: str) -> None:
    logging.getLogger(__name__).warning(message)
