"""Trials of a study: the search space, the studies of Optuna, the training of one trial."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from gtx.base.errors import InputError, printable
from gtx.training import TrainSettings
from gtx.training.optimise import validation_scorer
from gtx.workflow.run import Run
from gtx.workflow.specs import default_width

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FixedTrial, FrozenTrial, Trial


# --- The search space: choices, their defaults, and the settings that follow from them.

SCRATCH = "scratch"
ARCHITECTURE = ("channels", "layers", "dropout", "encodings")
"""Names of the choices that are arguments of the model."""
ENCODINGS = ("bonds path walk degree", "bonds path walk degree ring", "bonds path degree", "bonds walk degree", "bonds")


@dataclass(frozen=True)
class Space:
    """Search space of a study.

    `model`, `channels`, `layers`, `dropout` and `encodings` (of `standard`) are varied only from scratch, as a trained
    model keeps its architecture; `start`, `lr`, `batch_molecules` and `epochs` always. Ranges lie around the defaults.

    Attributes:
        base: settings that all trials share; with a number of epochs.
        rows: number of training rows.
        starts: `scratch`, `foundation` or a model file; the first is the default.
        models: names of architectures; the first is the default.
        chosen: names of settings that the user has fixed.
    """

    base: TrainSettings
    rows: int
    starts: tuple[str, ...] = (SCRATCH,)
    models: tuple[str, ...] = ("standard",)
    chosen: frozenset[str] = frozenset()

    def draw(self, trial: Trial | FixedTrial) -> dict[str, Any]:
        """Draw a value for each choice that applies to a trial, unless there is one value, or the user has fixed it."""
        fixed, values = self.chosen | set(self.base.model_arguments), {}
        epochs, batch, lr = self.base.epochs or 1, self.base.molecules_per_batch(self.rows), self.base.lr

        def choose(name: str, options: Iterable[Any]) -> Any:
            options = tuple(options)
            if len(options) > 1 and name not in fixed:
                values[name] = trial.suggest_categorical(name, options)
            return values.get(name, options[0])

        if choose("start", self.starts) == SCRATCH:
            model = choose("model", self.models)
            choose("channels", sorted({32, 64, 96, 128, default_width(self.rows)}))
            if "layers" not in fixed:
                values["layers"] = trial.suggest_int("layers", 2, 6)
            if "dropout" not in fixed:
                values["dropout"] = trial.suggest_float("dropout", 0.0, 0.3)
            if model == "standard":
                choose("encodings", ENCODINGS)
        if "lr" not in fixed:
            values["lr"] = trial.suggest_float("lr", lr / 5, lr * 4, log=True)
        choose("batch_molecules", sorted({max(4, batch // 2), batch, batch * 2}))
        choose("epochs", sorted({max(1, epochs // 2), epochs, epochs * 2}))
        return values

    def defaults_of(self, start: str) -> dict[str, Any]:
        """Return the choices that equal the defaults of `gtx train` from a start."""
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
        return self.draw(import_optuna().trial.FixedTrial(usual))

    def settings(self, values: Mapping[str, Any]) -> tuple[TrainSettings, str | None]:
        """Convert choices to the settings of a training and the model file to start from."""
        options = self.options(values)
        start = options.pop("from", None)
        return replace(self.base, **options), start

    def options(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Convert choices to options of `gtx train`."""
        start = values.get("start", self.starts[0])
        options = {name: values[name] for name in ("lr", "batch_molecules", "epochs") if name in values}
        if start != SCRATCH:
            return {"from": start, **options}
        arguments = {name: values[name] for name in ARCHITECTURE if name in values}
        if "encodings" in arguments:
            arguments["encodings"] = arguments["encodings"].split()
        model = values.get("model", self.models[0])
        return {"model": model, "model_arguments": {**self.base.model_arguments, **arguments}, **options}


# --- Studies of Optuna in a folder.

STORAGE = "study.db"
STAGES = 10
"""Number of stages of a training, at which trials with different numbers of epochs are compared."""
UNPRUNED_TRIALS, UNPRUNED_STAGES = 4, 4
"""Numbers of trials that are never pruned, for comparison, and of first stages at which no trial is pruned."""


