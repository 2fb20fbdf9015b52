"""Fine-tuning: training that starts from a model file, and adaptation without labels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from itertools import starmap
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from rich.console import Console
from rich.progress import track

from gtx.data import FeatureColumns, MoleculeStore, featurise, open_table
from gtx.data.featurising import default_worker_count, map_in_workers
from gtx.data.row_log import RowLog
from gtx.errors import InputError
from gtx.files import check_same, discard, tidy
from gtx.models import build_model
from gtx.molecules import Featuriser
from gtx.molecules.descriptors import RDKIT_DESCRIPTORS, rdkit_descriptors_of
from gtx.prediction import ModelFileHeader, Predictor, load_networks, save_model
from gtx.prediction.foundation import resolve_model_path
from gtx.tasks import NumericTask, Regression, Task
from gtx.tasks.inferred import InferredTask
from gtx.tasks.task import check_task_capability
from gtx.training import TrainedEnsembleMember, TrainSettings, fit
from gtx.training.fitting import check_machine
from gtx.training.pretrained_weights import HEAD, PretrainedWeightLoader
from gtx.training_data import Dataset, DataSettings
from gtx.training_data.settings import hash_file
from gtx.workflow.specs import num_descriptors

# --- Training that starts from a trained model.


@dataclass(frozen=True)
class PretrainedModel:
    """Pretrained model from which fine-tuning starts: its weights, architecture and featuriser.

    The header of a pretrained model may contain good settings for fine-tuning, `rates` and `head_first` of
    `TrainSettings`, under `settings.tuning`. The fine-tuned model gets a new head, which reads descriptors and counts
    of substructures like a model trained from scratch.

    Attributes:
        header: header of the model file.
        members: networks of the pretrained model.
        featuriser: featuriser of the molecules.
        file: name of the model file, or `foundation`.
        sha256: SHA-256 of the model file.
        features: feature columns.
        new_head: whether the head and the scales of targets are new, even if the old head fits.
    """

    header: ModelFileHeader
    members: list[TrainedEnsembleMember]
    featuriser: Featuriser
    file: str
    sha256: str
    features: FeatureColumns | None = None
    new_head: bool = False

    @classmethod
    def open(cls, path: str | Path, data: DataSettings, settings: TrainSettings, new_head: bool = False) -> Self:
        """Read a model file.

        Raises:
            InputError: the file cannot be used, or the settings contradict the model.
        """
        networks, header = load_networks(path)
        _refuse_contradictions(data, settings, header)
        members = [TrainedEnsembleMember(network, header.task, [], 0, np.inf) for network in networks]
        source = data if "tuning" in header.settings else header  # a pretrained model gets a new readout
        featuriser = replace(header.featuriser, descriptors=source.featuriser.descriptors)
        features = source.features
        if new_head and not hasattr(networks[0], HEAD):
            raise InputError(f"--new-head: model {header.model['name']} has no head that could be made anew")
        return cls(
            header, members, featuriser, Path(path).name, hash_file(resolve_model_path(path)), features, new_head
        )

    def tuned(self, settings: TrainSettings, task: Task | InferredTask | None = None) -> TrainSettings:
        """Fill in the settings for fine-tuning of the header, where the user has set none.

        Args:
            settings: settings of the user.
            task: the task.
        """
        tuning = dict(self.header.settings.get("tuning", {}))
        if "rates" in tuning:
            if task is not None and task.per != "molecule":  # `substructures` are of molecules
                tuning["rates"] = {part: rate for part, rate in tuning["rates"].items() if part != "substructures"}
            if task is not None and task.also:  # as new as the head
                tuning["rates"] = tuning["rates"] | {"also": tuning["rates"].get("head", 1.0)}
        unset = [name for name in ("rates", "head_first") if name in tuning and getattr(settings, name) is None]
        tuned = replace(settings, **{name: tuning[name] for name in unset})
        waits = any(0 < share < 1 for share in (tuned.rates or {}).values())
        return tuned if waits else replace(tuned, head_first=settings.head_first)

    def warnings(self, dataset: Dataset) -> list[str]:
        """Return warnings of validation and test molecules on which the start model was trained."""
        training = self.header.training
        if training is None:
            return []
        trained, least = set(training.smiles), "at least " if len(training) < training.trained else ""
        warnings = []
        for title, rows in (("validation", dataset.split["val"]), ("test", dataset.split["test"])):
            shared = sum(dataset.smiles[i] in trained for i in rows)
            if shared:
                warnings.append(
                    f"warning: {self.file} was trained on {least}{shared} of these {len(rows)} {title} molecules, "
                    "which flatters their scores; --split-column, --val and --test keep parts as they were"
                )
        return warnings

    def adopted(self, task: Task) -> Task:
        """Give a fitted task the scales and classes of the targets that it shares with the model's task.

        Raises:
            InputError: the table contradicts them, for instance by other classes.
        """
        return task.adopting(self.header.task) if self._shares_targets(task) else task

    def transfer(self, task: Task) -> PretrainedWeightLoader:
        """Select the weights that a model for a task takes over."""
        outputs = task.outputs_of(self.header.task) if self._shares_targets(task) else None
        return PretrainedWeightLoader(self.new_head, outputs)

    def _shares_targets(self, task: Task) -> bool:
        """Return True if targets of the same name are the same; a pretrained model's are descriptors."""
        pretrained = "tuning" in self.header.settings and self.header.task.targets != task.targets
        return not self.new_head and not pretrained

    def spec(self, task: Task) -> dict[str, Any]:
        """Specify a model of its architecture for a task."""
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
        """Describe the origin of the weights of a model for a task, for the header of its file."""
        with torch.device("meta"):  # names and shapes, without memory
            state = build_model(spec).state_dict()
        weights = self.transfer(task).describe(state, self.members[0].model.state_dict())
        return {"file": self.file, "sha256": self.sha256, "weights": weights}


