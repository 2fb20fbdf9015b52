"""Where the time of a training run goes: in the model, or elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import torch


class Stopwatch:
    """Seconds spent in parts of a program, summed; a part within another counts for itself alone.

    Attributes:
        seconds: by part.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._running: list[str] = []
        self._since = 0.0

    @contextmanager
    def running(self, part: str) -> Iterator[None]:
        """Count what is done within to a part."""
        self._turn()
        self._running.append(part)
        try:
            yield
        finally:
            self._turn()
            self._running.pop()

    def put_on(self, owner: object, name: str, part: str) -> None:
        """Count every call of `owner.name` to a part, from now on in this process."""
        function = getattr(owner, name)

        def timed(*arguments: object, **named: object) -> object:
            with self.running(part):
                return function(*arguments, **named)

        setattr(owner, name, timed)

    def put_on_training(self) -> None:
        """Count "backward" and "optimiser" (Adam and AdamW) of all training in this process."""
        self.put_on(torch.autograd, "backward", "backward")
        step = torch.optim.Adam.step

        def timed(optimiser: torch.optim.Optimizer, closure: Callable | None = None) -> object:
            with self.running("optimiser"):
                return step(optimiser, None if closure is None else partial(self._elsewhere, closure))

        torch.optim.Adam.step = timed

    def _elsewhere(self, closure: Callable) -> object:
        with self.running("elsewhere"):  # Lightning puts forward, backward and more into the optimiser's step
            return closure()

    def _turn(self) -> None:
        now = time.perf_counter()
        if self._running:
            part = self._running[-1]
            self.seconds[part] = self.seconds.get(part, 0.0) + now - self._since
        self._since = now
