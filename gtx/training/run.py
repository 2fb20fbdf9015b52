"""A run: its folder, the check that it may resume, and the checkpoints from which it does."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
import yaml
from pytorch_lightning.plugins.io import TorchCheckpointIO

from gtx.base.errors import InputError
from gtx.base.files import atomic_file, check_same, claim, discard, read_plain, write_text
from gtx.settings.training import TrainSettings
from gtx.tasks import Task
from gtx.training.processes import is_main_process, run_in_main_process

CONFIG, MEMBERS = "config.yaml", "members"


class RunFolder:
    """Folder of a run: `config.yaml` with its settings, and a folder `members/0`, `members/1`, ... for each network.

    Args:
        path: path of the folder, which need not exist.
    """

    def __init__(self, path: str | Path) -> None:
        self.path: Path = Path(path)
        self.config_file: Path = self.path / CONFIG

    def open(self, config: dict[str, Any], overwrite: bool = False) -> bool:
        """Start a run, or resume it and return True; a run without a complete epoch starts anew.

        The config has the plain values that determine the result: settings, data, split, model.

        Raises:
            InputError: the folder contains a run with another config, or files that gtx did not write.
        """
        if not is_main_process():
            return True  # the main process has checked; two must not delete files
        config = json.loads(json.dumps(config))  # tuples become lists, as YAML returns them
        claim(self.path, (CONFIG, MEMBERS))
        if overwrite:
            discard(self.path, (CONFIG, MEMBERS))
        if not self.config_file.exists() and self._has_members():
            raise InputError(f"{self.path} holds members of a run but no config.yaml; `overwrite` starts anew")
        for part in self.path.glob(f"{MEMBERS}/*/.*.part"):  # of a run that was killed while it wrote
            part.unlink(missing_ok=True)
        resumed = self._has_members() or self.finished
        if resumed:
            recorded = self._read()
            recorded.pop("finished", None)
            check_same(recorded, config, f"{self.path} holds a run")
        else:
            self._write(config)
        return resumed

    @property
    def finished(self) -> bool:
        """True after a call of `finish`."""
        return self._read().get("finished", False) if self.config_file.exists() else False

    def finish(self) -> None:
        """Record in `config.yaml` that every output of the run has been written."""
        if is_main_process():
            self._write({**self._read(), "finished": True})

    def member(self, number: int) -> Path:
        """Return the folder of one network."""
        return self.path / MEMBERS / str(number)

    def _has_members(self) -> bool:
        return any((self.path / MEMBERS).glob("*/*"))

    def _read(self) -> dict[str, Any]:
        if not isinstance(config := read_plain(self.config_file), dict):
            raise InputError(f"{self.config_file} cannot be read; `overwrite` starts anew")
        return config

    def _write(self, config: dict[str, Any]) -> None:
        plain = yaml.safe_dump(config, sort_keys=False, allow_unicode=True, default_flow_style=None, width=120)
        write_text(self.config_file, plain)


def collect_run_config(task: Task, settings: TrainSettings, marks: dict[str, Any]) -> dict[str, Any]:
    """Collect all settings that determine the result of a run, as the content of `config.yaml`."""
    return {**task.config(), **marks, "settings": settings.decisive()}


# --- Checkpoints are written whole: a process that is killed leaves no partial file.


def save_atomically(contents: dict[str, Any], path: Path) -> None:
    """Write a file with `torch.save`, complete or not at all."""
    with atomic_file(path) as file:
        try:
            torch.save(contents, file)
        except RuntimeError as error:
            if isinstance(error.__context__, OSError):  # hidden by torch behind its own message
                raise error.__context__ from None
            raise


# errors of `torch.load`, depending on the damage
_DAMAGED = (OSError, EOFError, UnpicklingError, RuntimeError, ValueError, LookupError, TypeError, AttributeError)


_TRAIN_ANEW = (
    "Remove the file, and the same command trains this member from its start; or start the whole run anew with "
    "`overwrite`"
)


@contextmanager
def readable(path: Path, remedy: str = _TRAIN_ANEW) -> Iterator[None]:
    """Report a failure within the block as a damaged file, with a remedy, and not with torch's advice to run the code
    in it.
    """
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Detected pickle protocol")  # damage, which torch wants to hear about
            yield
    except _DAMAGED as error:
        if isinstance(error, OSError) and error.filename is not None:  # it cannot even be opened
            raise
        raise InputError(
            f"{path} is damaged, or another program wrote it: expected the saved state of a training, which can be "
            f"read whole. {remedy}"
        ) from (None if isinstance(error, UnpicklingError) else error)


class AtomicCheckpointIO(TorchCheckpointIO):
    """Checkpoint files that are written atomically, and that the main process reads for all processes.

    Lightning's own plugin writes through the system's temporary folder, which may be on another disk, and reads in
    every process.
    """

    def load_checkpoint(self, path: str | Path, *arguments: Any, **named: Any) -> dict[str, Any]:
        def read() -> dict[str, Any]:
            with readable(Path(path)):
                return super(AtomicCheckpointIO, self).load_checkpoint(path, *arguments, **named)

        return run_in_main_process(read)

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None) -> None:
        save_atomically(checkpoint, Path(path))
