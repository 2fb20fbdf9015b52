"""Fine-tuning: training that starts from a model file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch

from gtx.base.errors import InputError
from gtx.data.feature_columns import NO_FEATURES, FeatureColumns
from gtx.models import build_model
from gtx.models.catalogue import CLOSED_FORM_MODELS
from gtx.molecules import Featuriser
from gtx.prediction import ModelFileHeader
from gtx.prediction.foundation import FOUNDATION_MODEL, resolve_model_path
from gtx.prediction.model_file import read_model
from gtx.tasks import Task
from gtx.tasks.combined import InferredTask
from gtx.training import TrainedMember, TrainSettings
from gtx.training.module import HEAD, PretrainedWeightLoader
from gtx.training_data import Dataset, DataSettings, hash_file
from gtx.workflow.specs import check_machine, check_model_settings


@dataclass(frozen=True)
class PretrainedModel:
    """Pretrained model from which fine-tuning starts: its weights, architecture and featuriser.

    The header of a pretrained model may contain good settings for fine-tuning, `rates` and `head_first` of
    `TrainSettings`, under `settings.tuning`. The fine-tuned model gets a new head, which reads descriptors and counts
    of substructures like a model trained from scratch.

    Attributes:
        header, members: header and networks of the model file.
        featuriser, features: featuriser and feature columns of the fine-tuned model.
        file, sha256: name of the model file, or `foundation`, and its SHA-256.
        new_head: whether the head and the scales of targets are new, even if the old head fits.
    """

    header: ModelFileHeader
    members: list[TrainedMember]
    featuriser: Featuriser
    file: str
    sha256: str
    features: FeatureColumns = NO_FEATURES
    new_head: bool = False

    @classmethod
    def open(cls, path: str | Path, data: DataSettings, settings: TrainSettings, new_head: bool = False) -> Self:
        """Read a model file; raise an `InputError` if it cannot be used, or the settings contradict the model."""
        networks, header, _ = read_model(path)
        header = header.with_extent(networks[0])
        _refuse_contradictions(data, settings, header)
        members = [TrainedMember(network, header.task, [], 0, np.inf) for network in networks]
        source = data if "tuning" in header.settings else header  # a pretrained model gets a new readout
        featuriser = replace(header.featuriser, descriptors=source.featuriser.descriptors)
        features = source.features
        if new_head and not hasattr(networks[0], HEAD):
            raise InputError(f"new_head: model {header.model['name']} has no head that could be made anew")
        return cls(
            header, members, featuriser, Path(path).name, hash_file(resolve_model_path(path)), features, new_head
        )

    def tuned(self, settings: TrainSettings, task: Task | InferredTask | None = None) -> TrainSettings:
        """Fill in the settings for fine-tuning of the header, where the user has set none."""
        tuning = dict(self.header.settings.get("tuning", {}))
        if "rates" in tuning:
            if task is not None and task.level != "molecule":  # `substructures` are of molecules
                tuning["rates"] = {
                    part: rate for part, rate in tuning["rates"].items() if part != "readout.substructures"
                }
            if hasattr(task, "tasks"):  # as new as the head
                tuning["rates"] = tuning["rates"] | {"also": tuning["rates"].get("head", 1.0)}
        unset = [name for name in ("rates", "head_first") if name in tuning and getattr(settings, name) is None]
        tuned = replace(settings, **{name: tuning[name] for name in unset})
        waits = any(0 < share < 1 for share in (tuned.rates or {}).values())
        return tuned if waits else replace(tuned, head_first=settings.head_first)

    def warnings(self, dataset: Dataset) -> list[str]:
        """Return warnings of validation and test molecules on which the start model was, or may have been, trained."""
        training, remedy = self.header.training, "--split-column, --val and --test keep parts as they were"
        if training is None and self.file == FOUNDATION_MODEL:  # whose corpus the test rows are compared with
            return []
        sampled, warnings = training is not None and training.is_sample, []
        trained, least = set(training.smiles if training else ()), "at least " if sampled else ""
        for title, rows in (("validation", dataset.split["val"]), ("test", dataset.split["test"])):
            shared = sum(dataset.smiles[i] in trained for i in rows)
            if shared:
                warnings.append(
                    f"warning: {self.file} was trained on {least}{shared} of these {len(rows)} {title} molecules, "
                    f"which flatters their scores; {remedy}"
                )
        if training is None or (sampled and not warnings):
            kept = "no" if training is None else f"{len(training):,} of {training.trained:,}"
            unknown = "on how many of these validation and test molecules it was trained is unknown"
            warnings.append(f"warning: {self.file} contains {kept} training rows: {unknown}; {remedy}")
        return warnings

    def adopted(self, task: Task) -> Task:
        """Give a fitted task the scales and classes of the targets that it shares; raise an `InputError` for others."""
        return task.take_over(self.header.task) if self._shares_targets(task) else task

    def transfer(self, task: Task) -> PretrainedWeightLoader:
        """Select the weights that a model for a task takes over."""
        outputs = task.outputs_of(self.header.task) if self._shares_targets(task) else None
        return PretrainedWeightLoader(self.new_head, outputs)

    def _shares_targets(self, task: Task) -> bool:
        """Return True if targets of the same name are the same; a pretrained model's are labels of its corpus."""
        pretrained = "tuning" in self.header.settings and self.header.task.targets != task.targets
        return not self.new_head and not pretrained

    def spec(self, task: Task) -> dict[str, Any]:
        """Specify a model of its architecture for a task."""
        arguments = self.header.model["arguments"] | {"out_channels": task.objective.out_channels}
        if task.level != self.header.task.level:
            arguments["per"] = task.level
        if task.also or self.header.task.also:
            arguments["also"] = dict(task.also)
        if "tuning" in self.header.settings:
            counted = self.featuriser.constitution if task.level == "molecule" else None
            arguments |= self.features.network_inputs(self.featuriser) | {"substructures": counted}
        return self.header.model | {"arguments": arguments}

    @property
    def marks(self) -> dict[str, Any]:
        """Values that identify the model for `config.yaml`."""
        return {"from": self.sha256, "new_head": self.new_head}

    def notes(self, dataset: Dataset, task: Task, spec: Mapping[str, Any]) -> list[str]:
        """Return notes on what a model for a task takes over, and what it has seen, a line each."""
        origin, shared = self.origin(task, spec), set(self.header.targets) & set(task.targets)
        notes = [f"going on from {origin['file']}: {origin['weights']}", *self.warnings(dataset)]
        before = self.header.task
        another = type(before) is not type(task) and before.objective.out_channels == task.objective.out_channels
        if another and self._shares_targets(task):
            notes.append(f"warning: the outputs start from those of {before.name}; `new_head` makes new ones")
        dropped = [name for name in self.header.targets if shared and name not in shared]
        return [*notes, f"the model predicts no more: {', '.join(dropped)}"] if dropped else notes

    def origin(self, task: Task, spec: Mapping[str, Any]) -> dict[str, str]:
        """Describe the origin of the weights of a model for a task, for the header of its file."""
        with torch.device("meta"):  # names and shapes, without memory
            state = build_model(spec).state_dict()
        weights = self.transfer(task).describe(state, self.members[0].model.state_dict())
        return {"file": self.file, "sha256": self.sha256, "weights": weights}


