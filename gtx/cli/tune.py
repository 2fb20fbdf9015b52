"""`gtx tune`."""

from __future__ import annotations

import statistics
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass, replace
from shlex import quote
from typing import TYPE_CHECKING, Any

from gtx.cli.options import MOLECULES, PARTS, TABLE, RunOptions, settings_from, task_options, training_options
from gtx.cli.parser import options_of
from gtx.cli.printing import cell, console, note, say
from gtx.settings import option
from gtx.settings.training import AtLeastZero

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

    from gtx.workflow.tuning import Tuned

EXAMPLES = """
examples:
  gtx tune data.csv --target-columns y --trials 50 --jobs 2 --out study/
  gtx tune data.csv --target-columns y --trials 20 --test-folds 5 --out study/
  gtx tune esol --model gps --trials 30 --out study/
  gtx train --config study/best.yaml --out run/
"""
NOTES = """
gtx tune looks for settings that suit YOUR table better than the defaults. It trains many models with different settings
and compares their scores on the validation rows. These settings vary: training from scratch or from the foundation, the
architecture, its channels, layers, dropout and encodings, the learning rate, the batch size and the epochs. Options
that you set do not vary.

The first trial has the defaults. Bad trials are stopped early. If a trial fails, its error is recorded and the study
continues. Run the same command again to resume an interrupted study, to print the results of a finished one, or, with
more --trials or --hours, to extend it. --jobs 2 runs two trials at a time.

The test rows are not used to choose. At the end they score two models, the chosen one and the one with the defaults.
With few rows, one such score depends mostly on chance: --test-folds 5 adds five studies. Each leaves out a fifth of the
rows and scores its choice on them.

FOLDER then holds best.yaml (options for gtx train), best/ (the run of the best trial, with model.gtx and report.html),
trials.csv, importance.png (the importance of each setting), history.png (the scores) and tuning.json.
"""
USAGE = "gtx tune TABLE --target-columns NAME --out FOLDER [options]"
OWN = ("trials", "hours", "test_folds", "jobs", "models", "overwrite", "out")
VARIED = ("model", "lr", "batch_molecules", "epochs")


@dataclass(frozen=True)
class StudyOptions:
    """Options of the study."""

    trials: int = option(50, "number of trials of the study", common=True)
    hours: AtLeastZero | None = option(
        None, "start no trial after X hours of trials, summed over all processes", common=True
    )
    test_folds: int | None = option(
        None,
        "also run N studies, each without one of N folds of the rows, and score the chosen settings on this fold",
        common=True,
    )
    jobs: int = option(
        1,
        "number of trials at the same time, each in a process; with more than one, the chosen settings depend on which "
        "trials end first",
        common=True,
    )
    models: list[str] | None = option(None, "the architectures to try; default: standard gps, or --model", common=True)


@dataclass(frozen=True)
class StartOptions(RunOptions):
    """Options of the start and the results of the trials."""

    start: str | None = option(
        None, "start every trial from this model file", flag="--from", metavar="MODEL", common=True
    )


OPTIONS = [
    *options_of(StudyOptions, "study"),
    *TABLE,
    *task_options(["regression", "classification", "multiclass", "fractions"]),
    *options_of(StartOptions, "results"),
    *PARTS,
    *MOLECULES,
    *(replace(each, common=each.name in ("seed", "accelerator")) for each in training_options()),
]


def run(arguments: Namespace) -> int:
    """Search, and print what it gained."""
    from gtx.workflow.tuning import tune

    values = vars(arguments)
    data, settings = settings_from(values)
    how = {name: values[name] for name in ("trials", "hours", "test_folds", "jobs", "overwrite", "start", "models")}
    chosen = [name for name in VARIED if name in arguments.chosen]
    options = [each for each in OPTIONS if each.name in arguments.chosen and each.name not in OWN]
    tuned = tune(
        data,
        settings,
        values["out"],
        **how,
        chosen=chosen,
        options={each.entry: values[each.name] for each in options},
        tell=_tell,
        describe=note,
    )
    for line in tuned.notes:
        note(line)
    _print(tuned)
    return 0


def _tell(study: str, trial: FrozenTrial, best: FrozenTrial | None) -> None:
    name = f"trial {trial.number}" if study == "main" else f"{study}, trial {trial.number}"
    words = _words(trial.params)
    if "error" in trial.user_attrs:
        note(f"{name}: failed: {trial.user_attrs['error']} ({words})")
        return
    state = " (ended early)" if trial.state.name == "PRUNED" else ""
    known = "" if best is None else f", best {best.value:.4g} of trial {best.number}"
    seconds = trial.duration.total_seconds() if trial.duration else 0
    note(f"{name}: {trial.value:.4g}{state}{known}, {seconds:.0f} s: {words}")


def _print(tuned: Tuned) -> None:
    """Print the number of trials, the best settings, and test scores beside those of the defaults."""
    states = [trial.state.name for trials in tuned.trials.values() for trial in trials]
    titles = {"COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "failed"}
    counts = ", ".join(f"{states.count(state)} {title}" for state, title in titles.items() if state in states)
    if tuned.was_finished:
        say(f"The study in {tuned.out} is finished: {counts}. More --trials or --hours add to it.")
    else:
        say(f"trials  {counts}")
    best = tuned.best
    known = ", the defaults" if best.user_attrs.get("default") else ""
    say(f"best    trial {best.number}{known}, validation score {best.value:.4g}: {_words(best.params)}")
    _score_table(tuned.scores)
    config = str(tuned.out / "best.yaml")
    say(f"config  {config}   (gtx train --config {quote(config)} --out FOLDER)")
    say(f"model   {tuned.out / 'best' / 'model.gtx'}")
    for name, what in (("importance.png", "picture"), ("history.png", "picture"), ("trials.csv", "trials")):
        if (tuned.out / name).exists():
            say(f"{what:<7} {tuned.out / name}")


def _score_table(scores: Mapping[str, Mapping[str, Any]]) -> None:
    """Print the validation and test scores of the chosen and the default settings."""
    from rich.table import Table

    metric = next(iter(scores["main"]["tuned"]["test"]))
    table = Table(title=f"{metric} on the same rows")
    words = [word for word in scores["main"] if all(word in own for own in scores.values())]
    for name in ("rows", *words):
        table.add_column(name.replace("default", "defaults"), justify="left" if name == "rows" else "right")

    def row(name: str, part: str, own: Mapping[str, Any]) -> list[float | None]:
        values = [own[word][part][metric] for word in words]
        table.add_row(name, *(cell("-" if value is None else f"{value:.4g}") for value in values))
        return values

    row("validation", "val", scores["main"])
    row("test", "test", scores["main"])
    nested = [row(f"test, {name}", "test", own) for name, own in scores.items() if name != "main"]
    if nested and all(value is not None for values in nested for value in values):
        each = [
            f"{statistics.mean(column):.4g} ± {statistics.stdev(column):.2g}" for column in zip(*nested, strict=True)
        ]
        table.add_section()
        table.add_row("test, mean ± sd of folds", *each)
    console().print(table)
    say("The settings were chosen on the validation rows, so the validation score of the tuned model is too good.")
    say("The scores of trials are validation errors in scaled units; lower is better.")


def _words(taken: Mapping[str, Any]) -> str:
    shown = ((name, f"{value:.3g}" if isinstance(value, float) else value) for name, value in taken.items())
    return ", ".join(f"{name} {value}" for name, value in shown)
