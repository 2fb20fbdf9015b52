"""Tuning: the search over trials, and its files."""

from __future__ import annotations

import json
import shutil
import signal
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import torch
import yaml

from gtx.base.errors import InputError
from gtx.base.files import LOCK, check_same, claim, discard, locked, read_plain, tidy, whole_file, write_text
from gtx.data.featurising import open_process_pool
from gtx.prediction.foundation import FOUNDATION_MODEL
from gtx.tasks.task import check_task_capability
from gtx.training import TrainSettings
from gtx.training.module import spread_seed
from gtx.training.optimise import check_selection
from gtx.training.run import torch_threads
from gtx.training_data import DataSettings
from gtx.training_data.settings import collect_data_config
from gtx.workflow.fine_tuning import prepare
from gtx.workflow.run import train_model
from gtx.workflow.trials import (
    SCRATCH,
    STORAGE,
    UNPRUNED_TRIALS,
    Rows,
    Space,
    best_trial,
    ended,
    import_optuna,
    open_study,
    repeat_interrupted,
    run_trial,
    trial_folder,
)

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial, Trial

Tell = Callable[[str, "FrozenTrial", "FrozenTrial | None"], None]

MAIN, CONFIG, BEST, RECORD, DESCRIPTION = "main", "best.yaml", "best", "tuning.json", "study.yaml"
FILES = ("trials", BEST, "cache", STORAGE, RECORD, CONFIG, DESCRIPTION, "trials.csv", "importance.png")
"""Names of the files that a study writes to its folder."""
MODELS = ("standard", "gps")
"""Architectures of a study by default."""


@dataclass(frozen=True)
class Tuned:
    """Outcome of a study.

    Attributes:
        out: folder of the study.
        trials: trials that came to an end, by the name of their study.
        best: trial with the best validation score.
        scores: by study `{"tuned": ..., "default": ..., "default from foundation": ...}`, each with the parts "val" and
            "test" of `metrics.json`; the test scores are not used for any choice.
        was_finished: True if the study was finished before.
        notes: further notes, a line each.
    """

    out: Path
    trials: Mapping[str, Sequence[FrozenTrial]]
    best: FrozenTrial
    scores: Mapping[str, Mapping[str, Any]]
    was_finished: bool = False
    notes: Sequence[str] = ()


