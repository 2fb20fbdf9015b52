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
from typing import Any

import torch
import yaml

from gtx.base.errors import InputError
from gtx.base.files import LOCK, check_same, claim, discard, locked, read_plain, tidy, write_text
from gtx.data import TableWriter
from gtx.data.featurising import open_process_pool
from gtx.prediction.foundation import FOUNDATION_MODEL
from gtx.tasks.task import check_task_capability
from gtx.training import TrainSettings
from gtx.training.optimise import check_selection
from gtx.training.run import torch_threads
from gtx.training_data import DataSettings
from gtx.training_data.settings import collect_data_config
from gtx.workflow.pipeline import train_model
from gtx.workflow.run import prepare
from gtx.workflow.trials import JOURNAL, SCRATCH, Rows, Space, Studies, Tried, optuna, run_trial

# --- The files of a study.

CONFIG, RECORD = "best.yaml", "tuning.json"


def write_best(path: Path, best: Tried, options: Mapping[str, Any]) -> None:
    """Write the best options as a file for `gtx train --config`."""
    head = f"# Trial {best.number} of gtx tune, validation score {best.score:.4g}.\n# gtx train --config {path}\n"
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in options.items()}
    write_text(path, head + yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=120))


def write_trials(path: Path, tried: Sequence[Tried]) -> None:
    """Write a row for each trial, with its choices, its score and its error."""
    names = list(dict.fromkeys(name for each in tried for name in each.choices))
    with TableWriter(path, ["study", "trial", "state", "score", "seconds", *names, "error"]) as writer:
        for each in tried:
            seconds = None if each.seconds is None else round(each.seconds, 1)
            cells = [each.study, each.number, each.state, each.score, seconds, *map(each.choices.get, names)]
            writer.write(["" if cell is None else str(cell) for cell in [*cells, each.error]])


def write_figure_of_trials(path: Path, tried: Sequence[Tried], importances: Mapping[str, float]) -> None:
    """Plot the importance of each setting, and the scores by trial."""
    from gtx.report.comparison import write_figure
    from gtx.report.figures import tuning_figure

    scores = [(each.number, each.score, each.state == "complete") for each in tried if each.score is not None]
    default = next((each.score for each in tried if each.default and each.score is not None), None)
    write_figure(tuning_figure(importances, scores, default), path)


# --- A study of settings: `gtx tune` as one function.

MAIN, STUDY, BEST = "main", "study.yaml", "best"
FILES = ("trials", BEST, "cache", JOURNAL, "study.lock", RECORD, CONFIG, STUDY, "trials.csv", "importance.png")
"""Names of the files that a study writes to its folder."""
MODELS = ("standard", "gps")
"""Architectures of a study by default."""


