"""Optuna's studies in a folder: what was tried, what is being tried in which process, and what is tried next."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from gtx.errors import InputError
from gtx.training import locked
from gtx.training.module import spread_seed
from gtx.workflow.tuning_space import Space

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial, Trial

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
        from optuna.storages.journal import JournalFileBackend

        folder.mkdir(parents=True, exist_ok=True)
        self.lock = FileLock(folder / "study.lock")
        try:
            with self.lock:
                storage = self.optuna.storages.JournalStorage(JournalFileBackend(str(folder / JOURNAL)))
                self.studies = {name: self._study(name, storage) for name in names}
        except (ValueError, KeyError) as error:
            raise InputError(f"{folder / JOURNAL} cannot be read ({error}); --overwrite starts anew") from error

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
        """Those that came to an end, good or bad."""
        return [tried for tried in self.tried(name) if tried.state in ("complete", "pruned", "failed")]

    def running(self) -> int:
        """How many trials other processes are at."""
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
    """Whether no process trains in a folder."""
    try:
        with locked(folder):
            return True
    except InputError:
        return False