def import_optuna() -> Any:
    """Import Optuna, without its messages; raise an `InputError` if it is not installed."""
    try:
        import optuna
    except ImportError:
        raise InputError("gtx tune needs Optuna: in the folder of gtx, pip install '.[tune]'") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def open_study(folder: Path, name: str) -> Study:
    """Open a study in the database of a folder, which several processes may do; it is made if necessary."""
    optuna, file = import_optuna(), folder / STORAGE
    pruner = optuna.pruners.MedianPruner(n_startup_trials=UNPRUNED_TRIALS, n_warmup_steps=UNPRUNED_STAGES)
    try:
        storage = optuna.storages.RDBStorage(f"sqlite:///{file}", engine_kwargs={"connect_args": {"timeout": 60}})
        return optuna.create_study(study_name=name, storage=storage, pruner=pruner, load_if_exists=True)
    except Exception as error:  # of SQLite, SQLAlchemy, Alembic or Optuna
        why = printable(f"{type(error).__name__}: {error}", 200)
        raise InputError(f"{file} cannot be read ({why}); --overwrite starts anew") from error


def trial_folder(out: Path, name: str, trial: Trial | FrozenTrial) -> Path:
    """Return the folder of a trial of a study; a repeated trial has that of the trial that was interrupted."""
    return out / "trials" / name / trial.user_attrs.get("folder", str(trial.number))


def ended(study: Study) -> list[FrozenTrial]:
    """List the trials that came to an end, good or bad; an interrupted trial did not."""
    trials = study.get_trials(deepcopy=False)
    return [one for one in trials if one.state.name in ("COMPLETE", "PRUNED") or "error" in one.user_attrs]


def best_trial(study: Study) -> FrozenTrial | None:
    """Return the complete trial with the lowest score, the earliest of equals; None if there is none."""
    complete = [one for one in ended(study) if one.state.name == "COMPLETE"]
    return min(complete, key=lambda one: (one.value, one.number), default=None)


def repeat_interrupted(study: Study) -> None:
    """Put trials whose process was interrupted or killed into the queue again, with their choices and their folder.

    No other process may be at a trial.
    """
    from optuna.trial import TrialState

    trials = study.get_trials(deepcopy=False)
    last = {one.user_attrs.get("folder", str(one.number)): one for one in trials}  # in each folder
    for folder, trial in last.items():
        if trial.state == TrialState.RUNNING:
            study.tell(trial.number, state=TrialState.FAIL)
        if trial.state in (TrialState.RUNNING, TrialState.FAIL) and "error" not in trial.user_attrs:
            study.enqueue_trial(trial.params, user_attrs={**trial.user_attrs, "folder": folder})


# --- One trial of a study: a training as of `gtx train`, pruned if it is bad, scored by its validation rows.


class Pruning:
    """Report of the best validation score at each stage of a training, and the end of a bad trial, if enabled."""

    def __init__(self, trial: Trial, epochs: int, enabled: bool) -> None:
        self.trial = trial
        self.epochs = epochs
        self.enabled = enabled
        self.stage: int = 0

    def __call__(self, member: int, rows: Sequence[dict[str, float]]) -> None:
        """Report new stages, see `gtx.training.logging.Watch`."""
        if member > 0:
            return
        best, before = math.inf, self.stage
        for row in rows:
            best = min(best, row["val_score"])  # NaN is never smaller
            stage = STAGES * int(row["epoch"]) // self.epochs
            for each in range(self.stage + 1, stage + 1):
                self.trial.report(best, each)
            self.stage = max(self.stage, stage)
        if self.stage > before and self.enabled and self.trial.should_prune():
            from optuna import TrialPruned

            raise TrialPruned


def validation_score(run: Run, pruning: Pruning) -> float:
    """Train, and score the predictions of network and kernel for validation rows; lower is better."""
    blended, rows = run.blend(*run.fit(pruning)), run.molecules.split["val"]
    scorer = validation_scorer(run.task, run.molecules.store.subset(rows), run.settings.keep_by)
    return scorer(blended.outputs[torch.from_numpy(rows)].mean(1))["val_score"]


def run_trial(trial: Trial, space: Space, load: Callable[..., Run], folder: Path) -> float:
    """Run a trial, the objective of a study, and return the validation score; an error is an attribute of the trial.

    The settings are drawn from the space; `load` loads their run in the folder, with a `start`.
    """
    from optuna import TrialPruned

    settings, start = space.settings(space.draw(trial))
    try:
        with load(replace(settings, progress=False), folder, start=start) as run:
            prunable = not trial.user_attrs.get("default")
            score = validation_score(run, Pruning(trial, run.settings.epochs or 1, prunable))
        if not math.isfinite(score):
            raise InputError(f"the validation score is {score}")
    except TrialPruned:
        raise
    except Exception as error:
        name = "" if isinstance(error, InputError) else f"{type(error).__name__}: "
        trial.set_user_attr("error", f"{name}{error}")
        raise
    return score