def prepare(
    data: DataSettings, settings: TrainSettings, start: str | Path | None, new_head: bool = False
) -> tuple[DataSettings, TrainSettings, PretrainedModel | None]:
    """Adapt the settings of data and training to the model, which they must suit, and open the model to start from."""
    fine_tuning = None
    if start is not None:
        check_machine(settings)
        fine_tuning = PretrainedModel.open(start, data, settings, new_head)
        data = replace(data, featuriser=fine_tuning.featuriser, features=fine_tuning.features)
        settings = fine_tuning.tuned(settings, data.task)
    elif new_head:
        raise InputError("new_head: there is no trained model whose head could be made anew; name it with `start`")
    else:
        check_model_settings(settings, data.featuriser, data.features, data.task)
        if isinstance(data.task, Task) and data.task.network:  # which reads no descriptors
            data = replace(data, featuriser=replace(data.featuriser, descriptors=False))
    if settings.folds > 1 and data.val is not None:
        raise InputError("val: with `folds`, all rows but those of test validate once; add these rows to the table")
    return data, settings, fine_tuning


def _refuse_contradictions(data: DataSettings, settings: TrainSettings, header: ModelFileHeader) -> None:
    """Refuse options that contradict the settings that the start model fixes."""
    for task in (header.task, data.task):
        if task is not None and task.writes:
            raise InputError(f"task {task.name} does not support training that starts from another model (`start`)")
    if (name := header.model["name"]) in CLOSED_FORM_MODELS:
        raise InputError(f"model {name} is solved in closed form, and no training can go on from it: leave out `start`")
    if settings.model_arguments or settings.model not in (TrainSettings().model, header.model["name"]):
        raise InputError(
            "a model that is trained further keeps its architecture: leave out `model` and `model_arguments`"
        )
    options = data.task.config() if isinstance(data.task, Task) else getattr(data.task, "options", {})
    if options.get("element_reference") is not None and header.targets == list(data.target_columns):
        raise InputError("a model that is trained further keeps its scale: leave out `element_reference`")
    given, kept = data.featuriser, header.featuriser
    if given.components not in ((), kept.components) or given.unit not in ("molecule", kept.unit):
        inputs = " and ".join(kept.components) or f"a single {kept.unit}"
        raise InputError(f"a model that is trained further keeps its inputs: of a row it reads {inputs}")
    if data.features not in (NO_FEATURES, header.features) and "tuning" not in header.settings:
        names = ", ".join((header.features if header.features.columns else data.features).options)
        columns = ", ".join(header.features.columns) or "none"
        raise InputError(f"a model that is trained further keeps its inputs: of {names} it has {columns}")
    old, usual = header.featuriser.to_dict(), type(data.featuriser)().to_dict()
    for name, value in data.featuriser.to_dict().items():
        if value not in (usual.get(name), old.get(name)):
            raise InputError(f"the trained model reads molecules with {name} {old.get(name)}, not {value}")
