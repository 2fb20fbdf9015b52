"""From a table to a trained, scored and reported model: the whole of `gtx train`, as one function."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gtx.data import write_split
from gtx.errors import InputError
from gtx.prediction import ModelHeader, save_model
from gtx.training import Member, RunFolder, TrainSettings, is_main_process, run_config
from gtx.workflow.dataset import DataSettings, fingerprint, load, sha256
from gtx.workflow.numbers import NumberTask
from gtx.workflow.outputs import data_lines, write_predictions
from gtx.workflow.sequences import SequenceTask
from gtx.workflow.task import Judged, Task

PARTS = ("train", "val", "test")
OUTPUTS = ("model.gtx", "metrics.json", "predictions.csv", "split.csv", "report.html")


@dataclass(frozen=True)
class Outcome:
    """What a run came to.

    Attributes:
        out: its folder.
        metrics: as in `metrics.json`.
        notes: what was said of the data, a line each.
        was_finished: whether there was nothing left to do.
    """

    out: Path
    metrics: dict[str, Any]
    notes: Sequence[str]
    was_finished: bool = False


def train(
    data: DataSettings,
    settings: TrainSettings,
    out: str | Path,
    *,
    overwrite: bool = False,
    start: str | Path | None = None,
    baselines: bool = True,
) -> Outcome | None:
    """Train, score on all parts of the split, and write the run's folder; called again it goes on or says it is done.

    Writes `model.gtx`, `metrics.json`, `predictions.csv` (one more per file of validation or test rows), `split.csv`,
    `report.html` and `config.yaml`.

    Args:
        data: the table.
        settings: the model and its training.
        out: the run's folder.
        overwrite: train anew whatever `out` holds.
        start: a model file to go on from; its architecture and featuriser are kept, its head is renewed where the
            number of targets differs.
        baselines: also score ridge and a random forest on the same rows; sequences have none.

    Returns:
        What came of it; None in all processes but the first, where several train together.

    Raises:
        InputError: the input, the settings or `out` cannot be used.
    """
    out = Path(out)
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; --out must name a folder")
    begun = time.perf_counter()
    task: Task = (SequenceTask if data.task == "sequence" else NumberTask)(data, settings, start, baselines)
    data = task.data
    dataset = load(data, cache=out / "cache", progress=settings.progress)
    task.settings = settings = settings.settled(dataset.task)
    task.meet(dataset)
    marks = fingerprint(data) | ({"from": sha256(start)} if start else {})
    run = RunFolder(out)
    run.open(run_config(dataset.task, data.target_columns, task.model, settings, marks), overwrite)
    notes = data_lines(dataset)
    if run.finished and (out / "metrics.json").exists():
        return Outcome(out, json.loads((out / "metrics.json").read_text()), notes, was_finished=True)

    for old in (*(out / name for name in OUTPUTS), *out.glob("predictions-*.csv")):  # of a run that this one overwrites
        old.unlink(missing_ok=True)
    members = task.fit(out, marks)
    if not is_main_process():
        return None
    header = ModelHeader(
        dataset.task,
        list(data.target_columns),
        data.featuriser,
        task.model,
        smiles_column=dataset.files[0].smiles_column,
        split={"how": dataset.split_words, **{part: len(index) for part, index in dataset.split.items()}},
        settings=settings.decisive(),
    )
    judged = task.judge(members, header)
    if scaler := judged.predictor.header.scaler:
        notes = [*notes, *(f"{header.targets[t]}: learned minus a reference per element" for t in scaler.extensive)]
    judged.predictor.header.metrics.update({part: judged.metrics[part] for part in PARTS})
    seconds = time.perf_counter() - begun

    save_model(out / "model.gtx", judged.predictor.members, judged.predictor.header)
    own = {part: dataset.rows[index] for part, index in dataset.split.items()}
    rows = len(dataset.files[0].rows)  # a file of validation or test rows is its own record
    write_split(out / "split.csv", {part: index[index < rows] for part, index in own.items()})
    write_predictions(out, judged.predictor, dataset, judged.answers)
    (out / "metrics.json").write_text(json.dumps(judged.metrics, indent=2, allow_nan=False) + "\n")
    notes = [*notes, *_report(task, out, judged, members, seconds)]
    run.finish()
    return Outcome(out, judged.metrics, notes)


def _report(task: Task, out: Path, judged: Judged, members: Sequence[Member], seconds: float) -> list[str]:
    """Notes on the report. The model, the metrics and the predictions are written: no report may take them back."""
    try:
        return task.report(out, judged, members, seconds)
    except OSError:  # a full disk, say: the same command goes on
        raise
    except Exception as error:
        return [f"report.html could not be written: {type(error).__name__}: {error}"]
