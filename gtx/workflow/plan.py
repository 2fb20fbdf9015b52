"""What is to be trained, settled before it is: shared by `gtx train` and the trials of `gtx tune`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

from gtx.dataset import Dataset, DataSettings, fingerprint
from gtx.errors import InputError
from gtx.models import build_model
from gtx.prediction import ModelHeader
from gtx.tasks import Task
from gtx.training import Member, TrainSettings, fit, run_config
from gtx.training.watching import Watch
from gtx.workflow.further import Further
from gtx.workflow.mixing import Mixed, mixed
from gtx.workflow.outputs import training_rows
from gtx.workflow.specs import check_model, check_rates, check_rows, learned_spec, model_spec


@dataclass(frozen=True)
class Plan:
    """A model, its settings and the rows that it learns from.

    Attributes:
        data: the table, its molecules read as the model needs them.
        settings: of the model and its training.
        further: the trained model to go on from, if any.
        dataset: what was read of the table.
        task: what is learned, fitted on the training rows.
        spec: of the model, as of `gtx.workflow.model_spec`.
    """

    data: DataSettings
    settings: TrainSettings
    further: Further | None
    dataset: Dataset
    task: Task
    spec: dict[str, Any]

    @classmethod
    def make(cls, dataset: Dataset, data: DataSettings, settings: TrainSettings, further: Further | None) -> Self:
        """Settle what the rows decide; `data`, `settings` and `further` as `opened` gives them.

        Raises:
            InputError: the training rows cannot teach the task.
        """
        settings = settings.settled(dataset.task.epochs)
        task = dataset.fitted()
        task = task if further is None else further.adopted(task)
        check_rows(task, settings)
        if further is None:
            spec = model_spec(settings, data.featuriser, task, dataset.counts["train"], data.features)
        else:
            spec = further.spec(task)
        check_rates(spec, settings)
        return cls(data, settings, further, dataset, task, spec)

    @property
    def marks(self) -> dict[str, Any]:
        """Plain values that tell its data and model from any other."""
        origin = {} if self.further is None else {"from": self.further.sha256, "new_head": self.further.new_head}
        return fingerprint(self.data) | origin | {"model": self.spec}

    @property
    def config(self) -> dict[str, Any]:
        """What `config.yaml` says of its run."""
        return run_config(self.task, self.settings, self.marks)

    @property
    def origin(self) -> dict[str, Any]:
        """`{"start": ...}`, from which file the model goes on; empty where it is from scratch."""
        return {} if self.further is None else {"start": self.further.origin(self.spec, self.task)}

    @property
    def dropped(self) -> list[str]:
        """Targets of the model to go on from that the table's task has not, where it has others of them."""
        theirs = () if self.further is None else self.further.header.targets
        kept = set(theirs) & set(self.task.targets)
        return [name for name in theirs if name not in kept] if kept else []

    def fit(self, out: Path, watch: Watch | None = None) -> tuple[list[Member], ModelHeader]:
        """Train in a folder, or go on there, as `gtx.training.fit` does; the members, and the header of their file."""
        train, val = self.dataset.train, self.dataset.store.subset(self.dataset.split["val"])
        start = {}
        if self.further is not None:
            start = {"start": self.further.members, "adoption": self.further.adoption(self.task)}
        make, how = partial(build_model, self.spec), {"marks": self.marks, "watch": watch}
        members = fit(make, self.task, train, val, self.settings, out, **how, **start)
        header = ModelHeader(
            self.task,
            self.data.featuriser,
            learned_spec(self.spec, members[0].model),
            smiles_column=self.dataset.smiles_column,
            features=self.data.features,
            training=None if self.settings.training_rows is False else training_rows(self.dataset, "train"),
            split={
                "how": self.dataset.split_words,
                **self.dataset.counts,
            },
            settings=self.settings.decisive()
            | {"task": self.task.config(), "batch_pairs_used": [m.batch_pairs for m in members]}
            | self.origin,
        )
        return members, header

    def mixed(self, members: list[Member], header: ModelHeader) -> Mixed:
        """What was trained, beside a kernel."""
        learned = None if header.training is None else partial(training_rows, self.dataset, "train", "val")
        return mixed(members, header, self.dataset.store, self.dataset.split, self.settings, learned)


def opened(
    data: DataSettings, settings: TrainSettings, start: str | Path | None, new_head: bool = False
) -> tuple[DataSettings, TrainSettings, Further | None]:
    """The data read as the model needs them, the settings as the model asks for, and the model to go on from.

    Raises:
        InputError: there is no such model, or what is asked does not suit it.
    """
    if start is None:
        if new_head:
            raise InputError("--new-head: there is no trained model whose head could be made anew; name it with --from")
        return _suited(data, settings), settings, None
    further = Further.open(start, data, settings, new_head)
    data = replace(data, featuriser=further.featuriser, features=further.features)
    return data, further.tuned(settings, data.task), further


def _suited(data: DataSettings, settings: TrainSettings) -> DataSettings:
    if getattr(data.task, "writes", False):
        usual = TrainSettings()
        for name in ("model", "ensemble"):
            if getattr(settings, name) != getattr(usual, name):
                raise InputError(
                    f"task {data.task.name} knows no other {name} than {getattr(usual, name)}; leave it out"
                )
        if data.features:
            raise InputError(
                f"task {data.task.name} reads molecules alone: leave out {', '.join(data.features.options)}"
            )
        return replace(data, featuriser=replace(data.featuriser, descriptors=False))
    check_model(settings, data.featuriser, data.features)
    return data