def tune(
    data: DataSettings,
    settings: TrainSettings,
    out: str | Path,
    *,
    trials: int = 50,
    hours: float | None = None,
    test_folds: int | None = None,
    start: str | None = None,
    models: Sequence[str] | None = None,
    chosen: Sequence[str] = (),
    jobs: int = 1,
    options: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    tell: Tell = lambda name, trial, best: None,
    describe: Callable[[str], None] = lambda line: None,
) -> Tuned:
    """Search for settings that are better than the defaults; a second call resumes the study, or returns at once.

    Each trial is a training as by `gtx.workflow.train_model`, scored on the validation rows. The first trial has the
    default settings, and the second trial starts from the foundation model with default settings. TPE (Bergstra et al.
    2011) draws the settings of the other trials, and the median rule stops trials that are worse than half of the
    others at the same stage. Trials do not use the test rows. At the end, the model of the best trial and the default
    model are scored once on the test rows.

    With `test_folds`, there is an additional study for each fold, which uses the fold as test rows. The additional
    studies together estimate the score of tuning on all rows of the table.

    The studies are Optuna's, in the SQLite database `study.db`. The function also writes `best.yaml`, `best/` (a run
    folder), `trials.csv`, `tuning.json` and `importance.png`.

    Args:
        data: settings of the table, with columns, task and split.
        settings: settings that all trials share.
        out: folder of the study.
        trials: number of trials of each study, including earlier trials.
        hours: total time of all trials, after which no new trial is started.
        test_folds: number of nested studies; None for none.
        start: model file from which all trials start; by default, trials start from scratch or from the foundation
            model, if it suits the data.
        models: names of architectures; by default all architectures in `MODELS` that suit the molecules.
        chosen: names of settings that are not varied.
        jobs: number of processes that share the trials and the cores. With more than one, the choices of a trial
            depend on which trials have ended before it.
        options: further options of `gtx train` for `best.yaml`.
        overwrite: whether earlier results in `out` are replaced.
        tell: function that is called after each trial, with the name of its study, the trial, and the best one of the
            study, None if none is complete; with several `jobs`, one that can be pickled.
        describe: function that is called with each note about the data.

    Raises:
        InputError: Optuna is not installed, the input cannot be used, another process works in `out`, `out` holds a
            study of other settings or data, or no trial succeeded.
    """
    out = Path(out)
    import_optuna()
    _check(data, trials, hours, test_folds, jobs)
    if jobs > 1 and settings.threads is None:
        settings = replace(settings, threads=max(1, torch.get_num_threads() // jobs))
    starts = (start,) if start else _starts(data, settings)
    models = (settings.model,) if "model" in chosen or start else _models(data, settings, models)
    numbers = range(1, (test_folds or 0) + 1)
    studies_data = {MAIN: data} | {f"fold-{k}": replace(data, test_folds=test_folds, test_fold=k) for k in numbers}
    search = Search(out, studies_data, settings, starts, models, frozenset(chosen))

    config = collect_data_config(data) | {"targets": list(data.target_columns), "settings": settings.decisive()}
    config |= {"task": data.task and (data.task.config() if hasattr(data.task, "config") else dict(data.task.options))}
    config |= {"starts": list(starts), "models": list(models), "chosen": sorted(chosen)}
    with locked(out):
        claim(out, FILES)
        try:
            search.space(MAIN)  # with a table that cannot be used, nothing is started or deleted
        finally:
            tidy(out)
        claim(out, FILES)
        _describe(out, config, overwrite)
        for line in search.rows[MAIN].lines:
            describe(line)
        search.begin()
        shares: list[dict[str, int]] = [{} for _ in range(jobs)]
        for name, study in search.studies.items():
            missing = max(0, trials - len(ended(study)))
            for k, share in enumerate(shares):
                share[name] = missing // jobs + (1 if k < missing % jobs else 0)
        if jobs == 1:
            search.run(shares[0], hours, tell)
        else:
            with open_process_pool(jobs - 1) as pool:
                others = [pool.submit(_run_beside, replace(search), share, hours, tell) for share in shares[1:]]
                search.run(shares[0], hours, tell)
                for other in others:
                    other.result()
        return _results(search, options or {})


@dataclass(frozen=True)
class Search:
    """Studies of a folder, as each of its processes needs them.

    Attributes:
        out: the folder.
        data: settings of the table by the name of the study.
        settings, starts, models, chosen: see `Space`.
    """

    out: Path
    data: Mapping[str, DataSettings]
    settings: TrainSettings
    starts: tuple[str, ...]
    models: tuple[str, ...]
    chosen: frozenset[str]

    @cached_property
    def rows(self) -> dict[str, Rows]:
        """Rows by the name of the study."""
        return {name: Rows(each, self.out / "cache") for name, each in self.data.items()}

    @cached_property
    def studies(self) -> dict[str, Study]:
        """Studies by name."""
        return {name: open_study(self.out, name) for name in self.data}

    def space(self, name: str) -> Space:
        """Make the search space of a study."""
        prepared, _, _ = prepare(self.data[MAIN], self.settings, None if self.starts[0] == SCRATCH else self.starts[0])
        dataset = self.rows[name].dataset(prepared)
        check_selection(dataset.task, self.settings.keep_by, validated=True)
        base = self.settings.resolved(dataset.task.epochs)
        return Space(base, len(dataset.split["train"]), self.starts, self.models, self.chosen)

    def begin(self) -> None:
        """Put the defaults into the queue of each new study, and the interrupted trials into that of each other."""
        for name, study in self.studies.items():
            repeat_interrupted(study)
            if not study.get_trials(deepcopy=False):
                space = self.space(name)
                for number, start in enumerate(space.starts):
                    study.enqueue_trial(space.defaults_of(start), user_attrs={"default": number == 0})

    def run(self, share: Mapping[str, int], hours: float | None, tell: Tell) -> None:
        """Run a number of trials of each study in turns, none after so many hours of trials in all studies."""
        for i in range(max(share.values())):
            for name in (name for name, number in share.items() if i < number):
                times = [one.duration for study in self.studies.values() for one in ended(study) if one.duration]
                if hours is not None and sum(each.total_seconds() for each in times) >= 3600 * hours:
                    return
                self._run_one(name, tell)

    def _run_one(self, name: str, tell: Tell) -> None:
        study, space, rows = self.studies[name], self.space(name), self.rows[name]

        def objective(trial: Trial) -> float:
            earlier = [
                *ended(study),
                *study.get_trials(deepcopy=False, states=(import_optuna().trial.TrialState.RUNNING,)),
            ]
            place = sum(each.number < trial.number for each in earlier)  # no two jobs draw with the same seed
            seed = spread_seed(self.settings.seed, list(self.studies).index(name), place)
            study.sampler = import_optuna().samplers.TPESampler(seed=seed)
            return run_trial(trial, space.draw(trial), space, rows, trial_folder(self.out, name, trial))

        def callback(study: Study, trial: FrozenTrial) -> None:
            tell(name, trial, best_trial(study))

        study.optimize(objective, n_trials=1, callbacks=[callback], catch=(Exception,))


def _run_beside(search: Search, share: Mapping[str, int], hours: float | None, tell: Tell) -> None:
    """Run trials in a process of its own, which leaves Ctrl-C to the process that started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with torch_threads(search.settings.threads):
        search.run(share, hours, tell)


# --- The results of a study, and its files.


def _results(search: Search, options: Mapping[str, Any]) -> Tuned:
    """Score the best trials on test rows, and write all files; finished work is not repeated."""
    out, studies = search.out, search.studies
    trials = {name: ended(study) for name, study in studies.items()}
    best = {name: _best(name, study) for name, study in studies.items()}
    stamp = {name: [trial.number, len(trials[name])] for name, trial in best.items()}
    earlier = read_plain(out / RECORD)  # None if it is damaged
    if isinstance(earlier, dict) and earlier.get("stamp") == stamp and isinstance(earlier.get("scores"), dict):
        return Tuned(out, trials, best[MAIN], earlier["scores"], was_finished=True)
    scores: dict[str, dict[str, Any]] = {}
    for name, data in search.data.items():
        space = search.space(name)
        scores[name] = {}
        for title, trial in {"tuned": best[name], **_defaults(trials[name], space)}.items():
            report = name == MAIN and title == "tuned"
            settings, start = space.settings(trial.params)
            settings = replace(settings, progress=search.settings.progress)
            folder = trial_folder(out, name, trial)
            outcome = train_model(data, settings, folder, start=start, baselines=report, report=report)
            if outcome is not None:
                scores[name][title] = {part: outcome.metrics[part] for part in ("val", "test")}
    discard(out / BEST)
    excluded = shutil.ignore_patterns(LOCK, "cache")
    shutil.copytree(trial_folder(out, MAIN, best[MAIN]), out / BEST, ignore=excluded, dirs_exist_ok=True)
    write_best(out / CONFIG, best[MAIN], {**options, **search.space(MAIN).options(best[MAIN].params)}, out / BEST)
    write_trials(out / "trials.csv", studies)
    importances, notes = _importances(studies[MAIN], trials[MAIN])
    if importances:
        write_figure_of_trials(out / "importance.png", trials[MAIN], importances)
    record = {"stamp": stamp, "chosen": best[MAIN].params, "score": best[MAIN].value}
    record |= {"importances": importances, "scores": scores}
    write_text(out / RECORD, json.dumps(record, indent=2, allow_nan=False) + "\n")
    return Tuned(out, trials, best[MAIN], scores, notes=notes)


def _importances(study: Study, trials: Sequence[FrozenTrial]) -> tuple[dict[str, float], list[str]]:
    """Compute the importance of each choice by PED-ANOVA (Watanabe et al. 2023, arXiv:2304.10255), and a note on it."""
    if sum(trial.state.name == "COMPLETE" for trial in trials) <= UNPRUNED_TRIALS:
        return {}, ["no importance.png: too few trials were completed"]
    with warnings.catch_warnings(record=True) as doubts:
        warnings.simplefilter("always")
        importances = import_optuna().importance.get_param_importances(study)
    doubt = "importance.png: few trials were completed, so the importance of the settings is uncertain"
    return importances, [doubt] if doubts else []


def _defaults(trials: Sequence[FrozenTrial], space: Space) -> dict[str, FrozenTrial]:
    """Return the complete trials of the defaults, from each start."""
    complete = [trial for trial in trials if trial.state.name == "COMPLETE"]
    defaults = {"default": next((trial for trial in complete if trial.user_attrs.get("default")), None)}
    for start in space.starts[1:]:
        usual = space.defaults_of(start)
        defaults[f"default from {start}"] = next((trial for trial in complete if trial.params == usual), None)
    return {title: trial for title, trial in defaults.items() if trial is not None}


def _best(name: str, study: Study) -> FrozenTrial:
    best = best_trial(study)
    if best is None:
        errors = [trial.user_attrs["error"] for trial in ended(study) if "error" in trial.user_attrs]
        why = f"; the first error: {errors[0]}" if errors else ""
        raise InputError(f"none of {len(ended(study))} trials of study {name!r} came to its end{why}")
    return best


def write_best(path: Path, best: FrozenTrial, options: Mapping[str, Any], out: Path) -> None:
    """Write the best options as a file for `gtx train --config`, which trains in `out`."""
    head = f"# Trial {best.number} of gtx tune, validation score {best.value:.4g}.\n# gtx train --config {path}\n"
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in options.items()}
    write_text(path, head + yaml.safe_dump(plain | {"out": str(out)}, sort_keys=False, allow_unicode=True, width=120))


def write_trials(path: Path, studies: Mapping[str, Study]) -> None:
    """Write Optuna's table of trials, with the choices (`params_`), the validation score (`value`) and the error."""
    attributes = ("number", "state", "value", "duration", "params", "user_attrs")
    frames = {name: study.trials_dataframe(attrs=attributes) for name, study in studies.items()}
    with whole_file(path) as file:
        pd.concat(frames, names=["study", None]).reset_index("study").to_csv(file, index=False)


def write_figure_of_trials(path: Path, trials: Sequence[FrozenTrial], importances: Mapping[str, float]) -> None:
    """Plot the importance of each setting, and the scores by trial."""
    from gtx.report.comparison import tuning_figure, write_figure

    scores = [(one.number, one.value, one.state.name == "COMPLETE") for one in trials if one.value is not None]
    default = next((one.value for one in trials if one.user_attrs.get("default") and one.value is not None), None)
    write_figure(tuning_figure(importances, scores, default), path)


# --- Settings of a study.


def _check(data: DataSettings, trials: int, hours: float | None, test_folds: int | None, jobs: int) -> None:
    for name, value in (("trials", trials), ("jobs", jobs)):
        if value < 1:
            raise InputError(f"{name}: expected 1 or more, got {value}")
    if hours is not None and not hours > 0:
        raise InputError(f"hours: expected a value above 0, got {hours}")
    if test_folds is not None:
        replace(data, test_folds=test_folds)  # raises if it is out of range
    check_task_capability(data.task, "tune")


def _starts(data: DataSettings, settings: TrainSettings) -> tuple[str, ...]:
    """Return the default starts: from scratch, and from the foundation if the settings allow it."""
    try:
        prepare(data, settings, FOUNDATION_MODEL)
    except InputError:
        return (SCRATCH,)
    return SCRATCH, FOUNDATION_MODEL


def _models(data: DataSettings, settings: TrainSettings, requested: Sequence[str] | None) -> tuple[str, ...]:
    """Return the models requested, checked; by default those of `MODELS` that suit the data."""
    suited = []
    for model in requested or MODELS:
        try:
            prepare(data, replace(settings, model=model), None)
            suited.append(model)
        except InputError:
            if requested:
                raise
    return tuple(suited)


def _describe(out: Path, config: dict[str, Any], overwrite: bool) -> None:
    """Write what identifies a study, or compare it with what is written.

    Raises:
        InputError: the folder contains a study with another config.
    """
    file = out / DESCRIPTION
    if overwrite:
        discard(out / BEST)
        discard(out, FILES, keep=(BEST,))
    config = json.loads(json.dumps(config))
    if not file.exists():
        write_text(file, yaml.safe_dump(config, sort_keys=False, allow_unicode=True, width=120))
    else:
        check_same(read_plain(file), config, f"{out} holds a study")
