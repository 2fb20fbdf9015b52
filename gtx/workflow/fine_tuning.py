"""Fine-tuning: training that starts from a model file, and adapting without labels."""

from __future__ import annotations

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
from gtx.data.featurising import default_workers, in_workers
from gtx.data.ledger import Ledger
from gtx.dataset import Dataset, DataSettings, sha256
from gtx.errors import InputError
from gtx.files import check_same, discard, tidy
from gtx.models import build_model
from gtx.molecules import Featuriser
from gtx.molecules.descriptors import RDKIT_DESCRIPTORS, rdkit_descriptors_of
from gtx.prediction import ModelHeader, Predictor, load_model, model_path, save_model
from gtx.tasks import Inferred, Task
from gtx.training import Member, TrainSettings, WeightTransfer, fit
from gtx.training.fitting import check_machine
from gtx.training.weight_transfer import HEAD
from gtx.workflow.specs import num_descriptors

# --- Going on from a trained model.


@dataclass(frozen=True)
class FineTuning:
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
        members = [Member(network, header.task, [], 0, np.inf) for network in networks]
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
        """Return warnings of validation and test molecules on which the start model was trained."""
        kept = self.header.training
        if kept is None:
            return []
        known, least = set(kept.smiles), "at least " * (len(kept) < kept.trained)
        counts = {
            words: (sum(dataset.smiles[i] in known for i in rows), len(rows))
            for words, rows in (("validation", dataset.split["val"]), ("test", dataset.split["test"]))
        }
        return [
            f"warning: {self.file} was trained on {least}{taught} of these {rows} {words} molecules, which flatters "
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

    def transfer(self, task: Task) -> WeightTransfer:
        """Which weights a model for a task takes over."""
        return WeightTransfer(self.new_head, task.outputs_of(self.header.task) if self._knows(task) else None)

    def _knows(self, task: Task) -> bool:
        """Tell whether the start model's knowledge of targets of the same names is of use to the task."""
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
        words = self.transfer(task).describe(own, self.members[0].model.state_dict())
        return {"file": self.file, "sha256": self.sha256, "weights": words}


def _refuse_contradictions(data: DataSettings, settings: TrainSettings, header: ModelHeader) -> None:
    """Refuse options that contradict the settings that the start model fixes."""
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


# --- `gtx adapt`: a pretrained model goes on with its descriptors, on the user's own molecules, without labels.

CHUNK = 500
HELD_OUT = 0.1
FEWEST = 10


@dataclass(frozen=True)
class Adapted:
    """Outcome of an adaptation.

    Attributes:
        ledger: the rows that could not be used, and why; None where the file was there already.
        before, after: root mean square error of the descriptors of held-out molecules, in standard deviations.
        molecules: how many it learned from.
        was_finished: whether there was nothing left to do.
    """

    ledger: Ledger | None
    before: float
    after: float
    molecules: int
    was_finished: bool = False


def adapt(
    model: str | Path,
    table: str,
    out: str | Path,
    settings: TrainSettings,
    *,
    smiles_column: str | None = None,
    workers: int | None = None,
    overwrite: bool = False,
) -> Adapted:
    """Train a pretrained model further on the molecules of a table, with RDKit's descriptors as targets.

    Called again it goes on, or says that it is done. A tenth of the molecules is held out and chooses the epoch. A
    molecule that several rows have is one.

    Args:
        model: a file whose targets are descriptors of RDKit, or `foundation`.
        table: what `gtx.data.open_table` reads; targets in it are not looked at.
        out: the model file to write; until it is there, a folder beside it, `.<name>.run`, holds what is needed to go
            on.
        settings: of training.
        smiles_column: default as `open_table` says.
        workers: processes that compute descriptors; default: as many as there are cores.
        overwrite: begin anew, whatever an interrupted call left, and whatever `out` is.

    Raises:
        InputError: the model was pretrained otherwise, fewer than ten molecules can be used, or `out` is another model.
    """
    check_machine(settings)
    out, origin = Path(out), {"file": Path(model).name, "sha256": sha256(model_path(model))}
    told = settings.decisive() | {
        "table": sha256(table) if Path(table).is_file() else None,
        "smiles_column": smiles_column,
    }
    if out.exists() and not overwrite:
        return _found(out, origin["sha256"], told)
    networks, header = load_model(model)
    if strange := [name for name in header.targets if name not in RDKIT_DESCRIPTORS]:
        raise InputError(
            f"{model} predicts {strange[0]}: gtx adapt goes on with models that predict RDKit's descriptors"
        )
    store, ledger = labelled(header, table, smiles_column, workers, settings.progress)
    if len(store) < FEWEST:
        raise InputError(
            f"{table}: expected at least {FEWEST} molecules that can be used, got {len(store)}; {ledger.summary()}"
        )
    order = np.random.default_rng(settings.seed).permutation(len(store))
    aside = round(HELD_OUT * len(store))
    val, train = store.subset(np.sort(order[:aside])), store.subset(np.sort(order[aside:]))
    task = header.task
    folder = out.with_name(f".{out.name}.run")
    marks = {"from": origin["sha256"], "molecules": store.checksum(), "model": header.model}
    first = [Member(network, task, [], 0, np.inf) for network in networks]
    make, how = partial(build_model, header.model), {"marks": marks, "overwrite": overwrite, "start": first}
    members = fit(make, task, train, val, settings, folder, **how)
    score = task.validation(val)
    before, after = (
        score(Predictor([network], header).outputs(val)[0][:, 0])["val_score"]
        for network in (networks[0], members[0].model)
    )
    origin |= {"weights": f"all, adapted to {len(train)} molecules"}
    adapted = {"before": before, "after": after, "molecules": len(train)}
    words = header.settings | {"start": origin, "adapted": told | adapted}
    save_model(out, [member.model for member in members], replace(header, settings=words, training=None), half=True)
    discard(folder)
    tidy(folder)
    return Adapted(ledger, before, after, len(train))


def _found(out: Path, start: str, told: dict[str, Any]) -> Adapted:
    """Return the adaptation in the file, if the same call made it.

    Raises:
        InputError: another did.
    """
    settings = load_model(out)[1].settings
    kept = dict(settings.get("adapted", {}))
    adapted = {name: kept.pop(name, None) for name in ("before", "after", "molecules")}
    there, here = kept | {"from": settings.get("start", {}).get("sha256")}, told | {"from": start}
    check_same(there, here, f"{out} is a model")
    return Adapted(None, **adapted, was_finished=True)


def labelled(
    header: ModelHeader, table: str, smiles_column: str | None, workers: int | None, progress: bool
) -> tuple[MoleculeStore, Ledger]:
    """The molecules of a table, each once, with their descriptors, winsorised, and what became of its rows."""
    opened, ledger = open_table(table, smiles_column), Ledger()
    rows = list(opened.rows)
    ledger.enter(rows)
    texts = [row.readable for row in rows]
    found = featurise(header.featuriser, texts, workers=workers, progress=progress)
    for row, error in zip(rows, found.errors, strict=True):
        if error and not row.error:
            ledger.error(row.number, opened.smiles_column, row.shown, error)
    once = np.sort(np.unique([found.smiles[i] for i in found.good], return_index=True)[1])  # of those that can be read
    good = [texts[i] for i in found.good[once]]
    if workers is None:
        workers = default_workers() if len(good) > CHUNK else 0
    chunks = [(good[i : i + CHUNK],) for i in range(0, len(good), CHUNK)]
    described = partial(rdkit_descriptors_of, header.featuriser.read)
    made = in_workers(described, chunks, workers) if workers else starmap(described, chunks)
    made = track(made, "Computing descriptors", len(chunks), console=Console(stderr=True)) if progress else made
    columns = [RDKIT_DESCRIPTORS.index(name) for name in header.targets]
    y = np.concatenate([np.empty((0, len(RDKIT_DESCRIPTORS))), *made])[:, columns]
    store = found.store.subset(once)
    return store.with_targets(header.task.scaler.winsorised(torch.from_numpy(y))), ledger
