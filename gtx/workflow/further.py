"""Going on from a trained model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch

from gtx.data import FeatureColumns
from gtx.dataset import Dataset, DataSettings, sha256
from gtx.errors import InputError
from gtx.models import build_model
from gtx.molecules import Featuriser
from gtx.prediction import ModelHeader, load_model, model_path
from gtx.tasks import Inferred, Task
from gtx.training import Adoption, Member, TrainSettings
from gtx.training.adopting import HEAD
from gtx.workflow.specs import num_descriptors


@dataclass(frozen=True)
class Further:
    """A trained model that is to be trained further: its architecture and featuriser are kept.

    A pretrained one says in its header how it is best tuned, under `settings.tuning`: `rates` and `head_first`, as
    `TrainSettings` has them. Its readout is made anew, with the descriptors and counts of substructures that a model
    from scratch has.

    Attributes:
        header: of its file.
        members: its networks.
        featuriser: how molecules are read.
        file: the name of its file, or `foundation`.
        sha256: of its file.
        features: the columns that are read beside the molecules.
        new_head: its head is made anew though it would fit, and so are the scales of targets.
    """

    header: ModelHeader
    members: list[Member]
    featuriser: Featuriser
    file: str
    sha256: str
    features: FeatureColumns | None = None
    new_head: bool = False

    @classmethod
    def open(cls, path: str | Path, data: DataSettings, settings: TrainSettings, new_head: bool = False) -> Self:
        """Read a model file.

        Raises:
            InputError: it cannot be used, or what is asked contradicts what it decides.
        """
        networks, header = load_model(path)
        _refuse_contradictions(data, settings, header)
        members = [Member(network, header.task, [], -1, np.inf) for network in networks]
        joined = data.featuriser.descriptors if "tuning" in header.settings else header.featuriser.descriptors
        featuriser = replace(header.featuriser, descriptors=joined)
        features = data.features if "tuning" in header.settings else header.features
        if new_head and not hasattr(networks[0], HEAD):
            raise InputError(f"--new-head: model {header.model['name']} has no head that could be made anew")
        return cls(header, members, featuriser, Path(path).name, sha256(model_path(path)), features, new_head)

    def tuned(self, settings: TrainSettings, task: Task | Inferred | None = None) -> TrainSettings:
        """The settings, with what its header says where nothing was asked for.

        Args:
            settings: as asked for.
            task: what is learned.
        """
        usual = dict(self.header.settings.get("tuning", {}))
        if "rates" in usual:
            if getattr(task, "per", "molecule") != "molecule":  # its counts are of molecules, see `spec`
                usual["rates"] = {part: rate for part, rate in usual["rates"].items() if part != "substructures"}
            if getattr(task, "also", None):  # as new as the head
                usual["rates"] = usual["rates"] | {"also": usual["rates"].get("head", 1.0)}
        unsaid = [name for name in ("rates", "head_first") if name in usual and getattr(settings, name) is None]
        tuned = replace(settings, **{name: usual[name] for name in unsaid})
        waits = any(0 < share < 1 for share in (tuned.rates or {}).values())
        return tuned if waits else replace(tuned, head_first=settings.head_first)

    def warnings(self, dataset: Dataset) -> list[str]:
        """Of molecules that judge the model that is trained now, and from which this one has learned already."""
        kept = self.header.training
        if kept is None:
            return []
        known, least = set(kept.smiles), "at least " * (len(kept) < kept.trained)
        counts = {
            words: (sum(dataset.smiles[i] in known for i in rows), len(rows))
            for words, rows in (("validation", dataset.split["val"]), ("test", dataset.split["test"]))
        }
        return [
            f"warning: {self.file} has learned from {least}{taught} of these {rows} {words} molecules, which flatters "
            "their scores; --split-column, --val and --test keep parts as they were"
            for words, (taught, rows) in counts.items()
            if taught
        ]

    def adopted(self, task: Task) -> Task:
        """A task, fitted, with what the model's own has learned of the targets that both have.

        Raises:
            InputError: the table contradicts what was learned, e.g. has other classes.
        """
        return task.adopting(self.header.task) if self._knows(task) else task

    def adoption(self, task: Task) -> Adoption:
        """Which weights a model for a task takes over."""
        return Adoption(self.new_head, task.outputs_of(self.header.task) if self._knows(task) else None)

    def _knows(self, task: Task) -> bool:
        """Whether what the model says of targets of the task's names is of use to it."""
        pretrained = "tuning" in self.header.settings and self.header.task.targets != task.targets
        return not self.new_head and not pretrained

    def spec(self, task: Task) -> dict[str, Any]:
        """Its architecture, with outputs for a task."""
        arguments = self.header.model["arguments"] | {"out_channels": task.out_channels}
        if task.per != self.header.task.per:
            arguments["per"] = task.per
        if task.also or self.header.task.also:
            arguments["also"] = dict(task.also)
        if "tuning" in self.header.settings:
            counted = self.featuriser.constitution if task.per == "molecule" else None
            inputs = num_descriptors(self.featuriser, self.features)
            arguments |= {"num_descriptors": inputs, "substructures": counted}
            arguments |= self.features.widths if self.features else {}
        return self.header.model | {"arguments": arguments}

    def origin(self, spec: dict[str, Any], task: Task) -> dict[str, str]:
        """Where a model of that architecture for a task comes from, and how much of it: for the header of its file."""
        with torch.device("meta"):  # names and shapes, without memory
            own = build_model(spec).state_dict()
        words = self.adoption(task).words(own, self.members[0].model.state_dict())
        return {"file": self.file, "sha256": self.sha256, "weights": words}


def _refuse_contradictions(data: DataSettings, settings: TrainSettings, header: ModelHeader) -> None:
    """What a trained model decides cannot be asked for otherwise."""
    if header.task.writes or getattr(data.task, "writes", False):
        raise InputError("--from goes on from a model that predicts numbers to one that does, not to or from sequences")
    if settings.model_arguments or settings.model not in (TrainSettings().model, header.model["name"]):
        raise InputError(
            "a model that is trained further keeps its architecture: leave out model and model_arguments "
            "(--model, --model-arguments)"
        )
    asked = data.task.config() if isinstance(data.task, Task) else getattr(data.task, "options", {})
    if asked.get("element_reference") is not None and header.targets == list(data.target_columns):
        raise InputError(
            "a model that is trained further keeps its scale: leave out element_reference (--element-reference)"
        )
    if data.featuriser.components not in ((), header.featuriser.components):
        kept = " and ".join(header.featuriser.components) or "a single molecule"
        raise InputError(f"a model that is trained further keeps its inputs: of a row it reads {kept}")
    asked, kept, usual = data.featuriser.to_dict(), header.featuriser.to_dict(), type(data.featuriser)().to_dict()
    if data.features not in (None, header.features) and "tuning" not in header.settings:
        options = ", ".join((header.features or data.features).options)
        kept = ", ".join(header.features.columns) if header.features else "none"
        raise InputError(f"a model that is trained further keeps its inputs: of {options} it has {kept}")
    for name, value in asked.items():
        if value not in (usual[name], kept[name]):
            raise InputError(f"the trained model reads molecules with {name} {kept[name]}, not {value}")
