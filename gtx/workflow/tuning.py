"""Tuning: the search over trials, and its files."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from gtx.data import TableWriter
from gtx.dataset import DataSettings, fingerprint
from gtx.errors import InputError
from gtx.files import LOCK, check_same, claim, discard, locked, read_plain, tidy, write_text
from gtx.prediction import FOUNDATION
from gtx.training import TrainSettings
from gtx.training.optimise import check_selection
from gtx.workflow.pipeline import train
from gtx.workflow.plan import opened
from gtx.workflow.trials import JOURNAL, SCRATCH, Rows, Space, Studies, Tried, optuna, run_trial

# --- The files of a study.

CONFIG, RECORD = "best.yaml", "tuning.json"


def write_best(path: Path, best: Tried, options: Mapping[str, Any]) -> None:
    """Write the best options as a file for `gtx train --config`."""
    head = f"# Trial {best.number} of gtx tune, validation score {best.score:.4g}.\n# gtx train --config {path}\n"
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in options.items()}
    write_text(path, head + yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=120))


def write_trials(path: Path, tried: Sequence[Tried]) -> None:
    """A row for each trial, with its choices, its score and its error."""
    names = list(dict.fromkeys(name for each in tried for name in each.taken))
    with TableWriter(path, ["study", "trial", "state", "score", "seconds", *names, "error"]) as writer:
        for each in tried:
            seconds = None if each.seconds is None else round(each.seconds, 1)
            cells = [each.study, each.number, each.state, each.score, seconds, *map(each.taken.get, names)]
            writer.write(["" if cell is None else str(cell) for cell in [*cells, each.error]])


def write_picture(path: Path, tried: Sequence[Tried], importances: Mapping[str, float]) -> None:
    """Plot the importance of each setting, and the scores by trial."""
    from gtx.report.comparison import write_figure
    from gtx.report.figures import tuning_figure

    done = [each for each in tried if each.score is not None]
    scores = [(each.number, each.score, each.state == "complete") for each in done]
    default = next((each.score for each in done if each.default), None)
    write_figure(tuning_figure(importances, scores, default), path)


# --- A study of settings: the whole of `gtx tune`, as one function.

MAIN, STUDY, BEST = "main", "study.yaml", "best"
OWN = ("trials", BEST, "cache", JOURNAL, "study.lock", RECORD, CONFIG, STUDY, "trials.csv", "importance.png")
"""Names of the files that a study writes to its folder."""
MODELS = ("standard", "gps")
"""The architectures that a study tries where none is asked for."""


@dataclass(frozen=True)
class Tuned:
    """Outcome of a study.

    Attributes:
        out: its folder.
        tried: all trials.
        best: the trial chosen, by its validation score; None while other processes are at the last trials.
        scores: by study `{"tuned": ..., "default": ..., "default from foundation": ...}`, each with the parts "val" and
            "test" of `metrics.json`; those of test rows had no part in choosing.
        running: how many trials other processes are at.
        was_finished: whether there was nothing left to do.
        notes: what else to say, a line each.
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
    folds: int | None = None,
    start: str | None = None,
    models: Sequence[str] | None = None,
    chosen: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    tell: Callable[[Tried, Tried | None], None] = lambda tried, best: None,
    describe: Callable[[str], None] = lambda line: None,
) -> Tuned:
    """Search for settings that are better than the defaults; called again it goes on, or says that it is done.

    Each trial is a training as of `gtx.workflow.train` and is scored by the validation rows. The defaults are the first
    trial, those of the foundation the second; TPE (Bergstra et al. 2011) draws the others, and the median rule ends
    what is worse than half of the trials at the same stage. The test rows are not in the data that trials get. They
    score two models once, when all is chosen: the best trial's and the defaults'.

    With `folds`, that many studies more are made, each without one fold of the rows, which then scores what it has
    chosen: together these scores say what is to be expected of the whole procedure, on every row of the table.

    Several processes may share `out`. Writes `best.yaml`, `best/` (as of `train`), `trials.csv`, `tuning.json` and
    `importance.png`.

    Args:
        data: the table, and what is learned of it.
        settings: of all trials, but for what is varied.
        out: the study's folder.
        trials: how many there are to be in each study, with those that are there.
        hours: begin no trial when all trials together have taken so long.
        folds: of the nested studies; None for none.
        start: a model file that all trials go on from; default: from scratch, or from the foundation where that suits.
        models: names of the architectures to try; default: those of `MODELS` that suit the molecules.
        chosen: names of settings that are not varied.
        options: what else `best.yaml` says, by the names of `gtx train`'s options.
        overwrite: start anew whatever `out` holds.
        tell: called after each trial with it and with the best of its study.
        describe: called with what there is to say of the data, a line each, when the table has been read.

    Raises:
        InputError: Optuna is not installed, the input cannot be used, `out` holds a study of other settings or data, or
            no trial succeeded.
    """
    out = Path(out)
    optuna()
    _check(data, trials, hours, folds)
    starts = (start,) if start else _starts(data, settings)
    models = (settings.model,) if "model" in chosen or start else _models(data, settings, models)
    every = {MAIN: data} | {f"fold-{k}": replace(data, folds=folds, fold=k) for k in range(1, (folds or 0) + 1)}
    rows = {name: Rows(each, out / "cache") for name, each in every.items()}

    @cache
    def space(name: str) -> Space:
        own, _, _ = opened(data, settings, None if starts[0] == SCRATCH else starts[0])
        dataset = rows[name].dataset(own)
        for line in rows[name].lines if name == MAIN else ():
            describe(line)
        check_selection(dataset.task, settings.keep_by, validated=True)
        base = settings.resolved(dataset.task.epochs)
        return Space(base, len(dataset.split["train"]), starts, models, frozenset(chosen))

    config = fingerprint(data) | {"targets": list(data.target_columns), "settings": settings.decisive()}
    config |= {"task": data.task and (data.task.config() if hasattr(data.task, "config") else dict(data.task.options))}
    claim(out, OWN)
    try:
        if overwrite or not (out / STUDY).exists():
            space(MAIN)  # a table that cannot be used begins no study, and ends none
    finally:
        tidy(out)
    claim(out, OWN)
    _open(out, config | {"starts": list(starts), "models": list(models), "chosen": sorted(chosen)}, overwrite)
    studies = Studies(out, list(every), space, settings.seed)
    while True:
        with studies.begin(trials, hours) as job:
            if job is None:
                break
            run_trial(studies, job, space(job.study), rows[job.study])
        (tried,) = (t for t in studies.tried(job.study) if t.number == job.trial.number)
        tell(tried, studies.best(job.study))
    if running := studies.running():
        return Tuned(out, studies.tried(), running=running)
    try:
        with locked(out):
            return _results(studies, space, every, settings, out, options or {})
    except InputError as error:
        if "another process" not in str(error):
            raise
        return Tuned(out, studies.tried(), running=1)


