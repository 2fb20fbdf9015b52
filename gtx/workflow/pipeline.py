"""From a table to a trained, scored and reported model: the whole of `gtx train`, as one function."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gtx.baselines import Baselines, score_baselines
from gtx.data import column_index, write_split
from gtx.dataset import Dataset, DataSettings, load
from gtx.errors import InputError
from gtx.files import claim, discard, read_plain, write_text
from gtx.lazy import annex
from gtx.schema import MappingOf, OrNone, Record, number
from gtx.tasks import Task
from gtx.tasks.task import Answers
from gtx.training import RunFolder, TrainSettings, distributed_group, exclusive, from_main, is_main_process, main_first
from gtx.training.run import CONFIG, MEMBERS
from gtx.workflow.outputs import data_lines, domain_errors, further_names, report_facts, write_predictions
from gtx.workflow.plan import Plan, opened
from gtx.workflow.specs import without_all_rows

PARTS = ("train", "val", "test")
CACHE = "cache"
OUTPUTS = ("model.gtx", "metrics.json", "predictions.csv", "split.csv", "report.html")
_SCORES = Record({"per_target": MappingOf(MappingOf(OrNone(number())))})
METRICS = Record(dict.fromkeys(PARTS, _SCORES), {"baseline": MappingOf(Record(dict.fromkeys(PARTS, _SCORES)))})
"""Schema of what is read from `metrics.json`."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of a run.

    Attributes:
        out: its folder.
        task: what was learned.
        metrics: as in `metrics.json`.
        notes: what was said of the data, a line each.
        was_finished: whether there was nothing left to do.
        units: of targets, by name.
    """

    out: Path
    task: Any
    metrics: dict[str, Any]
    notes: Sequence[str]
    was_finished: bool = False
    units: Mapping[str, str] = field(default_factory=dict)


@distributed_group()
@exclusive("out")
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
    tell: Callable[[str], None] = lambda line: None,
) -> Outcome | None:
    """Train, score on all parts of the split, and write the run's folder; called again it goes on or says it is done.

    Writes `model.gtx`, `metrics.json`, `predictions.csv` (one more per file of validation or test rows), `split.csv`,
    `report.html` and `config.yaml`.

    Args:
        data: the table, or a store that `gtx prepare` made, and what is learned of it.
        settings: the model and its training.
        out: the run's folder.
        overwrite: train anew whatever `out` holds.
        start: a model file to go on from, or `foundation`, the pretrained model; its architecture and featuriser are
            kept. Of its targets that the table has too, outputs and scales are kept; outputs for others are new.
        new_head: make the head and the scales anew nevertheless.
        baselines: also score ridge and a random forest on the same rows, where the task has such.
        report: also write `report.html`, which takes a second or two.
        tell: called with each note as soon as it is known; those on the data come before the first epoch.

    Returns:
        What came of it; None in all processes but the first, where several train together.

    Raises:
        InputError: the input, the settings or `out` cannot be used, or another process trains there.
    """
    out = Path(out)
    begun = time.perf_counter()
    library = annex("library", f"{data.data}, a folder,") if Path(data.data).is_dir() else None
    stored = library is not None and library.is_store(data.data)
    if stored:
        data, settings, baselines = library.as_prepared(data), without_all_rows(settings), False
    prepared = data.featuriser
    data, settings, fine_tuning = opened(data, settings, start, new_head)
    if stored and data.featuriser.hash != prepared.hash:
        raise InputError(f"{data.data} was prepared otherwise than the model of --from reads molecules")
    speaks = is_main_process()
    if speaks:
        claim(out, (*OUTPUTS, CONFIG, MEMBERS, CACHE))
    if overwrite and speaks:
        discard(out, (CACHE,))
    with main_first():  # and the others find what it has read in the cache
        if stored:
            dataset = library.load_stored(data, out / CACHE)
        else:
            dataset = load(data, cache=out / CACHE, progress=settings.progress and speaks)
    plan = Plan.make(dataset, data, settings, fine_tuning)
    task, settings = plan.task, plan.settings
    if speaks:
        claim(out, further_names(dataset))
    run = RunFolder(out)
    run.open(plan.config, overwrite)
    _note_remarks(dataset, task)
    notes = data_lines(dataset) + task.notes()
    if stored:
        held = f"{len(dataset.split['train']):,} of the {dataset.counts['train']:,} training molecules stand for all"
        notes.append(f"the molecules stay on disk: in scores and report {held}; no baselines, no blend with a kernel")
    notes += [f"going on from {start['file']}: {start['weights']}" for start in plan.origin.values()]
    notes += [] if fine_tuning is None else fine_tuning.warnings(dataset)
    notes += [f"the foundation has learned from {words}, of the test rows" for words in plan.seen.values()]
    if gone := plan.dropped:
        notes.append(f"the model predicts no more: {', '.join(gone)}")
    for line in notes if speaks else ():
        tell(line)
    before = len(notes)
    if (scores := from_main(lambda: _scores(out / "metrics.json") if run.finished else None)) is not None:
        return Outcome(out, task, scores, notes, True, plan.units) if speaks else None

    if speaks:
        discard(out, keep=(CONFIG, MEMBERS, CACHE))  # of a run that this one overwrites
    members, header = plan.fit(out)
    if not speaks:
        return None
    both = plan.blend(members, header)
    notes = notes if both.note is None else [*notes, both.note]
    predictor, answers = both.predictor, both.answers
    if (kept := predictor.header.training) is not None:
        words = f"model.gtx contains its training rows, for gtx predict --neighbours: {kept.describe()}"
        notes.append(f"{words}; --no-training-rows leaves them out")
    task, networks = predictor.task, predictor.members
    learned = [line for line in task.notes() if line not in plan.task.notes()]  # of validation rows
    notes = [*notes, *learned]
    metrics: dict[str, Any] = {
        part: task.score(networks, dataset.store, answers, dataset.split[part]) for part in PARTS
    }
    predictor.header.metrics.update(metrics)
    if predictor.kernel_member is not None:
        metrics["kernel_share"] = predictor.kernel_member.shares(task)
    metrics["alone"] = {
        name: {part: task.evaluate(dataset.y[dataset.split[part]], said.mean[dataset.split[part]]) for part in PARTS}
        for name, said in both.alone.items()
    }
    least = min(member.batch_pairs or settings.batch_pairs for member in members)
    if least < settings.batch_pairs:
        notes = [*notes, f"memory was short: batches of {least:,} pairs, not {settings.batch_pairs:,}"]
    scored = Baselines({}, {})
    if baselines:
        scored = score_baselines(dataset, task, settings.seed, settings.progress, both.kernel)
    metrics["baseline"] = scored.scores
    seconds = time.perf_counter() - begun

    predictor.save(out / "model.gtx")
    own = {part: dataset.rows[index] for part, index in dataset.split.items()}
    rows = len(dataset.files[0].rows)  # a file of validation or test rows is its own record
    write_split(out / "split.csv", {part: index[index < rows] for part, index in own.items()})
    write_predictions(out, predictor, dataset, answers)
    write_text(out / "metrics.json", json.dumps(metrics, indent=2, allow_nan=False) + "\n")
    if report:
        facts = report_facts(out, dataset, predictor, metrics, members, seconds, notes[:before])
        facts["rivals"] = scored.predictions
        facts["domain"] = domain_errors(predictor, dataset, answers)
        facts["footnotes"] += learned
        notes = [*notes, *_report(task, out, dataset, answers, facts)]
    run.finish()
    for line in notes[before:]:
        tell(line)
    return Outcome(out, task, metrics, notes, units=plan.units)


def _scores(file: Path) -> dict[str, Any] | None:
    """Read the scores in `metrics.json`; None if it is damaged, so that it is written again."""
    found = read_plain(file)
    try:
        METRICS.check(found)
    except InputError:
        return None
    return found


def _note_remarks(dataset: Dataset, task: Task) -> None:
    """Enter in the ledger what keeps targets from being scored."""
    for rows in dataset.split.values():
        for molecule, reason in task.unscorable(dataset.store.subset(rows)).items():
            file, row = dataset.place(rows[molecule])
            (target,) = task.targets
            file.ledger.warn(row.number, target, row.cells[column_index(file.columns, target)], reason)


def _report(task: Task, out: Path, dataset: Dataset, answers: Answers, facts: dict[str, Any]) -> list[str]:
    """Notes on the report. The model, the metrics and the predictions are written: no report may take them back."""
    from gtx.report import write  # matplotlib is slow to import

    try:
        return write(task, out / "report.html", dataset, answers, facts)
    except OSError:  # a full disk, say: the same command goes on
        raise
    except Exception as error:
        return [f"report.html could not be written: {type(error).__name__}: {error}"]
