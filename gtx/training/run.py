"""A run: the folder of a training, its surroundings, and its end by a signal."""

from __future__ import annotations

import atexit
import json
import logging
import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen
from typing import Any, ClassVar

import torch
import yaml
from pytorch_lightning import Callback, LightningModule, Trainer
from pytorch_lightning.utilities.exceptions import SIGTERMException

from gtx.base.errors import InputError, Terminated, raise_on_sigterm, raise_terminated
from gtx.base.files import check_same, claim, discard, write_text
from gtx.settings.training import TrainSettings
from gtx.tasks import Task
from gtx.training.ranks import is_main_process

# --- SIGTERM while Lightning trains, in one process or in several.


class TerminationCallback(Callback):
    """Handler by which SIGTERM raises `Terminated` at once and ends the processes that Lightning started.

    Lightning's own handler waits for the end of the batch, and in several processes for a broadcast, which never comes
    if another process waits for a gradient.
    """

    started: ClassVar[list[Popen[Any]]] = []  # by the first training of this process, for later ones

    def setup(self, trainer: Trainer, module: LightningModule, stage: str) -> None:
        self.handler: Any = signal.getsignal(signal.SIGTERM)
        self.started.extend(getattr(trainer.strategy.launcher, "procs", ()))

    def on_train_start(self, *_: Any) -> None:
        # Lightning has installed its own handler
        if self.handler is raise_terminated and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, raise_terminated)

    def on_exception(self, *_: Any) -> None:
        # only when this process ends, or Lightning's observer of the others would kill it
        for process in self.started:
            atexit.register(process.kill)
        self.started.clear()


# --- Notices, threads and signals of the process while a model trains; each is restored afterwards.


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress notices of Lightning (devices, tips, "`Trainer.fit` stopped"), which a user of gtx does not need."""
    loggers = [logging.getLogger(name) for name in ("pytorch_lightning", "lightning_fabric")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings():
            for text in ("available but not used", "exists and is not empty", "LeafSpec"):
                warnings.filterwarnings("ignore", f".*{text}.*")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


@contextmanager
def torch_threads(count: int | None) -> Iterator[None]:
    """Let torch use `count` threads in the block; None keeps their number."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise `KeyboardInterrupt` on Ctrl-C and `Terminated` on SIGTERM.

    On Ctrl-C Lightning would exit and leave its own handler installed; on SIGTERM it would exit with status 0, as after
    a complete training.
    """
    handler = signal.getsignal(signal.SIGINT)
    try:
        with raise_on_sigterm():
            yield
    except SIGTERMException:
        raise Terminated from None
    except SystemExit as exit_:
        if not isinstance(exit_.__context__, KeyboardInterrupt):
            raise
        signal.signal(signal.SIGINT, handler)
        raise KeyboardInterrupt from None


# --- The folder of a run: its settings, and the check that it may resume.

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
            raise InputError(f"{self.path} holds members of a run but no config.yaml; --overwrite starts anew")
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
        try:
            config = yaml.safe_load(self.config_file.read_text(encoding="utf-8"))
            return dict(config)
        except (yaml.YAMLError, UnicodeDecodeError, TypeError, ValueError) as error:
            raise InputError(f"{self.config_file} cannot be read; --overwrite starts anew") from error

    def _write(self, config: dict[str, Any]) -> None:
        plain = yaml.safe_dump(config, sort_keys=False, allow_unicode=True, default_flow_style=None, width=120)
        write_text(self.config_file, plain)


def collect_run_config(task: Task, settings: TrainSettings, marks: dict[str, Any]) -> dict[str, Any]:
    """Collect all settings that determine the result of a run, as the content of `config.yaml`."""
    return {**task.config(), **marks, "settings": settings.decisive()}
