"""Tuning: a study of trainings with other settings, run by Optuna, and its files."""

from __future__ import annotations

import json
import math
import shutil
import signal
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import pandas as pd
import torch
import yaml

from gtx.base.errors import InputError, printable
from gtx.base.files import LOCK, atomic_file, check_same, claim, discard, lock_folder, read_plain, tidy, write_text
from gtx.data.featurising import open_process_pool
from gtx.data.table_writer import refuse_input_as_output
from gtx.prediction.foundation import FOUNDATION_MODEL
from gtx.tasks import Task
from gtx.tasks.numeric import require_numeric
from gtx.training import TrainSettings
from gtx.training.module import spread_seed
from gtx.training.optimise import check_selection, validation_scorer
from gtx.training.processes import torch_threads
from gtx.training_data import Dataset, DataSettings, collect_data_config, load_training_table
from gtx.workflow.fine_tuning import prepare
from gtx.workflow.outputs import data_lines
from gtx.workflow.run import Run, train_model
from gtx.workflow.specs import default_width

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FixedTrial, FrozenTrial, Trial


# --- The search space: choices, their defaults, and the settings that follow from them.

SCRATCH = "scratch"
PURPOSE = "gtx tune, which compares models"
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
        raise InputError(f"{file} cannot be read ({why}); `overwrite` starts anew") from error


def trial_folder(out: Path, name: str, trial: Trial | FrozenTrial) -> Path:
    """Return the folder of a trial of a study; a repeated trial has that of the trial that was interrupted."""
    return out / "trials" / name / trial.user_attrs.get("folder", str(trial.number))


def ended(study: Study) -> list[FrozenTrial]:
    """List the trials that came to an end, good or bad; an interrupted trial did not."""
    return [one for one in study.get_trials(deepcopy=False) if has_ended(one)]


def has_ended(trial: FrozenTrial) -> bool:
    """Return True for a trial that came to an end, good or bad."""
    return trial.state.name in ("COMPLETE", "PRUNED") or "error" in trial.user_attrs


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
    outputs = blended.outputs[torch.from_numpy(rows), :, : run.task.objective.out_channels]  # no similarity
    return scorer(outputs.mean(1))["val_score"]


# --- A study, or several, of one table: `gtx tune` as one function.

Tell = Callable[[str, "FrozenTrial", "FrozenTrial | None"], None]

MAIN, CONFIG, BEST, RECORD, DESCRIPTION = "main", "best.yaml", "best", "tuning.json", "study.yaml"
FILES = ("trials", BEST, "cache", STORAGE, RECORD, CONFIG, DESCRIPTION, "trials.csv", "importance.png", "history.png")
"""Names of the files that a study writes to its folder."""
MODELS = ("standard", "gps")
"""Architectures of a study by default."""


