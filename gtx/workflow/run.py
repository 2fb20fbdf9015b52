"""A run: from molecules and their split to a scored model file, for commands and estimators."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import numpy as np
from torch import nn

from gtx.base.errors import InputError
from gtx.base.files import claim, discard, read_plain, write_text
from gtx.base.schema import Number, check, entries, mapping_of
from gtx.data.rows import find_column
from gtx.data.similarity import draw_rows
from gtx.data.splits import SPLIT_PARTS, write_split
from gtx.data.table_writer import refuse_input_as_output
from gtx.models import build_model
from gtx.prediction import ModelFileHeader
from gtx.prediction.domain import MOST_MEASURED, Domain, TrainingExtent, TrainingRows
from gtx.prediction.foundation import FOUNDATION_MODEL, describe_pretraining_overlap
from gtx.prediction.foundation_embedding import attach_foundation, reading_parts, with_embeddings
from gtx.report.context import RunReport
from gtx.tasks import Answers, Task
from gtx.tasks.numeric import is_numeric
from gtx.training import TrainedMember, TrainSettings
from gtx.training.fitting import Problem, train_networks
from gtx.training.logging import Watch
from gtx.training.module import PretrainedWeightLoader
from gtx.training.processes import (
    are_several,
    distributed_group,
    is_main_process,
    lock_folder_for_all,
    machines,
    main_process_first,
    run_in_main_process,
    share_store,
)
from gtx.training.run import CONFIG, MEMBERS, RunFolder, collect_run_config
from gtx.training_data import Dataset, DataSettings, collect_data_config, load_training_table
from gtx.workflow.baselines import score_baselines
from gtx.workflow.blending import Blended, blend_with_kernel, held_out_similarity, kernel_baseline
from gtx.workflow.fine_tuning import PretrainedModel, prepare
from gtx.workflow.outputs import (
    RunResult,
    attainable_errors,
    data_lines,
    fold_lines,
    further_names,
    run_report,
    training_lines,
    write_predictions,
)
from gtx.workflow.specs import add_learned_arguments, check_rates, check_training_rows_option, make_model_spec

CACHE = "cache"
"""Folder in that of a run for featurised molecules."""
OUTPUTS = ("model.gtx", "metrics.json", "predictions.csv", "split.csv", "report.html")
_SCORES = dict.fromkeys(SPLIT_PARTS, entries({"per_target": mapping_of(mapping_of(Number | None))}))
METRICS = entries(_SCORES, {"baseline": mapping_of(entries(_SCORES))})
"""Kind of `metrics.json`, as far as it is read."""


@distributed_group()
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
    main = is_main_process()
    with Run.load(data, settings, out, start=start, new_head=new_head, overwrite=overwrite) as run:
        remarks = run.remarks() if main else []
        for line in remarks:
            tell(line)
        if (result := run.earlier_result()) is not None:
            return replace(result, notes=remarks) if main else None
        if main:
            discard(run.folder.path, keep=(CONFIG, MEMBERS, CACHE))  # files of a run that this one overwrites
        members, header = run.fit()
        if not main:
            return None
        blended = run.blend(members, header)
        result = run.write(blended, run.score(blended, baselines), remarks, report)
    for line in result.notes:
        tell(line)
    return replace(result, notes=[*remarks, *result.notes])


@dataclass(frozen=True)
class Run:
    """A training from molecules to a scored model file: `load`, `fit`, `blend`, `score` and `write`, in this order.

    A run holds its folder, locked against other processes, until the end of the `with` block for which `load` makes it.

    Attributes:
        folder: folder in which the run resumes and leaves its files; a temporary one for a run that leaves no files.
        molecules: molecules with targets and a split.
        data: settings of the data, with the featuriser of the model.
        settings: settings of the model and its training, resolved.
        fine_tuning: pretrained model from which training starts, if any.
        task: the task, fitted to the training rows.
        spec: specification of the model, see `gtx.workflow.specs.make_model_spec`.
        begin: time at which it started, of `time.perf_counter`.
        resources: the lock, and a temporary folder.
    """

    folder: RunFolder
    molecules: Dataset
    data: DataSettings
    settings: TrainSettings
    fine_tuning: PretrainedModel | None
    task: Task
    spec: dict[str, Any]
    begin: float
    resources: ExitStack

    @classmethod
    def load(
        cls,
        data: DataSettings,
        settings: TrainSettings,
        out: str | Path | None = None,
        read: Callable[[DataSettings], Dataset] | None = None,
        *,
        start: str | Path | None = None,
        new_head: bool = False,
        overwrite: bool = False,
        marks: dict[str, Any] | None = None,
    ) -> Self:
        """Lock the folder, read and split the molecules, fit the task, specify the model, and start or resume there.

        Args:
            data: settings of the data.
            settings: settings of the model and its training.
            out: folder of the run; None for a run that leaves no files.
            read: function that returns molecules with a split, for settings with the featuriser of the model; by
                default, the table of `data` is read, with a cache in the folder.
            start: model file from which training starts, or `foundation`.
            new_head: whether the head and the scales of the start model are new for all targets.
            overwrite: whether an earlier run in the folder is replaced.
            marks: plain values that identify data and split; default: those of `data`.

        Raises:
            InputError: the settings do not suit the model, the task cannot be fitted to the training rows, another
                process works in the folder, or it contains a run with other settings or data.
        """
        begin = time.perf_counter()
        with ExitStack() as resources:
            if out is None:
                folder = RunFolder(resources.enter_context(TemporaryDirectory()))
            else:
                folder = RunFolder(out)
                resources.enter_context(lock_folder_for_all(folder.path))
            data, settings, fine_tuning = prepare(data, settings, start, new_head)
            read = read or partial(_read, out=folder.path, overwrite=overwrite, progress=settings.progress)
            molecules = read(data)
            settings = settings.resolve(molecules.task.epochs, machines())
            molecules = molecules.in_folds(settings.folds, data)
            task = molecules.fit_task() if fine_tuning is None else fine_tuning.adopted(molecules.fit_task())
            check_training_rows_option(task, settings)
            if fine_tuning is None:
                spec = make_model_spec(settings, data.featuriser, task, molecules.counts["train"], data.features)
            else:
                spec = fine_tuning.spec(task)
            check_rates(spec, settings)
            if (foundation := spec["arguments"].get("foundation")) is not None:
                molecules = replace(molecules, store=with_embeddings(molecules.store, foundation))
            marks = collect_data_config(data) if marks is None else marks
            marks = marks | ({} if fine_tuning is None else fine_tuning.marks) | {"model": spec}
            folder.open(collect_run_config(task, settings, marks), overwrite)
            return cls(folder, molecules, data, settings, fine_tuning, task, spec, begin, resources.pop_all())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.resources.close()

    def remarks(self) -> list[str]:
        """Return notes on the data and the start model, a line each; the row log gets what cannot be scored."""
        dataset = self.molecules
        for rows in dataset.split.values():
            for molecule, reason in self.task.unscorable(dataset.store.subset(rows)).items():
                file, row = dataset.place(rows[molecule])
                (target,) = self.task.targets
                file.row_log.warn(row.number, target, row.cells[find_column(file.columns, target)], reason)
        notes = data_lines(dataset, self.data.features) + self.task.answers.notes() + fold_lines(dataset, self.settings)
        return notes if self.fine_tuning is None else notes + self.fine_tuning.notes(dataset, self.task, self.spec)

    def earlier_result(self) -> RunResult | None:
        """Return the result of a finished run; None if it is not finished, or lost its model file or its metrics."""

        def read() -> dict[str, Any] | None:
            there = self.folder.finished and (self.folder.path / "model.gtx").exists()
            scores = read_plain(self.folder.path / "metrics.json") if there else None
            try:
                check(scores, METRICS)
            except InputError:
                return None
            return scores

        metrics = run_in_main_process(read)
        if metrics is None:
            return None
        return RunResult(self.folder.path, self.task, metrics, units=self.units, was_finished=True)

    @distributed_group()
    def fit(self, watch: Watch | None = None) -> tuple[list[TrainedMember], ModelFileHeader]:
        """Train in the folder or resume there, see `gtx.training.fit`; return the members and their header."""
        molecules, networks, fine_tuning = self.molecules, self.molecules.networks, self.fine_tuning
        extent = TrainingExtent.of(self.task.drop_blanks(molecules.train), self.data.features)
        used = np.union1d(molecules.split["train"], molecules.split["val"])
        train = molecules.store.subset(used)
        if are_several(self.settings.devices):
            train = share_store(train, self.folder.path / CACHE)
        problem = Problem(
            partial(_build, self.spec),
            self.task,
            train,
            train.subset(np.zeros(0, np.int64)),
            self.settings,
            folds=[{part: np.searchsorted(used, rows[part]) for part in ("train", "val")} for rows in networks],
            start=() if fine_tuning is None else fine_tuning.members,
            transfer=PretrainedWeightLoader() if fine_tuning is None else fine_tuning.transfer(self.task),
            watch=watch,
        )
        members = train_networks(problem.check(), self.folder)
        header = ModelFileHeader(
            self.task,
            self.data.featuriser,
            add_learned_arguments(self.spec, members[0].model),
            smiles_column=self.molecules.smiles_column,
            features=self.data.features,
            units=self.units,
            extent=extent if fine_tuning is None else extent | fine_tuning.header.extent,
            training=None if self.settings.training_rows is False else self._rows("train"),
            split={"how": self.molecules.split_summary, **self.molecules.sizes},
            settings=self.settings.decisive()
            | {"task": self.task.config(), "batch_pairs_used": [m.batch_pairs for m in members]}
            | ({} if fine_tuning is None else {"start": fine_tuning.origin(self.task, self.spec)}),
        )
        return members, header

    def blend(self, members: list[TrainedMember], header: ModelFileHeader) -> Blended:
        """Blend the trained members with a kernel, and measure the domain of the model.

        If the foundation model has a part in the predictions, the header tells how many test molecules, if any, it has
        seen.
        """
        learned = None if header.training is None else partial(self._rows, "train", "val")
        store, split = self.molecules.store, self.molecules.split
        blended = blend_with_kernel(members, header, store, self.molecules.networks, self.settings, learned)
        starts_there = self.fine_tuning is not None and self.fine_tuning.file == FOUNDATION_MODEL
        parts = filter(None, (blended.predictor.members[0], blended.predictor.kernel_member))
        if len(split["test"]) and (starts_there or any(map(reading_parts, parts))):
            seen = describe_pretraining_overlap([self.molecules.smiles[i] for i in split["test"]])
            blended = blended.with_header(settings=blended.predictor.header.settings | {"seen": seen})
        task = blended.predictor.task
        if header.training is None or not is_numeric(task) or not (len(split["train"]) and len(split["val"])):
            return blended
        val = draw_rows(split["val"], MOST_MEASURED)
        similarity = held_out_similarity(store, self.molecules.networks, val)
        domain = Domain.measure(task, similarity, self.molecules.y[val], blended.predictions.mean[val])
        return blended.with_header(domain=domain)

    def score(self, blended: Blended, baselines: bool = True) -> RunResult:
        """Score a blended model on each part of the split, beside its baselines (if asked) and attainable errors."""
        molecules, predictor = self.molecules, blended.predictor
        task, store, split = predictor.task, molecules.store, molecules.split
        alone = {}
        if is_numeric(task):
            for name, answers in blended.alone.items():
                parts = {part: (molecules.y[split[part]], answers[part].mean[split[part]]) for part in SPLIT_PARTS}
                alone[name] = {part: task.objective.evaluate(*values) for part, values in parts.items()}
        rivals: dict[str, Any] = {}
        predictions: dict[str, np.ndarray] = {}
        if baselines:
            kernel = kernel_baseline(blended, store, split["train"], self.settings)
            if molecules.folds:  # which baselines know nothing of: they choose by cross-validation on training rows
                molecules = replace(molecules, split=split | {"val": np.zeros(0, np.int64)}, folds=())
            rivals, predictions = score_baselines(molecules, task, self.settings.seed, self.settings.progress, kernel)
        by_part: dict[str, Answers] = {part: blended.answers for part in SPLIT_PARTS} | {"train": blended.in_sample}
        metrics: dict[str, Any] = {
            part: task.answers.score(predictor.members, store, by_part[part], split[part]) for part in SPLIT_PARTS
        }
        if self.settings.folds > 1:
            metrics |= {"folds": self.settings.folds, "val_predictions": "out-of-fold"}
        if predictor.kernel_member is not None:
            metrics["kernel_share"] = predictor.kernel_member.shares(task)
        result = RunResult(
            self.folder.path,
            task,
            metrics | {"alone": alone, "baseline": rivals},
            predictions,
            attainable_errors(task, self.molecules, blended.kernel),
            units=self.units,
            calibration=[line for line in task.answers.notes() if line not in self.task.answers.notes()],
        )
        return replace(result, notes=training_lines(self.settings, blended, result, baselines))

    def write(self, blended: Blended, result: RunResult, remarks: Sequence[str] = (), report: bool = True) -> RunResult:
        """Write the files of the run, and mark it as finished.

        The report quotes the remarks about the data. The result gets a note for each picture that it leaves out.
        """
        out, dataset = self.folder.path, self.molecules
        predictor, answers = blended.predictor, blended.answers
        predictor.header.metrics.update({part: result.metrics[part] for part in SPLIT_PARTS})
        predictor.save(out / "model.gtx")
        rows = len(dataset.files[0].rows)  # the rows of validation and test files are not listed
        split = {
            part: dataset.rows[index] for part, index in dataset.split.items() if part != "val" or not result.folded
        }
        split = {part: index[index < rows] for part, index in split.items()}
        write_split(out / "split.csv", split, [dataset.rows[fold] for fold in dataset.folds])
        write_predictions(out, predictor, dataset, answers)
        write_text(out / "metrics.json", json.dumps(result.metrics, indent=2, allow_nan=False) + "\n")
        if report:
            seconds = time.perf_counter() - self.begin
            facts = run_report(out, dataset, blended, result, seconds, remarks)
            result = replace(result, notes=[*result.notes, *_report(result.task, out, dataset, answers, facts)])
        self.folder.finish()
        return result

    @property
    def units(self) -> dict[str, str]:
        """Units of targets, by name: from the user or the public data set, otherwise from the start model."""
        units = {} if self.fine_tuning is None else self.fine_tuning.header.units
        return {name: unit for name, unit in (units | self.data.units).items() if name in self.task.targets}

    def _rows(self, *parts: str) -> TrainingRows:
        """Collect the training rows that a model file stores: SMILES, row numbers, and cells of the targets."""
        index = np.unique(np.concatenate([self.molecules.split[part] for part in parts])).tolist()
        cells = np.array([self.molecules.cells(i) for i in index], dtype=object).reshape(len(index), -1)
        values = dict(zip(self.task.targets, cells.T.tolist(), strict=True))
        smiles, numbers = self.molecules.smiles, map(self.molecules.row_number, index)
        return TrainingRows.sample([smiles[i] for i in index], list(numbers), values)


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
        for name in (*OUTPUTS, *further_names(dataset)):
            refuse_input_as_output(out / name, data.data, data.val, data.test)
    return dataset


def _build(spec: dict[str, Any]) -> nn.Module:
    return attach_foundation(build_model(spec))


def _report(task: Task, out: Path, dataset: Dataset, answers: Answers, facts: RunReport) -> list[str]:
    """Write the report and return notes on it; an error in it must not lose the model, which is written already."""
    from gtx.report import write_run_report  # matplotlib is slow to import

    try:
        return write_run_report(task, out / "report.html", dataset, answers, facts)
    except OSError:  # such as a full disk: the same command resumes
        raise
    except Exception as error:
        return [f"report.html could not be written: {type(error).__name__}: {error}"]
