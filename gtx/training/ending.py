"""SIGTERM while Lightning trains, in one process or in several."""

from __future__ import annotations

import atexit
import signal
import threading
from subprocess import Popen
from typing import Any, ClassVar

from pytorch_lightning import Callback, LightningModule, Trainer

from gtx.termination import raise_terminated


class Ending(Callback):
    """SIGTERM raises `Terminated` at once, and the processes that Lightning started do not outlive the first.

    Lightning's own handler waits for the end of the batch, and where several processes train it has them tell each
    other by a broadcast: it never ends where another process waits for a gradient.
    """

    started: ClassVar[list[Popen]] = []  # by the first training of this process; later ones find them there

    def setup(self, trainer: Trainer, module: LightningModule, stage: str) -> None:
        self.handler = signal.getsignal(signal.SIGTERM)
        self.started.extend(getattr(trainer.strategy.launcher, "procs", ()))

    def on_train_start(self, *_: Any) -> None:
        # Lightning has put its own handler in front
        if self.handler is raise_terminated and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, raise_terminated)

    def on_exception(self, *_: Any) -> None:
        # not before this process ends, or Lightning's observer of the others would kill it
        for process in self.started:
            atexit.register(process.kill)
        self.started.clear()
