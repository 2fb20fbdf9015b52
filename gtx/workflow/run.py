"""A run: from molecules and their split to a scored model file, for commands and estimators."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import numpy as np
from torch import nn

from gtx.base.errors import InputError
from gtx.base.files import write_text
from gtx.data.similarity import draw_rows, nearest_similarity
from gtx.data.splits import write_split
from gtx.models import build_model
from gtx.prediction import ModelFileHeader, Predictor
from gtx.prediction.extent import TrainingExtent
from gtx.prediction.foundation import FOUNDATION_MODEL, describe_pretraining_overlap
from gtx.prediction.loading import attach_foundation, reading_parts, with_embeddings
from gtx.prediction.neighbours import MOST_MEASURED, Domain, TrainingRows
from gtx.tasks import Answers, Task
from gtx.tasks.task import is_numeric
from gtx.training import TrainedEnsembleMember, TrainSettings, fit
from gtx.training.logging import Watch
from gtx.training.pretrained_weights import PretrainedWeightLoader
from gtx.training.ranks import are_several, machines, share_store
from gtx.training.run import RunFolder, collect_run_config
from gtx.training_data import Dataset, DataSettings
from gtx.training_data.settings import LabelledMolecules, collect_data_config
from gtx.workflow.baselines import Baselines, score_baselines
from gtx.workflow.blending import Blended, blend_with_kernel, kernel_baseline
from gtx.workflow.fine_tuning import PretrainedModel
from gtx.workflow.outputs import (
    PARTS,
    RunResult,
    attainable_errors,
    report_facts,
    training_lines,
    write_predictions,
)
from gtx.workflow.specs import (
    add_learned_arguments,
    check_machine,
    check_model_settings,
    check_rates,
    check_size,
    check_training_rows_option,
    make_model_spec,
)

CACHE = "cache"
"""Folder in that of a run for featurised molecules."""


@dataclass(frozen=True)
class Run:
    """A training from molecules to a scored model file: `load`, `fit`, `blend`, `score` and `write`, in this order.

    Attributes:
        molecules: molecules with targets and a split.
        data: settings of the data, with the featuriser of the model.
        settings: settings of the model and its training, resolved.
        fine_tuning: pretrained model from which training starts, if any.
        task: the task, fitted to the training rows.
        spec: specification of the model, see `gtx.workflow.specs.make_model_spec`.
        marks: plain values that identify data and model.
        out: folder in which the run resumes and leaves its files; None for a run that leaves no files.
        begin: time at which it started, of `time.perf_counter`.
    """

    molecules: LabelledMolecules
    data: DataSettings
    settings: TrainSettings
    fine_tuning: PretrainedModel | None
    task: Task
    spec: dict[str, Any]
    marks: dict[str, Any]
    out: Path | None
    begin: float

    @classmethod
    def load(
        cls,
        data: DataSettings,
        settings: TrainSettings,
        read: Callable[[DataSettings], LabelledMolecules],
        out: Path | None = None,
        *,
        start: str | Path | None = None,
        new_head: bool = False,
        marks: dict[str, Any] | None = None,
    ) -> Self:
        """Read and split the molecules, fit the task to the training rows, and specify the model.

        Args:
            data: settings of the data.
            settings: settings of the model and its training.
            read: function that returns molecules with a split, for settings with the featuriser of the model.
            out: see the attributes.
            start: model file from which training starts, or `foundation`.
            new_head: whether the head and the scales of the start model are new for all targets.
            marks: plain values that identify data and split; default: those of `data`.

        Raises:
            InputError: the settings do not suit the model, or the task cannot be fitted to the training rows.
        """
        begin = time.perf_counter()
        data, settings, fine_tuning = prepare(data, settings, start, new_head)
        if settings.folds > 1 and data.val is not None:
            raise InputError(
                "--val: with --folds, all rows but those of test validate once; add these rows to the table"
            )
        molecules = read(data)
        settings = settings.resolved(molecules.task.epochs, machines())
        molecules = molecules.in_folds(settings.folds, data.split_settings)
        task = molecules.fitted()
        task = task if fine_tuning is None else fine_tuning.adopted(task)
        check_training_rows_option(task, settings)
        if fine_tuning is None:
            spec = make_model_spec(settings, data.featuriser, task, molecules.counts["train"], data.features)
        else:
            spec = fine_tuning.spec(task)
        check_rates(spec, settings)
        if (foundation := spec["arguments"].get("foundation")) is not None:
            molecules = replace(molecules, store=with_embeddings(molecules.store, foundation))
        marks = collect_data_config(data) if marks is None else marks
        origin = {} if fine_tuning is None else {"from": fine_tuning.sha256, "new_head": fine_tuning.new_head}
        marks = marks | origin | {"model": spec}
        return cls(molecules, data, settings, fine_tuning, task, spec, marks, out, begin)

    @property
    def folder(self) -> RunFolder:
        """Folder of the run; raise a `ValueError` if it has none."""
        if self.out is None:
            raise ValueError("expected a run with a folder, got one without")
        return RunFolder(self.out)

    def open(self, overwrite: bool = False) -> None:
        """Start in the folder, or resume there, see `RunFolder.open`."""
        self.folder.open(self.config, overwrite)

    @property
    def config(self) -> dict[str, Any]:
        """Content of the run's `config.yaml`."""
        return collect_run_config(self.task, self.settings, self.marks)

    @property
    def origin(self) -> dict[str, Any]:
        """File that the model starts from, as `{"start": ...}`; empty for a model from scratch."""
        return {} if self.fine_tuning is None else {"start": self.fine_tuning.origin(self.spec, self.task)}

    @property
    def _starts_from_foundation(self) -> bool:
        return self.fine_tuning is not None and self.fine_tuning.file == FOUNDATION_MODEL

    @property
    def units(self) -> dict[str, str]:
        """Units of targets, by name: from the user or the public data set, otherwise from the start model."""
        units = {} if self.fine_tuning is None else self.fine_tuning.header.units
        return {name: unit for name, unit in (units | self.data.units).items() if name in self.task.targets}

    @property
    def dropped(self) -> list[str]:
        """Targets of the start model that the task lacks; empty if it has none of them."""
        old = [] if self.fine_tuning is None else self.fine_tuning.header.targets
        shared = set(old) & set(self.task.targets)
        return [name for name in old if name not in shared] if shared else []

    def fit(self, watch: Watch | None = None) -> tuple[list[TrainedEnsembleMember], ModelFileHeader]:
        """Train in the folder or resume there, see `gtx.training.fit`; return the members and their header."""
        if self.out is None:
            with TemporaryDirectory() as folder:
                return replace(self, out=Path(folder)).fit(watch)
        molecules, networks = self.molecules, self.molecules.networks
        used = np.union1d(molecules.split["train"], molecules.split["val"])
        train = molecules.store.subset(used)
        if are_several(self.settings.devices):
            train = share_store(train, self.out / CACHE)
        members = fit(
            partial(_build, self.spec),
            self.task,
            train,
            train.subset(np.zeros(0, np.int64)),
            self.settings,
            self.out,
            marks=self.marks,
            folds=[{part: np.searchsorted(used, rows[part]) for part in ("train", "val")} for rows in networks],
            watch=watch,
            start=() if self.fine_tuning is None else self.fine_tuning.members,
            transfer=PretrainedWeightLoader() if self.fine_tuning is None else self.fine_tuning.transfer(self.task),
        )
        header = ModelFileHeader(
            self.task,
            self.data.featuriser,
            add_learned_arguments(self.spec, members[0].model),
            smiles_column=self.molecules.smiles_column,
            features=self.data.features,
            units=self.units,
            extent=self._extent,
            training=None if self.settings.training_rows is False else self._rows("train"),
            split={"how": self.molecules.split_summary, **self.molecules.sizes},
            settings=self.settings.decisive()
            | {"task": self.task.config(), "batch_pairs_used": [m.batch_pairs for m in members]}
            | self.origin,
        )
        return members, header

    def blend(self, members: list[TrainedEnsembleMember], header: ModelFileHeader) -> Blended:
        """Blend the trained members with a kernel, and measure the domain of the model.

        If the foundation model has a part in the predictions, the header tells how many test molecules, if any, it has
        seen.
        """
        learned = None if header.training is None else partial(self._rows, "train", "val")
        store, split = self.molecules.store, self.molecules.split
        blended = blend_with_kernel(members, header, store, self.molecules.networks, self.settings, learned)
        if len(split["test"]) and (self._starts_from_foundation or _reads_embeddings(blended.predictor)):
            seen = describe_pretraining_overlap([self.molecules.smiles[i] for i in split["test"]])
            blended = blended.with_header(settings=blended.predictor.header.settings | {"seen": seen})
        task = blended.predictor.task
        if header.training is None or not is_numeric(task) or not (len(split["train"]) and len(split["val"])):
            return blended
        val = draw_rows(split["val"], MOST_MEASURED)
        similarity = np.zeros(len(val))
        for rows in self.molecules.networks:
            own = np.isin(val, rows["val"])
            similarity[own] = nearest_similarity(store.subset(rows["train"]), store.subset(val[own]))
        domain = Domain.measure(task, similarity, self.molecules.y[val], blended.predictions.mean[val])
        return blended.with_header(domain=domain)

    def score(self, blended: Blended, baselines: bool = True) -> RunResult:
        """Score a blended model on each part of the split, beside its baselines and the attainable errors.

        Args:
            blended: result of `blend`.
            baselines: whether the baselines of the task are also scored on the same rows.
        """
        molecules, predictor = self.molecules, blended.predictor
        task, store, split = predictor.task, molecules.store, molecules.split
        alone = {}
        if is_numeric(task):
            for name, answers in blended.alone.items():
                parts = {part: (molecules.y[split[part]], answers[part].mean[split[part]]) for part in PARTS}
                alone[name] = {part: task.objective.evaluate(*values) for part, values in parts.items()}
        scored = Baselines({}, {})
        if baselines:
            kernel = kernel_baseline(blended, store, split["train"], self.settings)
            rivals = molecules  # which know no folds, and choose by cross-validation on the training rows
            if molecules.folds:
                rivals = replace(molecules, split=split | {"val": np.zeros(0, np.int64)}, folds=())
            scored = score_baselines(rivals, task, self.settings.seed, self.settings.progress, kernel)
        by_part: dict[str, Answers] = {part: blended.answers for part in PARTS} | {"train": blended.in_sample}
        result = RunResult(
            self.out,
            task,
            {part: task.answers.score(predictor.members, store, by_part[part], split[part]) for part in PARTS},
            folds=self.settings.folds,
            kernel_share=predictor.kernel_member.shares(task) if predictor.kernel_member is not None else None,
            alone=alone,
            baselines=scored,
            attainable=attainable_errors(task, molecules, blended.kernel),
            units=self.units,
            calibration=[line for line in task.answers.notes() if line not in self.task.answers.notes()],
        )
        return result.with_notes(training_lines(self.settings, blended, result, baselines))

    def write(self, blended: Blended, result: RunResult, remarks: Sequence[str] = (), report: bool = True) -> RunResult:
        """Write the files of the run, and mark it as finished.

        Args:
            blended: result of `blend`, of a run whose molecules were read from tables.
            result: result of `score`.
            remarks: notes about the data, which the report quotes.
            report: whether `report.html` is written.

        Returns:
            The result, with a note for each picture that the report leaves out.
        """
        seconds, out, dataset = time.perf_counter() - self.begin, self.folder.path, self.molecules
        if not isinstance(dataset, Dataset):
            raise TypeError(f"expected molecules of tables, got {type(dataset).__name__}")
        predictor, answers = blended.predictor, blended.answers
        predictor.header.metrics.update(result.scores)
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
            facts = report_facts(out, dataset, blended, result, seconds, remarks)
            result = result.with_notes(_report(result.task, out, dataset, answers, facts))
        self.folder.finish()
        return result

    @property
    def _extent(self) -> TrainingExtent:
        """Extent of the training rows, and of those of the model that training starts from."""
        extent = TrainingExtent.of(self.task.labelled(self.molecules.train), self.data.features)
        return extent if self.fine_tuning is None else extent | self.fine_tuning.header.extent

    def _rows(self, *parts: str) -> TrainingRows:
        """Collect the training rows that a model file stores: SMILES, row numbers, and cells of the targets."""
        index = np.unique(np.concatenate([self.molecules.split[part] for part in parts])).tolist()
        cells = np.array([self.molecules.cells(i) for i in index], dtype=object).reshape(len(index), -1)
        values = dict(zip(self.task.targets, cells.T.tolist(), strict=True))
        smiles, numbers = self.molecules.smiles, map(self.molecules.row_number, index)
        return TrainingRows.sample([smiles[i] for i in index], list(numbers), values)