@dataclass(frozen=True)
class Tuned:
    """Outcome of a study.

    `scores` are by study `{"tuned": ..., "default": ..., "default from foundation": ...}`, each with the parts "val"
    and "test" of `metrics.json`; the test scores are not used for any choice.
    """

    out: Path  # folder of the study
    trials: Mapping[str, Sequence[FrozenTrial]]  # that came to an end, by the name of their study
    best: FrozenTrial  # with the best validation score
    scores: Mapping[str, Mapping[str, Any]]
    was_finished: bool = False  # before
    notes: Sequence[str] = ()  # a line each


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
    folder), `trials.csv`, `tuning.json`, `importance.png` and `history.png`.

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
        jobs: number of processes that share the trials and the cores; the choices of a trial then depend on which
            trials have ended before it.
        options: further options of `gtx train` for `best.yaml`.
        overwrite: whether earlier results in `out` are replaced.
        tell: function that is called after each trial, with the name of its study, the trial, and the best one of the
            study or None; with several `jobs`, one that can be pickled.
        describe: function that is called with each note about the data.
    """
    out = Path(out)
    import_optuna()
    for name, value in (("trials", trials), ("jobs", jobs)):
        if value < 1:
            raise InputError(f"{name}: expected 1 or more, got {value}")
    if hours is not None and not hours > 0:
        raise InputError(f"hours: expected a value above 0, got {hours}")
    if test_folds is not None:
        replace(data, test_folds=test_folds)  # raises if it is out of range
    if isinstance(data.task, Task):
        require_numeric(data.task, PURPOSE)
    if jobs > 1 and settings.threads is None:
        settings = replace(settings, threads=max(1, torch.get_num_threads() // jobs))
    starts: tuple[str, ...] = (start,) if start else (SCRATCH,)
    if not start and _suits(data, settings, FOUNDATION_MODEL):
        starts = (SCRATCH, FOUNDATION_MODEL)
    if "model" in chosen or start:
        models = (settings.model,)
    elif models is None:
        models = [model for model in MODELS if _suits(data, replace(settings, model=model))]
    for model in () if start else models:
        prepare(data, replace(settings, model=model), None)  # raises if it does not suit the data
    folds = {f"fold-{k}": replace(data, test_folds=test_folds, test_fold=k) for k in range(1, (test_folds or 0) + 1)}
    search = Search(out, {MAIN: data} | folds, settings, starts, tuple(models), frozenset(chosen))

    config = collect_data_config(data) | {"targets": list(data.target_columns), "settings": settings.decisive()}
    config |= {"task": data.task and (data.task.config() if hasattr(data.task, "config") else dict(data.task.options))}
    config |= {"starts": list(starts), "models": list(models), "chosen": sorted(chosen)}
    with lock_folder(out):
        claim(out, FILES)
        for name in FILES:
            refuse_input_as_output(out / name, data.data, data.val, data.test)
        try:
            search.space(MAIN)  # with a table that cannot be used, nothing is started or deleted
        finally:
            tidy(out)
        claim(out, FILES)
        _describe(out, config, overwrite)
        for line in data_lines(search.table(MAIN), data.features):
            describe(line)
        search.begin()
        missing = {name: trials - len(ended(study)) for name, study in search.studies.items()}
        turns = [name for turn in range(trials) for name in missing if turn < missing[name]]
        if jobs == 1:
            search.run(turns, hours, tell)
        else:
            with open_process_pool(jobs - 1) as pool:
                shares = [turns[k::jobs] for k in range(1, jobs)]
                others = [pool.submit(_run_beside, replace(search), share, hours, tell) for share in shares]
                search.run(turns[::jobs], hours, tell)
                for other in others:
                    other.result()
        return _results(search, options or {})


@dataclass(frozen=True)
class Search:
    """Studies of a folder, as each of its processes needs them: the settings of their tables by name, see `Space`."""

    out: Path
    data: Mapping[str, DataSettings]
    settings: TrainSettings
    starts: tuple[str, ...]
    models: tuple[str, ...]
    chosen: frozenset[str]
    tables: dict[tuple[str, str], Dataset] = field(default_factory=dict, init=False)
    """Tables that were read, by the name of the study and the inputs of the model."""

    @cached_property
    def studies(self) -> dict[str, Study]:
        """Studies by name."""
        return {name: open_study(self.out, name) for name in self.data}

    @cached_property
    def inputs(self) -> DataSettings:
        """Settings of a table for the first start."""
        start = None if self.starts[0] == SCRATCH else self.starts[0]
        return prepare(self.data[MAIN], self.settings, start)[0]

    def table(self, name: str, inputs: DataSettings | None = None) -> Dataset:
        """Load the rows of a study, with the featuriser of `inputs`; each table is read once."""
        inputs = inputs or self.inputs
        key = name, str((inputs.featuriser.to_dict(), inputs.features))
        if key not in self.tables:
            data = replace(self.data[name], featuriser=inputs.featuriser, features=inputs.features)
            dataset = load_training_table(data, cache=self.out / "cache")
            require_numeric(dataset.task, PURPOSE)
            if not len(dataset.split["val"]):
                raise InputError("no rows validate, and a trial is scored by these: call some rows val, or give `val`")
            self.tables[key] = dataset
        return self.tables[key]

    def space(self, name: str) -> Space:
        """Make the search space of a study."""
        dataset = self.table(name)
        check_selection(dataset.task, self.settings.keep_by, validated=True)
        base = self.settings.resolve(dataset.task.epochs)
        return Space(base, len(dataset.split["train"]), self.starts, self.models, self.chosen)

    def begin(self) -> None:
        """Put the defaults into the queue of each new study, and the interrupted trials into that of each other."""
        for name, study in self.studies.items():
            repeat_interrupted(study)
            if not study.get_trials(deepcopy=False):
                space = self.space(name)
                for number, start in enumerate(space.starts):
                    study.enqueue_trial(space.defaults_of(start), user_attrs={"default": number == 0})

    def run(self, turns: Sequence[str], hours: float | None, tell: Tell) -> None:
        """Run a trial of each study in turns, none after so many hours of trials in all studies."""
        for name in turns:
            times = [one.duration for study in self.studies.values() for one in ended(study) if one.duration]
            if hours is not None and sum(each.total_seconds() for each in times) >= 3600 * hours:
                return
            callbacks = [lambda study, trial: tell(study.study_name, trial, best_trial(study))]
            self.studies[name].optimize(self._train, 1, callbacks=callbacks, catch=(Exception,))

    def _train(self, trial: Trial) -> float:
        """Run a trial, and return its validation score, the objective; an error is an attribute of the trial."""
        optuna, study, name = import_optuna(), trial.study, trial.study.study_name
        trials = study.get_trials(deepcopy=False)  # read once: a trial that ends meanwhile counts once
        earlier = [each for each in trials if each.number < trial.number]
        place = sum(each.state.name == "RUNNING" or has_ended(each) for each in earlier)
        seed = spread_seed(self.settings.seed, list(self.studies).index(name), place)  # of no other job
        study.sampler = optuna.samplers.TPESampler(seed=seed)
        space = self.space(name)
        settings, start = space.settings(space.draw(trial))
        settings, folder = replace(settings, progress=False), trial_folder(self.out, name, trial)

        def read(inputs: DataSettings) -> Dataset:
            return self.table(name, inputs).without_test()

        try:
            with Run.load(self.data[name], settings, folder, read, start=start) as run:
                prunable = not trial.user_attrs.get("default")
                score = validation_score(run, Pruning(trial, run.settings.epochs or 1, prunable))
            if not math.isfinite(score):
                raise InputError(f"the validation score is {score}")
        except optuna.TrialPruned:
            raise
        except Exception as error:
            kind = "" if isinstance(error, InputError) else f"{type(error).__name__}: "
            trial.set_user_attr("error", f"{kind}{error}")
            raise
        return score


def _run_beside(search: Search, turns: Sequence[str], hours: float | None, tell: Tell) -> None:
    """Run trials in a process of its own, which leaves Ctrl-C to the process that started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with torch_threads(search.settings.threads):
        search.run(turns, hours, tell)


