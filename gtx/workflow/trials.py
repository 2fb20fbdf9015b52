"""Trials: the space of settings, the study that remembers them, the training of one."""

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

from gtx.data import MoleculeStore
from gtx.dataset import Dataset, DataSettings, load
from gtx.errors import InputError, printable
from gtx.files import locked
from gtx.tasks import NumberTask
from gtx.training import TrainSettings
from gtx.training.module import spread_seed
from gtx.training.optimise import validation_scorer
from gtx.workflow.outputs import data_lines
from gtx.workflow.plan import Plan, opened
from gtx.workflow.specs import default_width

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial, Trial


# --- What a study varies: the choices, the defaults among them, and the settings that a choice stands for.

SCRATCH = "scratch"
ARCHITECTURE = ("channels", "layers", "dropout", "encodings")
"""Choices that are arguments of the model."""
ENCODINGS = ("bonds path walk degree", "bonds path walk degree ring", "bonds path degree", "bonds walk degree", "bonds")


class Choice(NamedTuple):
    """Values that one setting can take: one of several, or a number in a range.

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
        """Draw a value with a trial of Optuna."""
        if self.values is not None:
            return trial.suggest_categorical(name, self.values)
        suggest = trial.suggest_int if isinstance(self.low, int) else trial.suggest_float
        return suggest(name, self.low, self.high, log=self.log)


class Suggests(Protocol):
    """Subset of `optuna.Trial` that is used here."""

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
        """Draw a value for each choice that applies to a trial."""
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
        """Convert choices to options of `gtx train`."""
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


# --- Optuna's studies in a folder: what was tried, what is being tried in which process, and what is tried next.

JOURNAL = "journal.log"
STEPS = 10
"""Stages of a training at which it is compared with others; they have different numbers of epochs."""
FREE, EARLY = 4, 4
"""Trials that are never pruned, so that there is something to compare with, and stages before which none is."""


@dataclass(frozen=True)
class Tried:
    """A trial of a study.

    Attributes:
        study: its name.
        number: in the study.
        state: "complete", "pruned", "failed", "interrupted", "running" or "waiting".
        taken: the choices, as of `Space.drawn`.
        score: of validation, lower is better; of a pruned one, the best until then.
        seconds: that it took; None before its end.
        default: whether the choices are the defaults.
        error: why it failed.
        folder: where it was trained.
    """

    study: str
    number: int
    state: str
    taken: dict[str, Any]
    score: float | None
    seconds: float | None
    default: bool
    error: str | None
    folder: Path


@dataclass(frozen=True)
class Job:
    """A trial to be run: Optuna's, its choices, and the folder, which is locked."""

    study: str
    trial: Trial
    taken: dict[str, Any]
    folder: Path
    default: bool


