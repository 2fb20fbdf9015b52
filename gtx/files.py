"""Files that are whole or not there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any


@contextmanager
def whole_file(path: str | os.PathLike[str], mode: str = "wb") -> Iterator[IO[Any]]:
    """Open a file to write; it takes its name when all of it has reached the disk.

    Neither an error, nor a kill, nor a power failure leaves half a file under the name. After an error nothing is left
    of it; a killed process leaves a hidden `.part` file beside it.

    Args:
        path: of the file; missing folders are made, and a link stays one.
        mode: "wb", or "w" for text in UTF-8, whose line ends stay as they are.

    Raises:
        OSError: it cannot be written, on a full disk for example; `filename` is the path.
    """
    target = Path(path).resolve()
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": ""}
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with part.open(mode, **text) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    except OSError as error:
        if error.filename is None and error.errno is not None:  # of a write: the system does not say to which file
            raise OSError(error.errno, os.strerror(error.errno), os.fspath(path)) from error
        raise
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file, see `whole_file`."""
    with whole_file(path, "w") as file:
        file.write(text)