# --- The results of a study, and its files.


def _results(search: Search, options: Mapping[str, Any]) -> Tuned:
    """Score the best trials on test rows, and write all files; finished work is not repeated."""
    out, studies = search.out, search.studies
    trials = {name: ended(study) for name, study in studies.items()}
    bests = {name: _best(name, study) for name, study in studies.items()}
    best = bests[MAIN]
    stamp = {name: [trial.number, len(trials[name])] for name, trial in bests.items()}
    earlier = read_plain(out / RECORD)  # None if it is damaged
    if isinstance(earlier, dict) and earlier.get("stamp") == stamp and isinstance(earlier.get("scores"), dict):
        return Tuned(out, trials, best, earlier["scores"], was_finished=True)
    scores: dict[str, dict[str, Any]] = {}
    for name, data in search.data.items():
        space = search.space(name)
        scores[name] = {}
        for title, trial in {"tuned": bests[name], **_defaults(trials[name], space)}.items():
            report = name == MAIN and title == "tuned"
            settings, start = space.settings(trial.params)
            settings = replace(settings, progress=search.settings.progress)
            folder = trial_folder(out, name, trial)
            outcome = train_model(data, settings, folder, start=start, baselines=report, report=report)
            if outcome is not None:
                scores[name][title] = {part: outcome.metrics[part] for part in ("val", "test")}
    discard(out / BEST)
    excluded = shutil.ignore_patterns(LOCK, "cache")
    shutil.copytree(trial_folder(out, MAIN, best), out / BEST, ignore=excluded, dirs_exist_ok=True)
    head = f"# Trial {best.number} of gtx tune, validation score {best.value:.4g}.\n"
    head += f"# gtx train --config {quote(str(out / CONFIG))}\n"
    options = {**options, **search.space(MAIN).options(best.params), "out": str(out / BEST)}
    options = {name: list(value) if isinstance(value, tuple) else value for name, value in options.items()}
    write_text(out / CONFIG, head + yaml.safe_dump(options, sort_keys=False, allow_unicode=True, width=120))
    attributes = ("number", "state", "value", "duration", "params", "user_attrs")
    frames = {name: study.trials_dataframe(attrs=attributes) for name, study in studies.items()}
    with atomic_file(out / "trials.csv") as file:
        pd.concat(frames, names=["study", None]).reset_index("study").to_csv(file, index=False)
    importances, notes = _importances(studies[MAIN], trials[MAIN])
    if importances:
        _plot(out, studies[MAIN])
    record = {"stamp": stamp, "chosen": best.params, "score": best.value, "importances": importances, "scores": scores}
    write_text(out / RECORD, json.dumps(record, indent=2, allow_nan=False) + "\n")
    return Tuned(out, trials, best, scores, notes=notes)


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


