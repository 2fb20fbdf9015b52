"""Files that are complete or do not exist; output folders, with a lock and a record of the files of gtx in them."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import IO, Any

import yaml
from filelock import FileLock, Timeout

from gtx.base.errors import InputError


@contextmanager
def atomic_file(path: str | os.PathLike[str], mode: str = "wb") -> Iterator[IO[Any]]:
    """Open a file for writing, which gets its name only after all its content is on the disk.

    An error, a kill or a power failure never leaves half a file of that name; a killed process may leave a hidden
    `.part` file in the same folder.

    Args:
        path: path of the file; missing folders are created, and a link stays a link.
        mode: "wb", or "w" for text in UTF-8, whose line ends are not changed.

    Raises:
        OSError: the file cannot be written, for example on a full disk; `filename` is the path.
    """
    target = Path(path).resolve()
    part = target.with_name(f".{target.name}.{token_hex(4)}.part")
    text: dict[str, Any] = {} if "b" in mode else {"encoding": "utf-8", "newline": ""}
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with part.open(mode, **text) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    except OSError as error:
        # an error while writing has no file name, and that of opening a hidden one
        if error.filename in (None, os.fspath(part)) and error.errno is not None:
            raise OSError(error.errno, os.strerror(error.errno), os.fspath(path)) from error
        raise
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file, see `atomic_file`."""
    with atomic_file(path, "w") as file:
        file.write(text)


LOCK, CLAIMS = ".gtx.lock", ".gtx.json"
MOST_DIFFERENCES = 5
"""Number of differences that a message names."""


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Lock a folder against other processes and threads; the lock is reentrant.

    The operating system holds the lock, by a hidden file, so it ends with the process, however that ends.

    Args:
        folder: created if it does not exist, and removed again if it stays empty.

    Raises:
        InputError: another process has the lock, or the path is a file.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; expected a folder")
    made = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    file = folder.resolve() / LOCK
    lock = FileLock(file, blocking=False, is_singleton=True, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout:
        raise InputError(
            f"another process works in {folder}: wait until it has ended, or choose another folder"
        ) from None
    except OSError:  # a file system without locks, or a read-only one: writing fails later
        yield
        return
    try:
        yield
    finally:
        if lock.lock_counter == 1:
            file.unlink(missing_ok=True)  # a process that has it open sees that it is gone
            if made:
                tidy(folder)
        lock.release()


KINDS = {"config.yaml": "a training run", "study.yaml": "a study of gtx tune", "splits": "a gtx benchmark"}
"""What a folder holds in which gtx wrote a file of this name."""


def claim(folder: Path, names: Iterable[str]) -> None:
    """Record that gtx writes these names in a folder.

    Raises:
        InputError: the folder contains a file with one of the names that gtx did not write, or what another command of
            gtx wrote.
    """
    claimed, names = _claimed(folder), set(names)
    for name in (claimed & KINDS.keys()) - names if names & KINDS.keys() else ():
        if (folder / name).exists():
            raise InputError(f"{folder} holds {KINDS[name]}: choose another folder")
    for name in sorted(names - claimed):
        if (folder / name).exists() or (folder / name).is_symlink():
            raise InputError(f"{folder / name} exists, and gtx did not write it: move it, or choose another folder")
    if not names <= claimed:
        write_text(folder / CLAIMS, json.dumps(sorted(claimed | names)))


def discard(folder: Path, names: Iterable[str] | None = None, keep: Iterable[str] = ()) -> None:
    """Delete the files and folders that gtx wrote in a folder, or those with the given names."""
    claimed = _claimed(folder)
    for name in (claimed if names is None else claimed & set(names)) - set(keep):
        if (folder / name).is_dir() and not (folder / name).is_symlink():
            shutil.rmtree(folder / name, ignore_errors=True)
        else:
            (folder / name).unlink(missing_ok=True)


def tidy(folder: Path) -> None:
    """Delete the record of a folder that gtx wrote nothing to, and the folder if it is empty."""
    if not any((folder / name).exists() for name in _claimed(folder)):
        (folder / CLAIMS).unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()


def _claimed(folder: Path) -> set[str]:
    try:
        names = json.loads((folder / CLAIMS).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return set()
    except (OSError, ValueError):
        names = None
    directly = isinstance(names, list) and all(
        isinstance(name, str) and name not in ("", "..") and Path(name).name == name for name in names
    )
    if not directly:  # such a name must not lead out of the folder
        raise InputError(f"{folder / CLAIMS}, the record of what gtx wrote there, is damaged: choose another folder")
    return set(names)


def read_plain(file: Path) -> Any:
    """Read a small YAML or JSON file; None if it is damaged or missing."""
    try:
        text = file.read_text(encoding="utf-8")
        return json.loads(text) if file.suffix == ".json" else yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError, FileNotFoundError):
        return None


def check_same(there: Any, now: dict[str, Any], what: str, anew: str = "`overwrite` to start anew") -> None:
    """Raise an `InputError` if the settings in a folder differ from those of now; `what` names its content."""
    if not isinstance(there, dict):
        raise InputError(f"{what} whose settings cannot be read: choose another folder, or {anew}")
    if differ := differences(there, now):
        raise InputError(
            f"{what} with other settings or data: {'; '.join(differ)}. "
            f"Choose another folder, the same settings to resume, or {anew}."
        )


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """List the first entries in which two configurations differ, each as `settings.lr (0.01 there, 0.02 now)`."""
    there, now = dict(flat(old)), dict(flat(new))
    names = [name for name in sorted(there.keys() | now.keys()) if not _agree(there, now, name)]
    texts = [f"{name} ({_shown(there, name)} there, {_shown(now, name)} now)" for name in names[:MOST_DIFFERENCES]]
    if len(names) > MOST_DIFFERENCES:
        texts.append(f"and {len(names) - MOST_DIFFERENCES} more")
    return texts


def _agree(old: dict[str, Any], new: dict[str, Any], name: str) -> bool:
    """Compare an entry in two configurations; a missing entry equals one that was left at its default."""
    if name in old and name in new:
        return old[name] == new[name]
    value = old.get(name, new.get(name))
    return value is None or value is False or value in ("none", [])


def flat(tree: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield nested settings by their paths: `model.channels`, 128."""
    for name, value in tree.items():
        if isinstance(value, Mapping) and value:
            yield from flat(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value


def _shown(flat: dict[str, Any], name: str) -> str:
    text = json.dumps(flat[name], ensure_ascii=False) if name in flat else "absent"
    return text if len(text) <= 80 else f"{text[:77]}..."


def example_file(name: str) -> Path:
    """Return a table of the folder `examples`, which an installation has in the package, a checkout beside it."""
    package = Path(__file__).parents[1]
    installed = package / "examples" / name
    file = installed if installed.exists() else package.parent / "examples" / name
    return file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file
