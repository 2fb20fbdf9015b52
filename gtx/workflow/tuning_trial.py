"""One trial of a study: a training as `gtx train` does it, watched, and scored by its validation rows."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import torch

from gtx.data import MoleculeStore
from gtx.dataset import Dataset, DataSettings, load
from gtx.errors import InputError
from gtx.tasks import NumberTask
from gtx.training import TrainSettings
from gtx.training.selection import selecting
from gtx.workflow.outputs import data_lines
from gtx.workflow.plan import Plan, opened
from gtx.workflow.tuning_space import Space
from gtx.workflow.tuning_study import STEPS, Job, Studies

if TYPE_CHECKING:
    from pathlib import Path

    from optuna import Trial


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
        """What trials may see, read as `data` says, though divided as `self.data` does; once for each way to read.

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
        data, settings, further = opened(self.data, settings, start)
        return Plan.make(self.dataset(data), data, settings, further)


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
        """See `gtx.training.watching.Watch`."""
        if member > 0:
            return
        best, before = math.inf, self.stage
        for row in rows:
            best = min(best, row["val_score"])  # NaN never is the smaller one
            stage = STEPS * (int(row["epoch"]) + 1) // self.epochs
            for each in range(self.stage + 1, stage + 1):
                self.trial.report(best, each)
            self.stage = max(self.stage, stage)
        if self.stage > before and not self.spared and self.trial.should_prune():
            from optuna import TrialPruned

            raise TrialPruned


def validation_score(plan: Plan, folder: Path, pruning: Pruning) -> float:
    """Train, and score the prediction for validation rows, the kernel's share included; lower is better."""
    members, header = plan.fit(folder, pruning)
    both, rows = plan.mixed(members, header), plan.dataset.split["val"]
    val: MoleculeStore = plan.dataset.store.subset(rows)
    outputs = both.outputs[torch.from_numpy(rows)].mean(1)
    return selecting(plan.task, val, plan.settings.keep_by)(outputs)["val_score"]


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