def _results(
    studies: Studies,
    space: Callable[[str], Space],
    every: Mapping[str, DataSettings],
    settings: TrainSettings,
    out: Path,
    options: Mapping[str, Any],
) -> Tuned:
    """Score what was chosen by test rows, and write all files; nothing is done twice."""
    chosen = {name: _best(studies, name) for name in every}
    stamp = {name: [best.number, len(studies.finished(name))] for name, best in chosen.items()}
    found = read_plain(out / RECORD)  # one that is damaged is written anew
    if isinstance(found, dict) and found.get("stamp") == stamp and isinstance(found.get("scores"), dict):
        return Tuned(out, studies.tried(), chosen[MAIN], found["scores"], was_finished=True)
    scores: dict[str, dict[str, Any]] = {}
    for name, data in every.items():
        scores[name] = {}
        for word, tried in {"tuned": chosen[name], **_defaults(studies.tried(name), space(name))}.items():
            if tried is not None:
                with_report = name == MAIN and word == "tuned"
                own, start = space(name).settings(tried.taken)
                how = {"start": start, "baselines": with_report, "report": with_report}
                outcome = train(data, replace(own, progress=settings.progress), tried.folder, **how)
                scores[name][word] = {part: outcome.metrics[part] for part in ("val", "test")}
    best = chosen[MAIN]
    discard(out / BEST)
    left_out = shutil.ignore_patterns(LOCK, "cache")
    shutil.copytree(best.folder, out / BEST, ignore=left_out, dirs_exist_ok=True)
    write_best(out / CONFIG, best, options | space(MAIN).options(best.taken) | {"out": str(out / BEST)})
    write_trials(out / "trials.csv", studies.tried())
    with warnings.catch_warnings(record=True) as doubts:
        warnings.simplefilter("always")
        importances = studies.importances(MAIN)
    few = "importance.png: too few trials came to their end to say what mattered"
    notes = [few] * (not importances) + [f"{few} for sure"] * bool(importances and doubts)
    if importances:
        write_picture(out / "importance.png", studies.tried(MAIN), importances)
    record = {"stamp": stamp, "chosen": best.taken, "score": best.score, "importances": importances, "scores": scores}
    write_text(out / RECORD, json.dumps(record, indent=2, allow_nan=False) + "\n")
    return Tuned(out, studies.tried(), best, scores, notes=notes)


