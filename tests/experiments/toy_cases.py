"""Cases that do nothing worth measuring, served as the scripts of `experiments.speed` serve theirs."""

from __future__ import annotations

import os
import signal
import sys
import time
from argparse import Namespace

import torch

from experiments.speed.harness import Work

PEAK = 40 << 20  # bytes that the step "grows" holds for a moment


def fails() -> None:
    raise MemoryError


def grows() -> None:
    assert b"\1" * PEAK


def talks() -> dict[str, int]:
    print("what a library says")
    return {"share": 3}


def dies() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def waits() -> None:
    time.sleep(60)


CASES = {
    "works": {"talks": talks, "fails": fails, "grows": grows},
    "hungry": {"all": lambda: torch.ones(1 << 30)},
    "dies": {"all": dies},
    "waits": {"all": waits},
}
TABLE = "Toys, {}", ["what"], {"size": lambda record: str(record["size"])}


def groups(options: Namespace) -> list[list[str]]:
    return [["waits"], ["works", "no set-up", *["hungry"] * (sys.platform == "linux")], ["dies"]]


def make(name: str, options: Namespace) -> Work:
    if name not in CASES:
        raise ValueError("there is no such thing\nand more")
    return Work(CASES[name], {"size": 7}, seconds=0.0)