class Studies:
    """Studies in a folder, which several processes may share.

    A trial whose process was killed is begun anew with the same choices, in the folder where it was: training goes on.

    Args:
        folder: with a journal of Optuna's.
        names: of the studies.
        space: the space of a study, by its name; asked for only when a trial begins.
        seed: of the sampler; with the number of trials before it, it decides what a trial tries.

    Raises:
        InputError: Optuna is not installed, or the journal cannot be read.
    """

    def __init__(self, folder: Path, names: Sequence[str], space: Callable[[str], Space], seed: int) -> None:
        self.folder, self.space, self.seed = folder, space, seed
        self.optuna = optuna()
        from optuna.storages.journal import JournalFileBackend, JournalFileSymlinkLock

        folder.mkdir(parents=True, exist_ok=True)
        self.lock = FileLock(folder / "study.lock")
        journal = str(folder / JOURNAL)
        writing = JournalFileSymlinkLock(journal)
        try:
            with self.lock:
                writing.acquire()
                try:
                    _drop_torn_line(folder / JOURNAL)
                finally:
                    writing.release()
                storage = self.optuna.storages.JournalStorage(JournalFileBackend(journal, writing))
                self.studies = {name: self._study(name, storage) for name in names}
        except (ValueError, LookupError, TypeError, AttributeError, AssertionError) as error:
            why = printable(f"{type(error).__name__}: {error}")
            raise InputError(f"{folder / JOURNAL} cannot be read ({why}); --overwrite starts anew") from error

    def _study(self, name: str, storage: Any) -> Study:
        pruner = self.optuna.pruners.MedianPruner(n_startup_trials=FREE, n_warmup_steps=EARLY)
        return self.optuna.create_study(study_name=name, storage=storage, pruner=pruner, load_if_exists=True)

    @contextmanager
    def begin(self, trials: int, hours: float | None) -> Iterator[Job | None]:
        """The next trial, of the study that has had fewest; None where all have had `trials`, or `hours` are spent."""
        with ExitStack() as held:
            with self.lock:
                job = self._next(trials, hours)
                if job is not None:
                    held.enter_context(locked(job.folder))
            yield job

    def tried(self, name: str | None = None) -> list[Tried]:
        """The trials of a study, or of all."""
        names = self.studies if name is None else [name]
        return [self._tried(each, frozen) for each in names for frozen in self._trials(each)]

    def finished(self, name: str) -> list[Tried]:
        """Return the completed trials, good or bad."""
        return [tried for tried in self.tried(name) if tried.state in ("complete", "pruned", "failed")]

    def running(self) -> int:
        """Count the trials that other processes are running."""
        with self.lock:
            self._reap()
        return sum(tried.state == "running" for tried in self.tried())

    def best(self, name: str) -> Tried | None:
        """That with the lowest score, the earliest of equals."""
        return min((t for t in self.tried(name) if t.state == "complete"), key=lambda t: t.score, default=None)

    def importances(self, name: str) -> dict[str, float]:
        """The share of each choice in what made trials good, by PED-ANOVA (Watanabe et al. 2023, arXiv:2304.10255);
        empty where too few trials have come to their end."""
        complete = [tried for tried in self.tried(name) if tried.state == "complete"]
        if len(complete) <= FREE:
            return {}
        return self.optuna.importance.get_param_importances(self.studies[name])

    def _next(self, trials: int, hours: float | None) -> Job | None:
        self._reap()
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
        place = list(self.studies).index(name)
        study.sampler = self.optuna.samplers.TPESampler(seed=spread_seed(self.seed, place, count))
        trial = study.ask()
        taken = space.drawn(trial)
        return Job(name, trial, taken, self._folder(name, trial), bool(trial.user_attrs.get("default")))

    def _reap(self) -> None:
        """Have trials whose process has ended begun anew."""
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
        told, state = frozen.user_attrs, frozen.state.name.lower()
        if state == "fail":
            state = "failed" if "error" in told else "interrupted"
        score = frozen.value if state in ("complete", "pruned") else None
        more = {"default": bool(told.get("default")), "error": told.get("error")}
        folder = self._folder(name, frozen)
        return Tried(name, frozen.number, state, frozen.params, score, told.get("seconds"), folder=folder, **more)


def _drop_torn_line(journal: Path) -> None:
    """Cut off what a process that was killed, or a full disk, has left of a last line: what it said never was."""
    if journal.exists():
        content = journal.read_bytes()
        if torn := len(content) - content.rfind(b"\n") - 1:
            os.truncate(journal, len(content) - torn)


