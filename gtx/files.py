"""Writing of files that are complete or do not exist."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any


@contextmanager
def whole_file(path: str | os.PathLike[str], mode: str = "wb") -> Iterator[IO[Any]]:
    """Open a file for writing, which gets its name only after all its content is on the disk.

    An error, a kill or a power failure never leaves half a file of that name; a killed process may leave a hidden
    `.part` file in the same folder.

    Args:
        path: of the file; missing folders are created, and a link stays a link.
        mode: "wb", or "w" for text in UTF-8, whose line ends are not changed.

    Raises:
        OSError: the file cannot be written, for example on a full disk; `filename` is the path.
    """
    target = Path(path).resolve()
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    text: dict[str, Any] = {} if "b" in mode else {"encoding": "utf-8", "newline": ""}
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with part.open(mode, **text) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    except OSError as error:
        if (
            error.filename is None and error.errno is not None
        ):  # an error while writing, for which the system gives no file name
            raise OSError(error.errno, os.strerror(error.errno), os.fspath(path)) from error
        raise
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file, see `whole_file`."""
    with whole_file(path, "w") as file:
        file.write(text)
