"""What a study varies: the choices, the defaults among them, and the settings that a choice stands for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from gtx.training import TrainSettings
from gtx.workflow.specs import default_width

SCRATCH = "scratch"
ARCHITECTURE = ("channels", "layers", "dropout", "encodings")
"""Choices that are arguments of the model."""
ENCODINGS = ("bonds path walk degree", "bonds path walk degree ring", "bonds path degree", "bonds walk degree", "bonds")


class Choice(NamedTuple):
    """What one setting can be: one of some values, or a number of a range.

    Attributes:
        values: these, or None.
        low, high: ends of the range; whole numbers for a whole number.
        log: whether the range is drawn from by its logarithm.
    """

    values: tuple[Any, ...] | None = None
    low: float = 0
    high: float = 0
    log: bool = False

    def drawn(self, name: str, trial: Suggests) -> Any:
        """What a trial of Optuna takes."""
        if self.values is not None:
            return trial.suggest_categorical(name, self.values)
        suggest = trial.suggest_int if isinstance(self.low, int) else trial.suggest_float
        return suggest(name, self.low, self.high, log=self.log)


class Suggests(Protocol):
    """What is used of `optuna.Trial`."""

    def suggest_categorical(self, name: str, choices: tuple[Any, ...]) -> Any: ...
    def suggest_int(self, name: str, low: int, high: int, *, log: bool = False) -> int: ...
    def suggest_float(self, name: str, low: float, high: float, *, log: bool = False) -> float: ...


@dataclass(frozen=True)
class Space:
    """The choices of a study.

    `start` (from scratch, or from a model file), `model`, `channels`, `layers`, `dropout` and `encodings` (of
    `standard`) exist only from scratch: a trained model keeps its architecture. `lr`, `batch_molecules` and `epochs`
    always do. Numbers lie around the defaults.

    Attributes:
        base: settings of all trials, but for what is chosen; with a number of epochs.
        rows: of training.
        starts: `scratch`, `foundation` or a model file; the first is the default.
        models: names of architectures; the first is the default.
        chosen: settings that are not varied because the user gave them.
    """

    base: TrainSettings
    rows: int
    starts: tuple[str, ...] = (SCRATCH,)
    models: tuple[str, ...] = ("standard",)
    chosen: frozenset[str] = frozenset()

    @property
    def choices(self) -> dict[str, Choice]:
        """By name, in the order in which they are drawn; those of the architecture are for a start from scratch."""
        epochs, batch = self.base.epochs, self.base.molecules_per_batch(self.rows)
        every = {
            "start": Choice(self.starts),
            "model": Choice(self.models),
            "channels": Choice(tuple(sorted({32, 64, 96, 128, default_width(self.rows)}))),
            "layers": Choice(low=2, high=6),
            "dropout": Choice(low=0.0, high=0.3),
            "encodings": Choice(ENCODINGS),
            "lr": Choice(low=self.base.lr / 5, high=self.base.lr * 4, log=True),
            "batch_molecules": Choice(tuple(sorted({max(4, batch // 2), batch, batch * 2}))),
            "epochs": Choice(tuple(sorted({max(1, epochs // 2), epochs, epochs * 2}))),
        }
        return {name: choice for name, choice in every.items() if name not in self._settled(every)}

    def defaults_of(self, start: str) -> dict[str, Any]:
        """The choices that stand for what `gtx train` does from this start without being told."""
        usual = {
            "start": start,
            "model": self.models[0],
            "channels": default_width(self.rows),
            "layers": 4,
            "dropout": 0.1,
            "encodings": ENCODINGS[0],
            "lr": self.base.lr,
            "batch_molecules": self.base.molecules_per_batch(self.rows),
            "epochs": self.base.epochs,
        }
        return {name: usual[name] for name in self.choices if self._applies(name, usual)}

    def drawn(self, trial: Suggests) -> dict[str, Any]:
        """What a trial takes of each choice that applies to it."""
        taken: dict[str, Any] = {}
        for name, choice in self.choices.items():
            if self._applies(name, taken):
                taken[name] = choice.drawn(name, trial)
        return taken

    def settings(self, taken: Mapping[str, Any]) -> tuple[TrainSettings, str | None]:
        """The settings of training, and the model file to start from, that choices stand for."""
        options = self.options(taken)
        start = options.pop("from", None)
        return replace(self.base, **options), start

    def options(self, taken: Mapping[str, Any]) -> dict[str, Any]:
        """What choices are as options of `gtx train`."""
        start = taken.get("start", self.starts[0])
        options = {name: taken[name] for name in ("lr", "batch_molecules", "epochs") if name in taken}
        if start != SCRATCH:
            return {"from": start, **options}
        arguments = {name: taken[name] for name in ARCHITECTURE if name in taken}
        if "encodings" in arguments:
            arguments["encodings"] = arguments["encodings"].split()
        model = taken.get("model", self.models[0])
        return {"model": model, "model_arguments": {**self.base.model_arguments, **arguments}, **options}

    def _settled(self, every: Mapping[str, Choice]) -> set[str]:
        """Names of what leaves no choice."""
        single = {name for name, choice in every.items() if choice.values is not None and len(choice.values) == 1}
        return single | self.chosen | set(self.base.model_arguments)

    def _applies(self, name: str, taken: Mapping[str, Any]) -> bool:
        if name not in ("model", *ARCHITECTURE):
            return True
        if taken.get("start", self.starts[0]) != SCRATCH:
            return False
        return name != "encodings" or taken.get("model", self.models[0]) == "standard"