def _refuse_contradictions(data: DataSettings, settings: TrainSettings, header: ModelFileHeader) -> None:
    """Refuse options that contradict the settings that the start model fixes."""
    check_task_capability(header.task, "fine-tuning")
    check_task_capability(data.task, "fine-tuning")
    if settings.model_arguments or settings.model not in (TrainSettings().model, header.model["name"]):
        raise InputError(
            "a model that is trained further keeps its architecture: leave out model and model_arguments "
            "(--model, --model-arguments)"
        )
    options = data.task.config() if isinstance(data.task, Task) else getattr(data.task, "options", {})
    if options.get("element_reference") is not None and header.targets == list(data.target_columns):
        raise InputError(
            "a model that is trained further keeps its scale: leave out element_reference (--element-reference)"
        )
    if data.featuriser.components not in ((), header.featuriser.components):
        components = " and ".join(header.featuriser.components) or "a single molecule"
        raise InputError(f"a model that is trained further keeps its inputs: of a row it reads {components}")
    if data.features not in (None, header.features) and "tuning" not in header.settings:
        names = ", ".join((header.features or data.features).options)
        columns = ", ".join(header.features.columns) if header.features else "none"
        raise InputError(f"a model that is trained further keeps its inputs: of {names} it has {columns}")
    old, usual = header.featuriser.to_dict(), type(data.featuriser)().to_dict()
    for name, value in data.featuriser.to_dict().items():
        if value not in (usual[name], old[name]):
            raise InputError(f"the trained model reads molecules with {name} {old[name]}, not {value}")


# --- `gtx adapt`: further pretraining on the descriptors of the user's molecules, without labels.

CHUNK = 500  # molecules of a job
HELD_OUT = 0.1  # share of the molecules that validates
MIN_MOLECULES = 10


@dataclass(frozen=True)
class Adapted:
    """Outcome of an adaptation.

    Attributes:
        row_log: row log of the table; None if the file was complete before.
        before, after: root mean square error of the descriptors of held-out molecules, in standard deviations.
        molecules: number of training molecules.
        was_finished: True if the file was complete before.
    """

    row_log: RowLog | None
    before: float
    after: float
    molecules: int
    was_finished: bool = False


