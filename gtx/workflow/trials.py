"""Trials of a study: the search space, the record of trials, the training of one."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import torch
from filelock import FileLock

from gtx.base.errors import InputError, printable
from gtx.base.files import locked
from gtx.data import MoleculeStore
from gtx.tasks.task import check_task_capability
from gtx.training import TrainSettings
from gtx.training.module import spread_seed
from gtx.training.optimise import validation_scorer
from gtx.training_data import Dataset, DataSettings, load_training_table
from gtx.workflow.outputs import data_lines
from gtx.workflow.run import Run
from gtx.workflow.specs import default_width

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial, Trial


# --- The search space: choices, their defaults, and the settings that follow from them.

SCRATCH = "scratch"
ARCHITECTURE = ("channels", "layers", "dropout", "encodings")
"""Names of the choices that are arguments of the model."""
ENCODINGS = ("bonds path walk degree", "bonds path walk degree ring", "bonds path degree", "bonds walk degree", "bonds")


class Choice(NamedTuple):
    """Values that one setting can take: one of several, or a number in a range.

    Attributes:
        values: the values; None for a range.
        low, high: ends of the range; integers for an integer.
        log: True to draw on a logarithmic scale.
    """

    values: tuple[Any, ...] | None = None
    low: float = 0
    high: float = 0
    log: bool = False

    def draw(self, name: str, trial: Suggests) -> Any:
        """Draw a value with a trial of Optuna."""
        if self.values is not None:
            return trial.suggest_categorical(name, self.values)
        if isinstance(self.low, int) and isinstance(self.high, int):
            return trial.suggest_int(name, self.low, self.high, log=self.log)
        return trial.suggest_float(name, self.low, self.high, log=self.log)


class Suggests(Protocol):
    """Methods of `optuna.Trial` that are used here."""

    def suggest_categorical(self, name: str, choices: tuple[Any, ...]) -> Any: ...
    def suggest_int(self, name: str, low: int, high: int, *, log: bool = False) -> int: ...
    def suggest_float(self, name: str, low: float, high: float, *, log: bool = False) -> float: ...


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

    @property
    def choices(self) -> dict[str, Choice]:
        """Choices by name, in the order in which they are drawn."""
        epochs, batch = self.base.epochs or 1, self.base.molecules_per_batch(self.rows)
        choices = {
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
        return {name: choice for name, choice in choices.items() if name not in self._fixed(choices)}

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
        return {name: usual[name] for name in self.choices if self._applies(name, usual)}

    def draw(self, trial: Suggests) -> dict[str, Any]:
        """Draw a value for each choice that applies to a trial."""
        values: dict[str, Any] = {}
        for name, choice in self.choices.items():
            if self._applies(name, values):
                values[name] = choice.draw(name, trial)
        return values

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

    def _fixed(self, choices: Mapping[str, Choice]) -> set[str]:
        """Return the names of choices with a single value, and of those that the user has fixed."""
        single = {name for name, choice in choices.items() if choice.values is not None and len(choice.values) == 1}
        return single | self.chosen | set(self.base.model_arguments)

    def _applies(self, name: str, values: Mapping[str, Any]) -> bool:
        if name not in ("model", *ARCHITECTURE):
            return True
        if values.get("start", self.starts[0]) != SCRATCH:
            return False
        return name != "encodings" or values.get("model", self.models[0]) == "standard"


# --- Studies of Optuna in a folder: complete, running and next trials.

JOURNAL = "journal.log"
STAGES = 10
"""Number of stages of a training, at which trials with different numbers of epochs are compared."""
UNPRUNED_TRIALS, UNPRUNED_STAGES = 4, 4
"""Numbers of trials that are never pruned, for comparison, and of first stages at which no trial is pruned."""


@dataclass(frozen=True)
class Tried:
    """Record of a trial.

    Attributes:
        study: name of the study.
        number: number in the study.
        state: "complete", "pruned", "failed", "interrupted", "running" or "waiting".
        choices: values of the choices, see `Space.draw`.
        score: validation score, lower is better; of a pruned trial the best until then.
        seconds: duration; None before the end.
        default: True if the choices are the defaults.
        error: reason of a failure.
        folder: folder of the training.
    """

    study: str
    number: int
    state: str
    choices: dict[str, Any]
    score: float | None
    seconds: float | None
    default: bool
    error: str | None
    folder: Path


@dataclass(frozen=True)
class Job:
    """Trial to be run: the trial of Optuna, the chosen settings, and the locked folder of the trial."""

    study: str
    trial: Trial
    choices: dict[str, Any]
    folder: Path
    default: bool


class Studies:
    """Studies in a folder, which several processes may share.

    A trial whose process was killed resumes: it starts again with the same choices in the same folder.

    Args:
        folder: folder with a journal of Optuna's.
        names: names of the studies.
        space: function from the name of a study to its search space, called when a trial starts.
        seed: seed of the sampler, which with the number of earlier trials determines the choices of a trial.

    Raises:
        InputError: Optuna is not installed, or the journal cannot be read.
    """

    def __init__(self, folder: Path, names: Sequence[str], space: Callable[[str], Space], seed: int) -> None:
        self.folder = folder
        self.space = space
        self.seed = seed
        self.optuna: Any = optuna()
        from optuna.storages.journal import JournalFileBackend, JournalFileSymlinkLock

        folder.mkdir(parents=True, exist_ok=True)
        self.lock: FileLock = FileLock(folder / "study.lock")
        journal = str(folder / JOURNAL)
        writing = JournalFileSymlinkLock(journal)
        try:
            with self.lock:
                writing.acquire()
                try:
                    file = folder / JOURNAL
                    if file.exists():  # a killed process or a full disk may have left half a line at its end
                        os.truncate(file, file.read_bytes().rfind(b"\n") + 1)
                finally:
                    writing.release()
                storage = self.optuna.storages.JournalStorage(JournalFileBackend(journal, writing))
                self.studies: dict[str, Study] = {name: self._study(name, storage) for name in names}
        except (ValueError, LookupError, TypeError, AttributeError, AssertionError) as error:
            why = printable(f"{type(error).__name__}: {error}")
            raise InputError(f"{folder / JOURNAL} cannot be read ({why}); --overwrite starts anew") from error

    def _study(self, name: str, storage: Any) -> Study:
        pruner = self.optuna.pruners.MedianPruner(n_startup_trials=UNPRUNED_TRIALS, n_warmup_steps=UNPRUNED_STAGES)
        return self.optuna.create_study(study_name=name, storage=storage, pruner=pruner, load_if_exists=True)

    @contextmanager
    def begin(self, trials: int, hours: float | None) -> Iterator[Job | None]:
        """Start the next trial, of the study with fewest; None after `trials` of each, or `hours` in all."""
        with ExitStack() as stack:
            with self.lock:
                job = self._next(trials, hours)
                if job is not None:
                    stack.enter_context(locked(job.folder))
            yield job

    def tried(self, name: str | None = None) -> list[Tried]:
        """List the trials of a study, or of all."""
        names = self.studies if name is None else [name]
        return [self._tried(each, frozen) for each in names for frozen in self._trials(each)]

    def finished(self, name: str) -> list[Tried]:
        """Return the completed trials, good or bad."""
        return [tried for tried in self.tried(name) if tried.state in ("complete", "pruned", "failed")]

    def running(self) -> int:
        """Count the trials that other processes are running."""
        with self.lock:
            self._requeue()
        return sum(tried.state == "running" for tried in self.tried())

    def best(self, name: str) -> Tried | None:
        """Return the complete trial with the lowest score, the earliest of equals; None if there is none."""
        scores = [(t.score, t.number, t) for t in self.tried(name) if t.state == "complete" and t.score is not None]
        return min(scores)[2] if scores else None

    def importances(self, name: str) -> dict[str, float]:
        """Compute the importance of each choice by PED-ANOVA (Watanabe et al. 2023, arXiv:2304.10255).

        It is empty if too few trials are complete.
        """
        complete = [tried for tried in self.tried(name) if tried.state == "complete"]
        if len(complete) <= UNPRUNED_TRIALS:
            return {}
        return self.optuna.importance.get_param_importances(self.studies[name])

    def _next(self, trials: int, hours: float | None) -> Job | None:
        self._requeue()
        counts = {name: self._count(name) for name in self.studies}
        name = min(counts, key=counts.__getitem__)
        spent = sum(tried.seconds or 0 for tried in self.tried())
        if counts[name] >= trials or (hours is not None and spent >= 3600 * hours):
            return None
        return self._ask(name, counts[name])

    def _ask(self, name: str, count: int) -> Job:
        study, space = self.studies[name], self.space(name)
        if not self._trials(name):
            for number, start in enumerate(space.starts):
                study.enqueue_trial(space.defaults_of(start), user_attrs={"default": number == 0})
        index = list(self.studies).index(name)
        study.sampler = self.optuna.samplers.TPESampler(seed=spread_seed(self.seed, index, count))
        trial = study.ask()
        choices = space.draw(trial)
        return Job(name, trial, choices, self._folder(name, trial), bool(trial.user_attrs.get("default")))

    def _requeue(self) -> None:
        """Put trials whose process has ended back into the queue."""
        for name, study in self.studies.items():
            for frozen in self._trials(name):
                if frozen.state.name != "RUNNING" or not _free(self._folder(name, frozen)):
                    continue
                study.tell(frozen.number, state=self.optuna.trial.TrialState.FAIL)
                if "error" not in frozen.user_attrs:
                    attributes = {"folder": str(frozen.number), **frozen.user_attrs}
                    study.enqueue_trial(frozen.params, user_attrs=attributes)

    def _count(self, name: str) -> int:
        return sum(tried.state not in ("interrupted", "waiting") for tried in self.tried(name))

    def _trials(self, name: str) -> list[FrozenTrial]:
        return self.studies[name].get_trials(deepcopy=False)

    def _folder(self, name: str, trial: Trial | FrozenTrial) -> Path:
        return self.folder / "trials" / name / trial.user_attrs.get("folder", str(trial.number))

    def _tried(self, name: str, frozen: FrozenTrial) -> Tried:
        attributes, state = frozen.user_attrs, frozen.state.name.lower()
        if state == "fail":
            state = "failed" if "error" in attributes else "interrupted"
        return Tried(
            study=name,
            number=frozen.number,
            state=state,
            choices=frozen.params,
            score=frozen.value if state in ("complete", "pruned") else None,
            seconds=attributes.get("seconds"),
            default=bool(attributes.get("default")),
            error=attributes.get("error"),
            folder=self._folder(name, frozen),
        )


def optuna() -> Any:
    """Import Optuna, without its messages.

    Raises:
        InputError: it is not installed.
    """
    try:
        import optuna
    except ImportError:
        raise InputError("gtx tune needs Optuna: in the folder of gtx, pip install '.[tune]'") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def _free(folder: Path) -> bool:
    """Return True if no process trains in a folder."""
    try:
        with locked(folder):
            return True
    except InputError:
        return False


# --- One trial of a study: a training as of `gtx train`, pruned if it is bad, scored by its validation rows.


@dataclass
class Rows:
    """Training and validation rows of a study, without its test rows.

    Attributes:
        data: settings of the table and its split; the test part is scored once, at the end.
        cache: folder of featurised molecules.
        lines: notes about the table, its test rows included.
    """

    data: DataSettings
    cache: Path
    lines: list[str] = field(default_factory=list)
    _read: dict[str, Dataset] = field(default_factory=dict)

    def dataset(self, data: DataSettings) -> Dataset:
        """Load the rows for trials, with the split of `self.data` and the featuriser of `data`; each is cached.

        Raises:
            InputError: the table cannot be used, there are no validation rows, or the task is not of numbers or
                classes.
        """
        inputs = str((data.featuriser.to_dict(), data.features))
        if inputs not in self._read:
            whole = load_training_table(
                replace(self.data, featuriser=data.featuriser, features=data.features), cache=self.cache
            )
            check_task_capability(whole.task, "tune")
            if not len(whole.split["val"]):
                raise InputError("no rows validate, and a trial is scored by these: call some rows val, or give --val")
            self.lines = data_lines(whole)
            self._read[inputs] = whole.without_test()
        return self._read[inputs]

    def run(self, settings: TrainSettings, start: str | None, folder: Path) -> Run:
        """Make the run of a trial on the training rows."""
        return Run.load(self.data, settings, self.dataset, folder, start=start)


class Pruning:
    """Report of the best validation score at each stage of a training, and the end of a bad trial.

    Args:
        trial: trial of Optuna.
        epochs: epochs of the training.
        enabled: False for a trial that is never pruned.
    """

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
    members, header = run.fit(pruning)
    blended, rows = run.blend(members, header), run.molecules.split["val"]
    val: MoleculeStore = run.molecules.store.subset(rows)
    outputs = blended.outputs[torch.from_numpy(rows)].mean(1)
    return validation_scorer(run.task, val, run.settings.keep_by)(outputs)["val_score"]


def run_trial(studies: Studies, job: Job, space: Space, rows: Rows) -> None:
    """Run a trial and record its result; after an error, which is recorded too, the study continues."""
    from optuna import TrialPruned
    from optuna.trial import TrialState

    study, begin = studies.studies[job.study], time.perf_counter()
    settings, start = space.settings(job.choices)
    value, state = None, TrialState.COMPLETE
    try:
        run = rows.run(replace(settings, progress=False), start, job.folder)
        value = validation_score(run, Pruning(job.trial, run.settings.epochs or 1, not job.default))
        if not math.isfinite(value):
            raise InputError(f"the validation score is {value}")
    except TrialPruned:
        state = TrialState.PRUNED
    except Exception as error:
        value, state = None, TrialState.FAIL
        name = "" if isinstance(error, InputError) else f"{type(error).__name__}: "
        job.trial.set_user_attr("error", f"{name}{error}")
    job.trial.set_user_attr("seconds", time.perf_counter() - begin)
    study.tell(job.trial, value, state)