def _defaults(every: Sequence[Tried], space: Space) -> dict[str, Tried | None]:
    """The trials of the defaults, from each start; None for one that did not come to its end."""
    done = [tried for tried in every if tried.state == "complete"]
    found: dict[str, Tried | None] = {"default": next((tried for tried in done if tried.default), None)}
    for start in space.starts[1:]:
        usual = space.defaults_of(start)
        found[f"default from {start}"] = next((tried for tried in done if tried.taken == usual), None)
    return found


def _best(studies: Studies, name: str) -> Tried:
    best = studies.best(name)
    if best is None:
        errors = [tried.error for tried in studies.tried(name) if tried.error]
        why = f"; the first error: {errors[0]}" if errors else ""
        raise InputError(f"none of {len(studies.finished(name))} trials of study {name!r} came to its end{why}")
    return best


def _check(data: DataSettings, trials: int, hours: float | None, folds: int | None) -> None:
    if trials < 1:
        raise InputError(f"trials: expected 1 or more, got {trials}")
    if hours is not None and not hours > 0:
        raise InputError(f"hours: expected a value above 0, got {hours}")
    if folds is not None:
        replace(data, folds=folds)  # is checked
    if getattr(data.task, "writes", False):
        raise InputError(f"gtx tune is for numbers and classes, not for the task {data.task.name}")


def _starts(data: DataSettings, settings: TrainSettings) -> tuple[str, ...]:
    """From scratch; and from the foundation, where what was asked for allows it."""
    try:
        opened(data, settings, FOUNDATION)
    except InputError:
        return (SCRATCH,)
    return SCRATCH, FOUNDATION


def _models(data: DataSettings, settings: TrainSettings, asked: Sequence[str] | None) -> tuple[str, ...]:
    """Return the models asked for, checked; otherwise the usual ones that suit the data."""
    suited = []
    for model in asked or MODELS:
        try:
            opened(data, replace(settings, model=model), None)
            suited.append(model)
        except InputError:
            if asked:
                raise
    return tuple(suited)


def _open(out: Path, config: dict[str, Any], overwrite: bool) -> None:
    """Begin the study `config`, or go on with it.

    Raises:
        InputError: the folder holds a study of another config.
    """
    file = out / STUDY
    if overwrite:
        discard(out / BEST)
        discard(out, OWN, keep=(BEST,))
    config = json.loads(json.dumps(config))
    if not file.exists():
        write_text(file, yaml.safe_dump(config, sort_keys=False, allow_unicode=True, width=120))
    else:
        check_same(read_plain(file), config, f"{out} holds a study")