def _importances(study: Study, trials: Sequence[FrozenTrial]) -> tuple[dict[str, float], list[str]]:
    """Compute the importance of each choice by PED-ANOVA (Watanabe et al. 2023, arXiv:2304.10255), and a note on it."""
    if sum(trial.state.name == "COMPLETE" for trial in trials) <= UNPRUNED_TRIALS:
        return {}, ["no importance.png: too few trials were completed"]
    with warnings.catch_warnings(record=True) as doubts:
        warnings.simplefilter("always")
        importances = import_optuna().importance.get_param_importances(study)
    doubt = "importance.png: few trials were completed, so the importance of the settings is uncertain"
    return importances, [doubt] if doubts else []


def _plot(out: Path, study: Study) -> None:
    """Save Optuna's plots of the importance of each choice and of the scores by trial."""
    from matplotlib import pyplot

    from gtx.report.comparison import write_figure

    plots = import_optuna().visualization.matplotlib
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* is experimental")
        figures = {"importance.png": plots.plot_param_importances(study).figure}
        figures["history.png"] = plots.plot_optimization_history(study).figure
    for name, figure in figures.items():
        figure.set_layout_engine("constrained")  # or long names are cut off
        write_figure(figure, out / name)
    pyplot.close("all")


# --- Settings of a study.


def _suits(data: DataSettings, settings: TrainSettings, start: str | None = None) -> bool:
    try:
        prepare(data, settings, start)
    except InputError:
        return False
    return True


def _describe(out: Path, config: dict[str, Any], overwrite: bool) -> None:
    """Write what identifies a study, or raise an `InputError` if it differs from what is written."""
    file = out / DESCRIPTION
    if overwrite:
        discard(out / BEST)
        discard(out, FILES, keep=(BEST,))
    config = json.loads(json.dumps(config))
    if file.exists():
        check_same(read_plain(file), config, f"{out} holds a study")
    else:
        write_text(file, yaml.safe_dump(config, sort_keys=False, allow_unicode=True, width=120))
