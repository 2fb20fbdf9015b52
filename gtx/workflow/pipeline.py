"""`gtx train` as one function: from a table to a trained, scored and reported model."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gtx.baselines import Baselines, score_baselines
from gtx.data.columns import find_column
from gtx.data.splits import write_split
from gtx.errors import InputError
from gtx.files import claim, discard, read_plain, write_text
from gtx.schema import MappingOf, OrNone, Record, number
from gtx.tasks import NumericTask, Task
from gtx.tasks.task import Answers
from gtx.training import TrainSettings
from gtx.training.ranks import (
    distributed_group,
    is_main_process,
    lock_output_folder,
    main_process_first,
    run_in_main_process,
)
from gtx.training.run import CONFIG, MEMBERS, RunFolder
from gtx.training_data import Dataset, DataSettings, load_training_table
from gtx.workflow.blending import kernel_baseline
from gtx.workflow.outputs import (
    attainable_errors,
    attainable_lines,
    data_lines,
    domain_errors,
    further_names,
    report_facts,
    write_predictions,
)
from gtx.workflow.plan import CACHE, Plan, prepare

PARTS = ("train", "val", "test")
OUTPUTS = ("model.gtx", "metrics.json", "predictions.csv", "split.csv", "report.html")
_SCORES = Record({"per_target": MappingOf(MappingOf(OrNone(number())))})
METRICS = Record(dict.fromkeys(PARTS, _SCORES), {"baseline": MappingOf(Record(dict.fromkeys(PARTS, _SCORES)))})
"""Schema of `metrics.json`, as far as it is read."""


@dataclass(frozen=True)
class RunResult:
    """Result of a training run: its folder, fitted task, metrics and notes.

    Attributes:
        out: folder of the run.
        task: the fitted task.
        metrics: content of `metrics.json`.
        notes: notes about the data and the training, one line each.
        was_finished: whether the run was already finished.
        units: units of targets, by name.
    """

    out: Path
    task: Any
    metrics: dict[str, Any]
    notes: Sequence[str]
    was_finished: bool = False
    units: Mapping[str, str] = field(default_factory=dict)


@distributed_group()
@lock_output_folder("out")
def train_model(
    data: DataSettings,
    settings: TrainSettings,
    out: str | Path,
    *,
    overwrite: bool = False,
    start: str | Path | None = None,
    new_head: bool = False,
    baselines: bool = True,
    report: bool = True,
    tell: Callable[[str], None] = lambda line: None,
) -> RunResult | None:
    """Train a model on a table, compute its metrics on each part of the split, and write the folder of the run.

    A second call resumes the training, or returns at once if the run is finished.

    The function writes `model.gtx`, `metrics.json`, `predictions.csv` (and another file for each file of validation or
    test rows), `split.csv`, `report.html` and `config.yaml`.

    Args:
        data: settings of the table, with columns, task and split.
        settings: settings of the model and its training.
        out: folder of the run.
        overwrite: whether an earlier run in `out` is replaced.
        start: model file from which training starts, or `foundation`, the pretrained model. The new model has the same
            architecture and featuriser. For targets that both models predict, outputs and scales are kept; outputs for
            other targets are new.
        new_head: whether the head and the scales are new for all targets.
        baselines: whether the baselines of the task are also scored on the same rows.
        report: whether `report.html` is written, which takes a second or two.
        tell: function that is called with each note; notes on the data come before the first epoch.

    Returns:
        The outcome; None in all processes but the main one, if several train together.

    Raises:
        InputError: the input, the settings or `out` cannot be used, or another process trains there.
    """
    out = Path(out)
    begin = time.perf_counter()
    data, settings, fine_tuning = prepare(data, settings, start, new_head)
    main = is_main_process()
    if main:
        claim(out, (*OUTPUTS, CONFIG, MEMBERS, CACHE))
    if overwrite and main:
        discard(out, (CACHE,))
    with main_process_first():  # the others read its cache
        dataset = load_training_table(data, cache=out / CACHE, progress=settings.progress and main)
    plan = Plan.make(dataset, data, settings, fine_tuning)
    task, settings = plan.task, plan.settings
    if main:
        claim(out, further_names(dataset))
    run = RunFolder(out)
    run.open(plan.config, overwrite)
    _note_remarks(dataset, task)
    notes = data_lines(dataset) + task.notes() if main else []
    notes += [f"going on from {start['file']}: {start['weights']}" for start in plan.origin.values()]
    notes += [] if fine_tuning is None else fine_tuning.warnings(dataset)
    if plan.dropped:
        notes.append(f"the model predicts no more: {', '.join(plan.dropped)}")
    for line in notes if main else ():
        tell(line)
    before = len(notes)
    scores = run_in_main_process(lambda: _scores(out / "metrics.json") if run.finished else None)
    if scores is not None:
        return RunResult(out, task, scores, notes, True, plan.units) if main else None

    if main:
        discard(out, keep=(CONFIG, MEMBERS, CACHE))  # files of a run that this one overwrites
    members, header = plan.fit(out)
    if not main:
        return None
    blended = plan.blend(members, header)
    notes = notes if blended.note is None else [*notes, blended.note]
    predictor, answers = blended.predictor, blended.answers
    if seen := predictor.header.settings.get("seen"):
        notes.append(f"test rows: the foundation model was pretrained on {seen}")
    training = predictor.header.training
    if training is not None:
        notes.append(
            f"model.gtx contains its training rows, for gtx predict --neighbours: {training.describe()}; "
            "--no-training-rows leaves them out"
        )
    task, networks = predictor.task, predictor.members
    calibration = [line for line in task.notes() if line not in plan.task.notes()]
    notes = [*notes, *calibration]
    metrics: dict[str, Any] = {
        part: task.score(networks, dataset.store, answers, dataset.split[part]) for part in PARTS
    }
    predictor.header.metrics.update(metrics)
    if predictor.kernel_member is not None:
        metrics["kernel_share"] = predictor.kernel_member.shares(task)
    metrics["alone"] = {}
    if isinstance(task, NumericTask):
        for name, alone in blended.alone.items():
            parts = {part: (dataset.y[index], alone.mean[index]) for part, index in dataset.split.items()}
            metrics["alone"][name] = {part: task.evaluate(*values) for part, values in parts.items()}
    least = min(member.batch_pairs or settings.batch_pairs for member in members)
    if least < settings.batch_pairs:
        notes = [*notes, f"memory was short: batches of {least:,} pairs, not {settings.batch_pairs:,}"]
    scored = Baselines({}, {})
    if baselines:
        kernel = kernel_baseline(blended, dataset.store, dataset.split["train"], settings)
        if predictor.kernel_member:
            notes = [*notes, "the baselines are fitted to the training rows alone, the kernel of the blend to more"]
        scored = score_baselines(dataset, task, settings.seed, settings.progress, kernel)
    metrics["baseline"] = scored.scores
    attainable = attainable_errors(task, dataset, blended.kernel)
    notes = [*notes, *attainable_lines(attainable, metrics, plan.units)]
    seconds = time.perf_counter() - begin

    predictor.save(out / "model.gtx")
    split = {part: dataset.rows[index] for part, index in dataset.split.items()}
    rows = len(dataset.files[0].rows)  # the rows of validation and test files are not listed
    write_split(out / "split.csv", {part: index[index < rows] for part, index in split.items()})
    write_predictions(out, predictor, dataset, answers)
    write_text(out / "metrics.json", json.dumps(metrics, indent=2, allow_nan=False) + "\n")
    if report:
        facts = report_facts(out, dataset, predictor, metrics, members, seconds, notes[:before])
        facts["rivals"], facts["attainable"] = scored.predictions, attainable
        facts["domain"] = domain_errors(predictor, dataset, answers)
        facts["footnotes"] += calibration
        notes = [*notes, *_report(task, out, dataset, answers, facts)]
    run.finish()
    for line in notes[before:]:
        tell(line)
    return RunResult(out, task, metrics, notes, units=plan.units)


def _scores(file: Path) -> dict[str, Any] | None:
    """Read the scores in `metrics.json`; None if it is damaged, so that it is written again."""
    scores = read_plain(file)
    try:
        METRICS.check(scores)
    except InputError:
        return None
    return scores


def _note_remarks(dataset: Dataset, task: Task) -> None:
    """Enter targets that cannot be scored in the row log, with the reason."""
    for rows in dataset.split.values():
        for molecule, reason in task.unscorable(dataset.store.subset(rows)).items():
            file, row = dataset.place(rows[molecule])
            (target,) = task.targets
            file.row_log.warn(row.number, target, row.cells[find_column(file.columns, target)], reason)


def _report(task: Task, out: Path, dataset: Dataset, answers: Answers, facts: dict[str, Any]) -> list[str]:
    """Write the report and return notes on it; an error in it must not lose the model, which is written already."""
    from gtx.report import write_run_report  # matplotlib is slow to import

    try:
        return write_run_report(task, out / "report.html", dataset, answers, facts)
    except OSError:  # such as a full disk: the same command resumes
        raise
    except Exception as error:
        return [f"report.html could not be written: {type(error).__name__}: {error}"]