@dataclass(frozen=True)
class Tuned:
    """Outcome of a study.

    Attributes:
        out: folder of the study.
        tried: records of all trials.
        best: trial with the best validation score; None while other processes run the last trials.
        scores: by study `{"tuned": ..., "default": ..., "default from foundation": ...}`, each with the parts "val" and
            "test" of `metrics.json`; the test scores are not used for any choice.
        running: number of trials that other processes run.
        was_finished: True if the study was finished before.
        notes: further notes, a line each.
    """

    out: Path
    tried: Sequence[Tried]
    best: Tried | None = None
    scores: Mapping[str, Mapping[str, Any]] | None = None
    running: int = 0
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
    tell: Callable[[Tried, Tried | None], None] = lambda tried, best: None,
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

    Several processes may use the same folder `out`. The function writes `best.yaml`, `best/` (a run folder),
    `trials.csv`, `tuning.json` and `importance.png`.

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
        jobs: number of trials that run at the same time, each in a process and with an equal share of the cores. With
            more than one, the choices of a trial depend on which trials have ended before it.
        options: further options of `gtx train` for `best.yaml`.
        overwrite: whether earlier results in `out` are replaced.
        tell: function that is called after each trial, with the trial and the best trial of its study; with several
            `jobs`, one that can be pickled.
        describe: function that is called with each note about the data.

    Raises:
        InputError: Optuna is not installed, the input cannot be used, `out` holds a study of other settings or data, or
            no trial succeeded.
    """
    out = Path(out)
    optuna()
    _check(data, trials, hours, test_folds, jobs)
    if jobs > 1 and settings.threads is None:
        settings = replace(settings, threads=max(1, torch.get_num_threads() // jobs))
    starts = (start,) if start else _starts(data, settings)
    models = (settings.model,) if "model" in chosen or start else _models(data, settings, models)
    numbers = range(1, (test_folds or 0) + 1)
    studies_data = {MAIN: data} | {f"fold-{k}": replace(data, test_folds=test_folds, test_fold=k) for k in numbers}
    search = Search(out, studies_data, settings, starts, models, frozenset(chosen), describe)

    config = collect_data_config(data) | {"targets": list(data.target_columns), "settings": settings.decisive()}
    config |= {"task": data.task and (data.task.config() if hasattr(data.task, "config") else dict(data.task.options))}
    claim(out, FILES)
    try:
        if overwrite or not (out / STUDY).exists():
            search.space(MAIN)  # with a table that cannot be used, nothing is started or deleted
    finally:
        tidy(out)
    claim(out, FILES)
    _open(out, config | {"starts": list(starts), "models": list(models), "chosen": sorted(chosen)}, overwrite)
    if jobs > 1:
        with open_process_pool(jobs - 1) as pool:
            silent = replace(search, describe=_ignore)
            others = [pool.submit(_run_beside, silent, trials, hours, tell) for _ in range(jobs - 1)]
            search.run(trials, hours, tell)
            for other in others:
                other.result()
    studies, space = search.run(trials, hours, tell), search.space
    if running := studies.running():
        return Tuned(out, studies.tried(), running=running)
    try:
        with locked(out):
            return _results(studies, space, studies_data, settings, out, options or {})
    except InputError as error:
        if "another process" not in str(error):
            raise
        return Tuned(out, studies.tried(), running=1)


@dataclass(frozen=True)
class Search:
    """Studies of a folder, as each of its processes needs them.

    Attributes:
        out: the folder.
        data: settings of the table by the name of the study.
        settings, starts, models, chosen: see `Space`.
        describe: function that is called with each note about the data, before the first trial.
    """

    out: Path
    data: Mapping[str, DataSettings]
    settings: TrainSettings
    starts: tuple[str, ...]
    models: tuple[str, ...]
    chosen: frozenset[str]
    describe: Callable[[str], None]

    @cached_property
    def rows(self) -> dict[str, Rows]:
        """Rows by the name of the study."""
        return {name: Rows(each, self.out / "cache") for name, each in self.data.items()}

    def space(self, name: str) -> Space:
        """Make the search space of a study."""
        prepared, _, _ = prepare(self.data[MAIN], self.settings, None if self.starts[0] == SCRATCH else self.starts[0])
        told = self.rows[name].lines
        dataset = self.rows[name].dataset(prepared)
        for line in self.rows[name].lines if name == MAIN and not told else ():
            self.describe(line)
        check_selection(dataset.task, self.settings.keep_by, validated=True)
        base = self.settings.resolved(dataset.task.epochs)
        return Space(base, len(dataset.split["train"]), self.starts, self.models, self.chosen)

    def run(self, trials: int, hours: float | None, tell: Callable[[Tried, Tried | None], None]) -> Studies:
        """Run trials until each study has enough of them, or the hours are over."""
        studies = Studies(self.out, list(self.data), self.space, self.settings.seed)
        while True:
            with studies.begin(trials, hours) as job:
                if job is None:
                    return studies
                run_trial(studies, job, self.space(job.study), self.rows[job.study])
            (tried,) = (t for t in studies.tried(job.study) if t.number == job.trial.number)
            tell(tried, studies.best(job.study))


def _ignore(line: str) -> None:
    """Take a note that the first process has told."""


def _run_beside(search: Search, trials: int, hours: float | None, tell: Callable[[Tried, Tried | None], None]) -> None:
    """Run trials in a process of its own, which leaves Ctrl-C to the process that started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with torch_threads(search.settings.threads):
        search.run(trials, hours, tell)