def adapt_pretrained_model(
    model: str | Path,
    table: str,
    out: str | Path,
    settings: TrainSettings,
    *,
    smiles_column: str | None = None,
    workers: int | None = None,
    overwrite: bool = False,
) -> Adapted:
    """Pretrain a model further on unlabelled molecules of your own, with RDKit's descriptors as targets.

    A second call resumes an interrupted adaptation, or returns at once. A tenth of the molecules is held out to select
    the best epoch. Repeated molecules are used once.

    Args:
        model: path of a model file whose targets are RDKit descriptors, or `foundation`.
        table: path of a table for `gtx.data.open_table`; target columns are not used.
        out: path of the model file to write. Until the file is complete, a folder `.<name>.run` next to the file
            contains the checkpoints.
        settings: settings of the training.
        smiles_column: column of the molecules; default: see `open_table`.
        workers: number of processes that compute descriptors; default: the number of cores.
        overwrite: whether an existing `out` and the checkpoints of an interrupted call are replaced.

    Raises:
        InputError: the targets of the model are not descriptors, fewer than ten molecules can be used, or `out` is
            another model.
    """
    check_machine(settings)
    out, origin = Path(out), {"file": Path(model).name, "sha256": hash_file(resolve_model_path(model))}
    marks = settings.decisive() | {
        "table": hash_file(table) if Path(table).is_file() else None,
        "smiles_column": smiles_column,
    }
    if out.exists() and not overwrite:
        return _finished(out, origin["sha256"], marks)
    networks, header = load_networks(model)
    others = [name for name in header.targets if name not in RDKIT_DESCRIPTORS]
    if others or not isinstance(header.task, NumericTask):
        raise InputError(
            f"{model} predicts {(others or header.targets)[0]}: gtx adapt goes on with models that predict RDKit's "
            "descriptors"
        )
    store, row_log = described_molecules(header, table, smiles_column, workers, settings.progress)
    if len(store) < MIN_MOLECULES:
        raise InputError(
            f"{table}: expected at least {MIN_MOLECULES} molecules that can be used, got {len(store)}; "
            f"{row_log.summary()}"
        )
    order = np.random.default_rng(settings.seed).permutation(len(store))
    held_out = round(HELD_OUT * len(store))
    val, train = store.subset(np.sort(order[:held_out])), store.subset(np.sort(order[held_out:]))
    folder, task = out.with_name(f".{out.name}.run"), header.task
    members = fit(
        partial(build_model, header.model),
        task,
        train,
        val,
        settings,
        folder,
        marks={"from": origin["sha256"], "molecules": store.checksum(), "model": header.model},
        overwrite=overwrite,
        start=[TrainedEnsembleMember(network, task, [], 0, np.inf) for network in networks],
    )
    score = task.validation(val)
    before, after = (
        score(Predictor([network], header).outputs(val)[0][:, 0])["val_score"]
        for network in (networks[0], members[0].model)
    )
    origin |= {"weights": f"all, adapted to {len(train)} molecules"}
    adapted = {"before": before, "after": after, "molecules": len(train)}
    header = replace(header, settings=header.settings | {"start": origin, "adapted": marks | adapted}, training=None)
    save_model(out, [member.model for member in members], header, half=True)
    discard(folder)
    tidy(folder)
    return Adapted(row_log, before, after, len(train))


def _finished(out: Path, start: str, marks: dict[str, Any]) -> Adapted:
    """Return the outcome of the adaptation in a file.

    Raises:
        InputError: a call with other arguments wrote the file.
    """
    settings = load_networks(out)[1].settings
    old = dict(settings.get("adapted", {}))
    adapted = {name: old.pop(name, None) for name in ("before", "after", "molecules")}
    check_same(old | {"from": settings.get("start", {}).get("sha256")}, marks | {"from": start}, f"{out} is a model")
    return Adapted(None, **adapted, was_finished=True)


def described_molecules(
    header: ModelFileHeader, table: str, smiles_column: str | None, workers: int | None, progress: bool
) -> tuple[MoleculeStore, RowLog]:
    """Read the different molecules of a table, with winsorised descriptors as targets; also return its row log."""
    source, row_log = open_table(table, smiles_column), RowLog()
    rows = list(source.rows)
    row_log.enter(rows)
    texts = [row.readable for row in rows]
    molecules = featurise(header.featuriser, texts, workers=workers, progress=progress)
    for row, error in zip(rows, molecules.errors, strict=True):
        if error and not row.error:
            row_log.error(row.number, source.smiles_column, row.message_text, error)
    readable = [molecules.smiles[i] for i in molecules.good]
    unique = np.sort(np.unique(readable, return_index=True)[1])
    good = [texts[i] for i in molecules.good[unique]]
    if workers is None:
        workers = default_worker_count() if len(good) > CHUNK else 0
    chunks = [(good[i : i + CHUNK],) for i in range(0, len(good), CHUNK)]
    describe = partial(rdkit_descriptors_of, header.featuriser.read)
    parts: Iterable[np.ndarray] = map_in_workers(describe, chunks, workers) if workers else starmap(describe, chunks)
    if progress:
        parts = track(parts, "Computing descriptors", len(chunks), console=Console(stderr=True))
    columns = [RDKIT_DESCRIPTORS.index(name) for name in header.targets]
    y = torch.from_numpy(np.concatenate([np.empty((0, len(RDKIT_DESCRIPTORS))), *parts])[:, columns])
    if isinstance(header.task, Regression) and header.task.scaler is not None:
        y = header.task.scaler.winsorised(y)
    return molecules.store.subset(unique).with_targets(y), row_log