def optuna() -> Any:
    """The library, which says nothing of its own.

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
    """Tell whether no process trains in a folder."""
    try:
        with locked(folder):
            return True
    except InputError:
        return False


# --- One trial of a study: a training as `gtx train` does it, watched, and scored by its validation rows.


@dataclass
class Rows:
    """The rows by which one study chooses: those that train and validate. Its test rows are not among them.

    Attributes:
        data: the table and its division; the test part is for the one score at the end.
        cache: folder of featurised molecules.
        lines: what there is to say of the table that was read last, its test rows included.
    """

    data: DataSettings
    cache: Path
    lines: list[str] = field(default_factory=list)
    _read: dict[str, Dataset] = field(default_factory=dict)

    def dataset(self, data: DataSettings) -> Dataset:
        """Load the rows that trials may see, read by `data`, divided by `self.data`; cached for each way of reading.

        Raises:
            InputError: the table cannot be used, no row validates, or the task is not of numbers or classes.
        """
        way = str((data.featuriser.to_dict(), data.features))
        if way not in self._read:
            whole = load(replace(self.data, featuriser=data.featuriser, features=data.features), cache=self.cache)
            if not isinstance(whole.task, NumberTask):
                raise InputError(f"gtx tune is for numbers and classes, not for the task {whole.task.name}")
            if not len(whole.split["val"]):
                raise InputError("no rows validate, and a trial is scored by these: call some rows val, or give --val")
            self.lines = data_lines(whole)
            self._read[way] = whole.without_test()
        return self._read[way]

    def plan(self, settings: TrainSettings, start: str | None) -> Plan:
        """A training that learns from the training rows."""
        data, settings, fine_tuning = opened(self.data, settings, start)
        return Plan.make(self.dataset(data), data, settings, fine_tuning)


class Pruning:
    """Tells Optuna the best validation score at each stage of a training, and ends the training of a bad trial.

    Args:
        trial: Optuna's.
        epochs: of the training.
        spared: whether it goes on however bad it is.
    """

    def __init__(self, trial: Trial, epochs: int, spared: bool) -> None:
        self.trial, self.epochs, self.spared, self.stage = trial, epochs, spared, 0

    def __call__(self, member: int, rows: Sequence[dict[str, float]]) -> None:
        """See `gtx.training.logging.Watch`."""
        if member > 0:
            return
        best, before = math.inf, self.stage
        for row in rows:
            best = min(best, row["val_score"])  # NaN never is the smaller one
            stage = STEPS * int(row["epoch"]) // self.epochs
            for each in range(self.stage + 1, stage + 1):
                self.trial.report(best, each)
            self.stage = max(self.stage, stage)
        if self.stage > before and not self.spared and self.trial.should_prune():
            from optuna import TrialPruned

            raise TrialPruned


def validation_score(plan: Plan, folder: Path, pruning: Pruning) -> float:
    """Train, and score the prediction for validation rows, the kernel's share included; lower is better."""
    members, header = plan.fit(folder, pruning)
    both, rows = plan.blend(members, header), plan.molecules.split["val"]
    val: MoleculeStore = plan.molecules.store.subset(rows)
    outputs = both.outputs[torch.from_numpy(rows)].mean(1)
    return validation_scorer(plan.task, val, plan.settings.keep_by)(outputs)["val_score"]


def run_trial(studies: Studies, job: Job, space: Space, rows: Rows) -> None:
    """Run a trial and note what became of it; an error is noted too, and the study goes on."""
    from optuna import TrialPruned
    from optuna.trial import TrialState

    study, begun = studies.studies[job.study], time.perf_counter()
    settings, start = space.settings(job.taken)
    value, state = None, TrialState.COMPLETE
    try:
        plan = rows.plan(replace(settings, progress=False), start)
        value = validation_score(plan, job.folder, Pruning(job.trial, plan.settings.epochs, job.default))
        if not math.isfinite(value):
            raise InputError(f"the validation score is {value}")
    except TrialPruned:
        state = TrialState.PRUNED
    except Exception as error:
        value, state = None, TrialState.FAIL
        kind = "" if isinstance(error, InputError) else f"{type(error).__name__}: "
        job.trial.set_user_attr("error", f"{kind}{error}")
    job.trial.set_user_attr("seconds", time.perf_counter() - begun)
    study.tell(job.trial, value, state)
