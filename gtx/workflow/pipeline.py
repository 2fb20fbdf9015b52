"""From a table to a trained, scored and reported model: the whole of `gtx train`, as one function."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gtx.baselines import score_baselines
from gtx.data import column_index, write_split
from gtx.data.preparing import is_store
from gtx.dataset import Dataset, DataSettings, load
from gtx.dataset.stored import as_prepared, load_stored
from gtx.errors import InputError
from gtx.files import write_text
from gtx.tasks import Task
from gtx.tasks.task import Answers
from gtx.training import RunFolder, TrainSettings, alone, from_main, is_main_process, main_first, together
from gtx.workflow.outputs import data_lines, report_facts, write_predictions
from gtx.workflow.plan import Plan, opened
from gtx.workflow.specs import without_all_rows

PARTS = ("train", "val", "test")
OUTPUTS = ("model.gtx", "metrics.json", "predictions.csv", "split.csv", "report.html")


@dataclass(frozen=True)
class Outcome:
    """What a run came to.

    Attributes:
        out: its folder.
        task: what was learned.
        metrics: as in `metrics.json`.
        notes: what was said of the data, a line each.
        was_finished: whether there was nothing left to do.
    """

    out: Path
    task: Any
    metrics: dict[str, Any]
    notes: Sequence[str]
    was_finished: bool = False


@together()
@alone("out")
def train(
    data: DataSettings,
    settings: TrainSettings,
    out: str | Path,
    *,
    overwrite: bool = False,
    start: str | Path | None = None,
    new_head: bool = False,
    baselines: bool = True,
    report: bool = True,
) -> Outcome | None:
    """Train, score on all parts of the split, and write the run's folder; called again it goes on or says it is done.

    Writes `model.gtx`, `metrics.json`, `predictions.csv` (one more per file of validation or test rows), `split.csv`,
    `report.html` and `config.yaml`.

    Args:
        data: the table, or a store that `gtx.data.prepare` made, and what is learned of it.
        settings: the model and its training.
        out: the run's folder.
        overwrite: train anew whatever `out` holds.
        start: a model file to go on from, or `foundation`, the pretrained model; its architecture and featuriser are
            kept. Of its targets that the table has too, outputs and scales are kept; outputs for others are new.
        new_head: make the head and the scales anew nevertheless.
        baselines: also score ridge and a random forest on the same rows, where the task has such.
        report: also write `report.html`, which takes a second or two.

    Returns:
        What came of it; None in all processes but the first, where several train together.

    Raises:
        InputError: the input, the settings or `out` cannot be used, or another process trains there.
    """
    out = Path(out)
    begun = time.perf_counter()
    stored = is_store(data.data)
    if stored:
        data, settings, baselines = as_prepared(data), without_all_rows(settings), False
    prepared = data.featuriser
    data, settings, further = opened(data, settings, start, new_head)
    if stored and data.featuriser.hash != prepared.hash:
        raise InputError(f"{data.data} was prepared otherwise than the model of --from reads molecules")
    speaks = is_main_process()
    if overwrite and speaks:
        shutil.rmtree(out / "cache", ignore_errors=True)
    with main_first():  # and the others find what it has read in the cache
        if stored:
            dataset = load_stored(data, out / "cache")
        else:
            dataset = load(data, cache=out / "cache", progress=settings.progress and speaks)
    plan = Plan.make(dataset, data, settings, further)
    task, settings = plan.task, plan.settings
    run = RunFolder(out)
    run.open(plan.config, overwrite)
    _note_remarks(dataset, task)
    notes = data_lines(dataset) + task.notes()
    if stored:
        held = f"{len(dataset.split['train']):,} of the {dataset.counts['train']:,} training molecules stand for all"
        notes.append(f"the molecules stay on disk: in scores and report {held}; no baselines, no mix with a kernel")
    notes += [f"going on from {start['file']}: {start['weights']}" for start in plan.origin.values()]
    notes += [] if further is None else further.warnings(dataset)
    if gone := plan.dropped:
        notes.append(f"the model predicts no more: {', '.join(gone)}")
    if from_main(lambda: run.finished and (out / "metrics.json").exists()):
        if not speaks:
            return None
        return Outcome(out, task, json.loads((out / "metrics.json").read_text()), notes, was_finished=True)

    more = (*out.glob("predictions-*.csv"), *out.glob("report-*.html"))
    for old in (*(out / name for name in OUTPUTS), *more):  # of a run that this one overwrites
        if speaks:
            old.unlink(missing_ok=True)
    members, header = plan.fit(out)
    if not speaks:
        return None
    both = plan.mixed(members, header)
    notes = notes if both.note is None else [*notes, both.note]
    predictor, answers = both.predictor, both.answers
    if (kept := predictor.header.training) is not None:
        words = f"model.gtx keeps the rows that it learned from, for gtx predict --neighbours: {kept.words()}"
        notes.append(f"{words}; --no-training-rows leaves them out")
    task, networks = predictor.task, predictor.members
    learned = [line for line in task.notes() if line not in plan.task.notes()]  # of validation rows
    notes = [*notes, *learned]
    metrics: dict[str, Any] = {
        part: task.judge(networks, dataset.store, answers, dataset.split[part]) for part in PARTS
    }
    predictor.header.metrics.update(metrics)
    if predictor.partner is not None:
        metrics["kernel_share"] = predictor.partner.shares(task)
    metrics["alone"] = {
        name: {part: task.evaluate(dataset.y[dataset.split[part]], said.mean[dataset.split[part]]) for part in PARTS}
        for name, said in both.alone.items()
    }
    least = min(member.batch_pairs or settings.batch_pairs for member in members)
    if least < settings.batch_pairs:
        notes = [*notes, f"memory was short: batches of {least:,} pairs, not {settings.batch_pairs:,}"]
    metrics["baseline"] = (
        score_baselines(dataset, task, settings.seed, settings.progress, both.kernel) if baselines else {}
    )
    seconds = time.perf_counter() - begun

    predictor.save(out / "model.gtx")
    own = {part: dataset.rows[index] for part, index in dataset.split.items()}
    rows = len(dataset.files[0].rows)  # a file of validation or test rows is its own record
    write_split(out / "split.csv", {part: index[index < rows] for part, index in own.items()})
    write_predictions(out, predictor, dataset, answers)
    write_text(out / "metrics.json", json.dumps(metrics, indent=2, allow_nan=False) + "\n")
    if report:
        facts = report_facts(out, dataset, predictor, metrics, members, seconds, data.units)
        facts["footnotes"] += learned
        notes = [*notes, *_report(task, out, dataset, answers, facts)]
    run.finish()
    return Outcome(out, task, metrics, notes)


def _note_remarks(dataset: Dataset, task: Task) -> None:
    """Enter in the ledger what keeps targets from being scored."""
    for rows in dataset.split.values():
        for molecule, reason in task.remarks(dataset.store.subset(rows)).items():
            file, row = dataset.place(rows[molecule])
            (target,) = task.targets
            file.ledger.warn(row.number, target, row.cells[column_index(file.columns, target)], reason)


def _report(task: Task, out: Path, dataset: Dataset, answers: Answers, facts: dict[str, Any]) -> list[str]:
    """Notes on the report. The model, the metrics and the predictions are written: no report may take them back."""
    try:
        return task.write_report(out / "report.html", dataset, answers, facts)
    except OSError:  # a full disk, say: the same command goes on
        raise
    except Exception as error:
        return [f"report.html could not be written: {type(error).__name__}: {error}"]
