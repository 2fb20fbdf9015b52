"""Plan of a training: from molecules and their split to a model and its header, for commands and estimators."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from torch import nn

from gtx.data.similarity import draw_rows, nearest_similarity
from gtx.errors import InputError
from gtx.models import build_model
from gtx.prediction import ModelFileHeader, Predictor
from gtx.prediction.extent import TrainingExtent
from gtx.prediction.foundation import FOUNDATION_MODEL, describe_pretraining_overlap
from gtx.prediction.loading import attach_foundation
from gtx.prediction.neighbours import MOST_MEASURED, Domain, TrainingRows
from gtx.tasks import NumericTask, Task
from gtx.training import TrainedEnsembleMember, TrainSettings, fit
from gtx.training.logging import Watch
from gtx.training.pretrained_weights import PretrainedWeightLoader
from gtx.training.ranks import are_several, share_store
from gtx.training.run import collect_run_config
from gtx.training_data import DataSettings
from gtx.training_data.settings import LabelledMolecules, collect_data_config
from gtx.workflow.blending import Blended, blend_with_kernel
from gtx.workflow.fine_tuning import PretrainedModel
from gtx.workflow.specs import (
    WRITER,
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
class Plan:
    """Molecules, model and settings of a training.

    Attributes:
        molecules: molecules with targets and a split.
        data: settings of the data, with the featuriser of the model.
        settings: settings of the model and its training.
        fine_tuning: pretrained model from which training starts, if any.
        task: the task, fitted to the training rows.
        spec: specification of the model, see `gtx.workflow.specs.make_model_spec`.
        marks: plain values that identify data and model.
    """

    molecules: LabelledMolecules
    data: DataSettings
    settings: TrainSettings
    fine_tuning: PretrainedModel | None
    task: Task
    spec: dict[str, Any]
    marks: dict[str, Any]

    @classmethod
    def make(
        cls,
        molecules: LabelledMolecules,
        data: DataSettings,
        settings: TrainSettings,
        fine_tuning: PretrainedModel | None = None,
        marks: dict[str, Any] | None = None,
    ) -> Self:
        """Fit the task to the training rows and specify the model.

        Args:
            molecules: see the attributes.
            data, settings, fine_tuning: results of `prepare`.
            marks: plain values that identify data and split; default: those of `data`.

        Raises:
            InputError: the task cannot be fitted to the training rows.
        """
        settings = settings.resolved(molecules.task.epochs)
        task = molecules.fitted()
        task = task if fine_tuning is None else fine_tuning.adopted(task)
        check_training_rows_option(task, settings)
        if fine_tuning is None:
            spec = make_model_spec(settings, data.featuriser, task, molecules.counts["train"], data.features)
        else:
            spec = fine_tuning.spec(task)
        check_rates(spec, settings)
        marks = collect_data_config(data) if marks is None else marks
        origin = {} if fine_tuning is None else {"from": fine_tuning.sha256, "new_head": fine_tuning.new_head}
        return cls(molecules, data, settings, fine_tuning, task, spec, marks | origin | {"model": spec})

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

    def fit(self, out: Path, watch: Watch | None = None) -> tuple[list[TrainedEnsembleMember], ModelFileHeader]:
        """Train in a folder or resume there, see `gtx.training.fit`; return the members and their header."""
        train = self.molecules.train
        if are_several(self.settings.devices):
            train = share_store(train, out / CACHE)
        members = fit(
            partial(_build, self.spec),
            self.task,
            train,
            self.molecules.store.subset(self.molecules.split["val"]),
            self.settings,
            out,
            marks=self.marks,
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
            split={"how": self.molecules.split_summary, **self.molecules.counts},
            settings=self.settings.decisive()
            | {"task": self.task.config(), "batch_pairs_used": [m.batch_pairs for m in members]}
            | self.origin,
        )
        return members, header

    def blend(self, members: list[TrainedEnsembleMember], header: ModelFileHeader) -> Blended:
        """Blend the trained members with a kernel, and measure the domain of the model.

        If the foundation model has a part in the predictions, the header tells how many test molecules it has seen.
        """
        learned = None if header.training is None else partial(self._rows, "train", "val")
        store, split = self.molecules.store, self.molecules.split
        blended = blend_with_kernel(members, header, store, split, self.settings, learned)
        if self._starts_from_foundation or _compares_embeddings(blended.predictor):
            seen = describe_pretraining_overlap([self.molecules.smiles[i] for i in split["test"]])
            blended = blended.with_header(settings=blended.predictor.header.settings | {"seen": seen})
        task = blended.predictor.task
        if (
            header.training is None
            or not isinstance(task, NumericTask)
            or not (len(split["train"]) and len(split["val"]))
        ):
            return blended
        val = draw_rows(split["val"], MOST_MEASURED)
        similarity = nearest_similarity(store.subset(split["train"]), store.subset(val))
        domain = Domain.measure(task, similarity, self.molecules.y[val], blended.predictions.mean[val])
        return blended.with_header(domain=domain)

    @property
    def _extent(self) -> TrainingExtent:
        """Extent of the training rows, and of those of the model that training starts from."""
        extent = TrainingExtent.of(self.task.labelled(self.molecules.train), self.data.features)
        return extent if self.fine_tuning is None else extent | self.fine_tuning.header.extent

    def _rows(self, *parts: str) -> TrainingRows:
        """Collect the training rows that a model file stores: SMILES, row numbers, and cells of the targets."""
        index = np.sort(np.concatenate([self.molecules.split[part] for part in parts])).tolist()
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
    if isinstance(task, Task) and task.writes:
        usual = TrainSettings()
        for name in ("model", "ensemble"):
            if getattr(settings, name) != getattr(usual, name):
                raise InputError(f"task {task.name} has no other {name} than {getattr(usual, name)}; leave it out")
        if data.features:
            raise InputError(f"task {task.name} reads molecules alone: leave out {', '.join(data.features.options)}")
        check_machine(settings)
        featuriser = replace(data.featuriser, descriptors=False)
        check_size(WRITER, featuriser, {"size": 100} | settings.model_arguments)
        return replace(data, featuriser=featuriser)
    check_model_settings(settings, data.featuriser, data.features)
    return data


def _compares_embeddings(predictor: Predictor) -> bool:
    kernel = predictor.kernel_member.kernel if predictor.kernel_member else predictor.members[0]
    return "foundation" in getattr(kernel, "kernel_names", ())
