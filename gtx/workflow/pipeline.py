"""`gtx train` as one function: from a table to a trained, scored and reported model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from gtx.base.errors import InputError
from gtx.base.files import claim, discard, read_plain
from gtx.base.schema import Number, check, entries, mapping_of
from gtx.data.columns import find_column
from gtx.tasks import Task
from gtx.training import TrainSettings
from gtx.training.ranks import (
    distributed_group,
    is_main_process,
    lock_output_folder,
    main_process_first,
    run_in_main_process,
)
from gtx.training.run import CONFIG, MEMBERS
from gtx.training_data import Dataset, DataSettings, load_training_table
from gtx.workflow.outputs import PARTS, RunResult, data_lines, fold_lines, further_names
from gtx.workflow.run import CACHE, Run

OUTPUTS = ("model.gtx", "metrics.json", "predictions.csv", "split.csv", "report.html")
_SCORES = dict.fromkeys(PARTS, entries({"per_target": mapping_of(mapping_of(Number | None))}))
METRICS = entries(_SCORES, {"baseline": mapping_of(entries(_SCORES))})
"""Kind of `metrics.json`, as far as it is read."""


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
    out, main = Path(out), is_main_process()
    read = partial(_read, out=out, overwrite=overwrite, progress=settings.progress)
    run = Run.load(data, settings, read, out, start=start, new_head=new_head)
    run.open(overwrite)
    remarks = _data_notes(run) if main else []
    for line in remarks:
        tell(line)
    metrics = run_in_main_process(lambda: _metrics(out / "metrics.json") if run.folder.finished else None)
    if metrics is not None:
        return RunResult.of_metrics(out, run.task, metrics, run.units).with_notes(remarks) if main else None
    if main:
        discard(out, keep=(CONFIG, MEMBERS, CACHE))  # files of a run that this one overwrites
    members, header = run.fit()
    if not main:
        return None
    blended = run.blend(members, header)
    result = run.write(blended, run.score(blended, baselines), remarks, report)
    for line in result.notes:
        tell(line)
    return replace(result, notes=[*remarks, *result.notes])


def _read(data: DataSettings, out: Path, overwrite: bool, progress: bool) -> Dataset:
    """Read the table into the cache of the folder; the main process claims the names of the files that a run writes."""
    main = is_main_process()
    if main:
        claim(out, (*OUTPUTS, CONFIG, MEMBERS, CACHE))
    if overwrite and main:
        discard(out, (CACHE,))
    with main_process_first():  # the others read its cache
        dataset = load_training_table(data, cache=out / CACHE, progress=progress and main)
    if main:
        claim(out, further_names(dataset))
    return dataset


def _data_notes(run: Run) -> list[str]:
    """Return notes about the data and the start model, a line each, and enter what cannot be scored in the row log."""
    dataset = run.molecules
    if not isinstance(dataset, Dataset):
        raise TypeError(f"expected molecules of tables, got {type(dataset).__name__}")
    _note_remarks(dataset, run.task)
    notes = data_lines(dataset) + run.task.answers.notes() + fold_lines(dataset, run.settings)
    notes += [f"going on from {start['file']}: {start['weights']}" for start in run.origin.values()]
    notes += [] if run.fine_tuning is None else run.fine_tuning.warnings(dataset)
    if run.dropped:
        notes.append(f"the model predicts no more: {', '.join(run.dropped)}")
    return notes


def _metrics(file: Path) -> dict[str, Any] | None:
    """Read the scores in `metrics.json`; None if it is damaged, so that it is written again."""
    scores = read_plain(file)
    try:
        check(scores, METRICS)
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