def _build(spec: dict[str, Any]) -> nn.Module:
    return attach_foundation(build_model(spec))


def prepare(
    data: DataSettings, settings: TrainSettings, start: str | Path | None, new_head: bool = False
) -> tuple[DataSettings, TrainSettings, PretrainedModel | None]:
    """Adapt the settings of data and training to the model, and open the model to start from.

    Raises:
        InputError: the model does not exist, or the settings do not suit it.
    """
    if start is None:
        if new_head:
            raise InputError("--new-head: there is no trained model whose head could be made anew; name it with --from")
        return _checked(data, settings), settings, None
    check_machine(settings)
    fine_tuning = PretrainedModel.open(start, data, settings, new_head)
    data = replace(data, featuriser=fine_tuning.featuriser, features=fine_tuning.features)
    return data, fine_tuning.tuned(settings, data.task), fine_tuning


def _checked(data: DataSettings, settings: TrainSettings) -> DataSettings:
    task = data.task
    if isinstance(task, Task) and task.network:
        usual = TrainSettings()
        for name in ("model", "folds"):
            if getattr(settings, name) != getattr(usual, name):
                raise InputError(f"task {task.name} has no other {name} than {getattr(usual, name)}; leave it out")
        if data.features:
            raise InputError(f"task {task.name} reads molecules alone: leave out {', '.join(data.features.options)}")
        check_machine(settings)
        featuriser = replace(data.featuriser, descriptors=False)
        check_size(task.network, featuriser, {"size": 100} | settings.model_arguments)
        return replace(data, featuriser=featuriser)
    check_model_settings(settings, data.featuriser, data.features)
    return data


def _reads_embeddings(predictor: Predictor) -> bool:
    parts = [predictor.members[0], *([predictor.kernel_member] if predictor.kernel_member else [])]
    return any(map(reading_parts, parts))


def _report(task: Task, out: Path, dataset: Dataset, answers: Answers, facts: dict[str, Any]) -> list[str]:
    """Write the report and return notes on it; an error in it must not lose the model, which is written already."""
    from gtx.report import write_run_report  # matplotlib is slow to import

    try:
        return write_run_report(task, out / "report.html", dataset, answers, facts)
    except OSError:  # such as a full disk: the same command resumes
        raise
    except Exception as error:
        return [f"report.html could not be written: {type(error).__name__}: {error}"]
