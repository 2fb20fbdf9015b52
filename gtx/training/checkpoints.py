"""Checkpoints are written whole: a process that is killed leaves no partial file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from pytorch_lightning.plugins.io import TorchCheckpointIO

from gtx.errors import InputError, printable
from gtx.files import whole_file
from gtx.training.ranks import from_main


def save_whole(contents: dict[str, Any], path: Path) -> None:
    """Write with `torch.save` a file that is whole or not there.

    Raises:
        OSError: it cannot be written.
    """
    with whole_file(path) as file:
        try:
            torch.save(contents, file)
        except RuntimeError as error:
            if isinstance(error.__context__, OSError):  # which torch puts into words of its own
                raise error.__context__ from None
            raise


# what `torch.load` raises, according to the bytes it meets
_DAMAGED = (OSError, EOFError, UnpicklingError, RuntimeError, ValueError, LookupError, TypeError, AttributeError)


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """What fails within is blamed on a damaged file.

    Raises:
        InputError: it names the file and says how to go on without it.
    """
    try:
        yield
    except _DAMAGED as error:
        if isinstance(error, OSError) and error.filename is not None:  # it cannot even be opened
            raise
        detail = printable(" ".join(str(error).split()), 200)
        raise InputError(
            f"{path} is damaged, or another gtx wrote it ({type(error).__name__}: {detail}); without it the same "
            "command trains this member from its start: remove it, or start the whole run anew with --overwrite"
        ) from error


class WholeCheckpointIO(TorchCheckpointIO):
    """Lightning's own writes by way of the system's temporary folder, which may be on another disk: not atomic. And it
    reads in every process; here the main one does, for all."""

    def load_checkpoint(self, path: str, *arguments: Any, **named: Any) -> dict[str, Any]:
        def read() -> dict[str, Any]:
            with readable(Path(path)):
                return super(WholeCheckpointIO, self).load_checkpoint(path, *arguments, **named)

        return from_main(read)

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str, storage_options: Any = None) -> None:
        save_whole(checkpoint, Path(path))