def _results(
    studies: Studies,
    space: Callable[[str], Space],
    studies_data: Mapping[str, DataSettings],
    settings: TrainSettings,
    out: Path,
    options: Mapping[str, Any],
) -> Tuned:
    """Score the best trials on test rows, and write all files; finished work is not repeated."""
    chosen = {name: _best(studies, name) for name in studies_data}
    stamp = {name: [best.number, len(studies.finished(name))] for name, best in chosen.items()}
    earlier = read_plain(out / RECORD)  # None if it is damaged
    if isinstance(earlier, dict) and earlier.get("stamp") == stamp and isinstance(earlier.get("scores"), dict):
        return Tuned(out, studies.tried(), chosen[MAIN], earlier["scores"], was_finished=True)
    scores: dict[str, dict[str, Any]] = {}
    for name, data in studies_data.items():
        scores[name] = {}
        for title, tried in {"tuned": chosen[name], **_defaults(studies.tried(name), space(name))}.items():
            if tried is not None:
                report = name == MAIN and title == "tuned"
                trial_settings, start = space(name).settings(tried.choices)
                trial_settings = replace(trial_settings, progress=settings.progress)
                outcome = train_model(data, trial_settings, tried.folder, start=start, baselines=report, report=report)
                if outcome is not None:
                    scores[name][title] = {part: outcome.metrics[part] for part in ("val", "test")}
    best = chosen[MAIN]
    discard(out / BEST)
    excluded = shutil.ignore_patterns(LOCK, "cache")
    shutil.copytree(best.folder, out / BEST, ignore=excluded, dirs_exist_ok=True)
    write_best(out / CONFIG, best, {**options, **space(MAIN).options(best.choices), "out": str(out / BEST)})
    write_trials(out / "trials.csv", studies.tried())
    with warnings.catch_warnings(record=True) as doubts:
        warnings.simplefilter("always")
        importances = studies.importances(MAIN)
    notes = []
    if not importances:
        notes.append("no importance.png: too few trials were completed")
    elif doubts:
        notes.append("importance.png: few trials were completed, so the importance of the settings is uncertain")
    if importances:
        write_figure_of_trials(out / "importance.png", studies.tried(MAIN), importances)
    record = {"stamp": stamp, "chosen": best.choices, "score": best.score, "importances": importances, "scores": scores}
    write_text(out / RECORD, json.dumps(record, indent=2, allow_nan=False) + "\n")
    return Tuned(out, studies.tried(), best, scores, notes=notes)


def _defaults(trials: Sequence[Tried], space: Space) -> dict[str, Tried | None]:
    """Return the complete trials of the defaults, from each start; None for one that is not complete."""
    complete = [tried for tried in trials if tried.state == "complete"]
    defaults: dict[str, Tried | None] = {"default": next((tried for tried in complete if tried.default), None)}
    for start in space.starts[1:]:
        usual = space.defaults_of(start)
        defaults[f"default from {start}"] = next((tried for tried in complete if tried.choices == usual), None)
    return defaults


def _best(studies: Studies, name: str) -> Tried:
    best = studies.best(name)
    if best is None:
        errors = [tried.error for tried in studies.tried(name) if tried.error]
        why = f"; the first error: {errors[0]}" if errors else ""
        raise InputError(f"none of {len(studies.finished(name))} trials of study {name!r} came to its end{why}")
    return best


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


def _open(out: Path, config: dict[str, Any], overwrite: bool) -> None:
    """Start a study, or resume it.

    Raises:
        InputError: the folder contains a study with another config.
    """
    file = out / STUDY
    if overwrite:
        discard(out / BEST)
        discard(out, FILES, keep=(BEST,))
    config = json.loads(json.dumps(config))
    if not file.exists():
        write_text(file, yaml.safe_dump(config, sort_keys=False, allow_unicode=True, width=120))
    else:
        check_same(read_plain(file), config, f"{out} holds a study")
