"""Notices, threads and signals of the process while a model trains; afterwards all are as before."""

from __future__ import annotations

import logging
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from pytorch_lightning.utilities.exceptions import SIGTERMException

from gtx.termination import Terminated, terminable


@contextmanager
def quiet() -> Iterator[None]:
    """No notices of Lightning (devices found, tips, "`Trainer.fit` stopped"), which a user of gtx does not need."""
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
def threads(count: int | None) -> Iterator[None]:
    """Torch computes with `count` threads within; None leaves them as they are."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C raises `KeyboardInterrupt` and SIGTERM `Terminated`.

    After the first Lightning would exit, and leave the process deaf to the next one; after the second it would exit
    with status 0, as if the training had come to its end.
    """
    handler = signal.getsignal(signal.SIGINT)
    try:
        with terminable():
            yield
    except SIGTERMException:
        raise Terminated from None
    except SystemExit as exit_:
        if not isinstance(exit_.__context__, KeyboardInterrupt):
            raise
        signal.signal(signal.SIGINT, handler)
        raise KeyboardInterrupt from None
