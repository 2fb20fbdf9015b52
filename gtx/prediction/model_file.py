"""The model file: one safetensors file, weights of all members and a JSON header; nothing in it is ever executed."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import IO, Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import nn

import gtx.tasks
from gtx.data import FeatureColumns
from gtx.errors import InputError, did_you_mean, printable
from gtx.files import whole_file
from gtx.models import ARCHITECTURES, SOLVED, WRITERS
from gtx.models.building import SPEC
from gtx.molecules import Featuriser
from gtx.prediction.packaged import FOUNDATION, model_path
from gtx.prediction.partner import Partner
from gtx.prediction.training_rows import TrainingRows
from gtx.prediction.versions import library_versions
from gtx.prediction.weights import read_members, read_partner
from gtx.schema import ListOf, MappingOf, OrNone, Record, anything, flag, number, shown, text, whole
from gtx.tasks import TASKS, Task

FORMAT = 5
"""Raised whenever another gtx could not read the file. 2: pair features are embedded in a module of their own. 3: what
a task has learned is an entry of its own. 4: a kernel may have a share in the prediction. 5: columns of the table may
be inputs. Files of format 2 on are read."""
OLDEST = 2
CHECKSUM = "sha256"

_SCORES = Record({"per_target": MappingOf(MappingOf(OrNone(number())))})
_TUNING = Record({}, {"rates": MappingOf(number(0)), "head_first": number(0, 1)})
_PARTS = {"atoms": ListOf(text()), "bonds": ListOf(text())}
_HEADER = Record(
    {
        "members": whole(1),
        "task": Record({"name": text()}),  # which checks what it has learned itself
        "featuriser": Record({"settings": MappingOf(anything()), "hash": text()}),
        "model": SPEC,
        "versions": Record({"gtx": text()}),
    },
    {
        "partner": OrNone(SPEC),
        "smiles_column": text(),
        "features": OrNone(Record({"names": ListOf(text()), "blanks": flag()}, _PARTS)),
        "split": MappingOf(anything()),
        "metrics": Record({}, dict.fromkeys(("train", "val", "test"), _SCORES)),
        "settings": Record({}, {"start": MappingOf(text()), "tuning": _TUNING}),
    },
)


@dataclass(frozen=True)
class ModelHeader:
    """All that a model file says beside its weights.

    Attributes:
        task: what the model has learned, fitted.
        featuriser: how molecules are read.
        model: `{"name": a function of gtx.models, "arguments": {...}}`; of a module of one's own, its class's name.
        partner: of the kernel that has a share in the prediction, as `model`; or None.
        smiles_column: what the column with the molecules was called.
        features: the columns of the table that the model reads beside the molecule; or None.
        training: the rows that it keeps of those that the model learned from; None where it keeps none.
        split: how the rows were divided, and how many are in each part.
        metrics: as in `metrics.json`.
        settings: as in `config.yaml`, and `batch_pairs_used`, a number for each member; of a model that was trained
            further, `start`, what it came from; of a pretrained one, `tuning`, see `gtx.workflow.Further`.
        versions: of the libraries it was trained with.
    """

    task: Task
    featuriser: Featuriser
    model: dict[str, Any]
    partner: dict[str, Any] | None = None
    smiles_column: str = "smiles"
    features: FeatureColumns | None = None
    training: TrainingRows | None = None
    split: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=library_versions)

    @property
    def targets(self) -> list[str]:
        """Names of the T targets."""
        return list(self.task.targets)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        plain = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        plain["featuriser"] = {"settings": self.featuriser.to_dict(), "hash": self.featuriser.hash}
        plain["features"] = self.features and self.features.to_dict()
        plain["training"] = None if self.training is None else self.training.to_dict()
        return {"format": FORMAT, **plain, "task": self.task.to_dict()}

    @classmethod
    def from_dict(cls, plain: dict[str, Any], kind: type[Task] | None = None, own: bool = False) -> ModelHeader:
        """What `to_dict` described.

        Args:
            plain: of a file.
            kind: the class of a task that is not gtx's own.
            own: the model is not gtx's own.

        Raises:
            InputError: it was made by a newer or older gtx, or with other features than this one computes, or an entry
                is not in order.
        """
        Record({"format": whole()}).check(plain)
        found = plain["format"]
        if found < OLDEST:
            raise InputError(f"of format {found}, this gtx reads {OLDEST} on: use an older gtx, or train anew")
        if found > FORMAT:
            raise InputError(f"it is of format {found}, this gtx reads up to {FORMAT}: upgrade gtx")
        if found == 2:
            plain = _from_format_2(plain)
        _HEADER.check(plain)
        featuriser = Featuriser.from_dict(plain["featuriser"]["settings"])
        if featuriser.hash != plain["featuriser"]["hash"]:
            made = plain["versions"]["gtx"]
            raise InputError(f"gtx {made} made it, which describes molecules differently: use that gtx, or train anew")
        if plain.get("features"):
            plain = plain | {"features": FeatureColumns(**plain["features"])}
        if plain.get("training") is not None:
            plain = plain | {"training": TrainingRows.from_dict(plain["training"])}
        known = {entry.name: plain[entry.name] for entry in fields(cls) if entry.name in plain}
        task = (kind or _find_task(plain["task"]["name"])).from_dict(plain["task"])
        header = cls(**known | {"featuriser": featuriser, "task": task.reading(plain.get("features"))})
        if not own:
            _check_agreement(header)
        return header


def _find_task(name: str) -> type[Task]:
    """The class of one of gtx's own tasks."""
    if name not in TASKS:
        known = ", ".join(TASKS)
        raise InputError(f"task.name: expected one of {known}, got {shown(name)}; a task of your own: load(..., task=)")
    return getattr(gtx.tasks, TASKS[name].task)


def _from_format_2(plain: dict[str, Any]) -> dict[str, Any]:
    """A header in which the task was a word, and what it had learned lay beside it."""
    own = ("targets", "scaler", "interval", "vocabulary", "limit")
    learned = {name: plain[name] for name in own if plain.get(name) is not None}
    return {k: v for k, v in plain.items() if k not in own} | {"task": {"name": plain.get("task"), **learned}}


def _check_agreement(header: ModelHeader) -> None:
    """Whether the entries of a header suit each other; each by itself is in order."""
    if header.partner is not None:
        partner, outputs = header.partner, header.task.num_predictions
        _agree("partner.name", partner["name"], list(SOLVED))
        _agree("partner.arguments.out_channels", partner["arguments"].get("out_channels"), [outputs])
        _agree(
            "partner.arguments.num_descriptors", partner["arguments"].get("num_descriptors", 0), _kernel_reads(header)
        )
    if header.task.reads_similarity and (header.training is None or not len(header.training)):
        raise InputError("training: expected rows, from which task.uncertainty similarity tells the distance")
    model, given, read = header.model["name"], header.model["arguments"], header.featuriser
    known = WRITERS if header.task.writes else ARCHITECTURES | SOLVED
    if model not in known:
        names = ", ".join(known)
        raise InputError(f"model.name: {shown(model)} is not one of gtx's own: give load(..., model=...); own: {names}")
    usual = model in ARCHITECTURES and ARCHITECTURES[model].coordinates == "needed"
    coordinates = given.get("coordinates", usual)
    _agree("model.arguments.coordinates", coordinates, [False, True] if read.coordinates else [False])
    _agree("model.arguments.atom_sizes", given.get("atom_sizes"), [list(read.atom_sizes)])
    _agree("model.arguments.bond_sizes", given.get("bond_sizes"), [list(read.bond_sizes)])
    outputs = "size" if header.task.writes else "out_channels"
    _agree(f"model.arguments.{outputs}", given.get(outputs), [header.task.out_channels])
    width = header.features.width if header.features else 0
    if not header.task.writes:
        fitting = [read.num_descriptors + width] if width else [0, read.num_descriptors]
        fitting = _kernel_reads(header) if model in SOLVED else fitting
        _agree("model.arguments.num_descriptors", given.get("num_descriptors", 0), fitting)
        _agree("model.arguments.per", given.get("per", "molecule"), [header.task.per])
        _agree("model.arguments.also", given.get("also") or {}, [dict(header.task.also)])
        for name in ("atom_features", "bond_features"):
            wanted = header.features.widths.get(name, 0) if header.features else 0
            _agree(f"model.arguments.{name}", given.get(name, 0), [wanted])
    components = header.model.get("components", {})
    together = read.components and model not in SOLVED  # a kernel compares what all of a row's molecules hold
    _agree("model.components.count", components.get("count"), [len(read.components) if together else None])
    if components:
        _agree("model.components.further", components.get("further", 0), [width])


def _kernel_reads(header: ModelHeader) -> list[int]:
    """How many descriptors a kernel may read: none, or all."""
    own = header.featuriser.num_descriptors * max(1, len(header.featuriser.components))
    return [0, own + (header.features.width if header.features else 0)]


def _agree(entry: str, value: Any, fitting: list[Any]) -> None:
    """Whether a value is one of those that suit the other entries."""
    if value not in fitting:
        words = " or ".join(map(shown, fitting)) if len(fitting) < 3 else f"one of {', '.join(map(str, fitting))}"
        raise InputError(f"{entry}: expected {words}, got {shown(value)}")


def save_model(
    path: str | Path,
    members: Sequence[nn.Module],
    header: ModelHeader,
    partner: Partner | None = None,
    half: bool = False,
) -> None:
    """Write a model file, whole or not at all; the same model gives the same bytes.

    Args:
        path: where to.
        members: one network or more, all of `header.model`.
        header: everything else.
        partner: the kernel of `header.partner`.
        half: write what was learned by gradients as float16, three decimal digits, in half the bytes; it is read as
            float32.
    """
    parts = {f"members.{k}": member for k, member in enumerate(members)} | ({"partner": partner} if partner else {})
    tensors = {
        f"{part}.{name}": tensor.detach().cpu().clone().contiguous()
        for part, module in parts.items()
        for name, tensor in module.state_dict().items()
    }
    if half:
        learned = [f"{part}.{name}" for part, module in parts.items() for name, _ in module.named_parameters()]
        tensors |= {name: tensors[name].half() for name in learned if tensors[name].dtype == torch.float32}
    plain = header.to_dict() | {"members": len(members)}
    digest = _digest(io.BytesIO(save(tensors)), plain)
    with whole_file(path) as file:  # not by `save_file`, whose files nobody but the owner may read
        file.write(save(tensors, {"gtx": _text(plain | {CHECKSUM: digest})}))


def load_model(
    path: str | Path, model: nn.Module | Callable[[], nn.Module] | None = None, task: type[Task] | None = None
) -> tuple[list[nn.Module], ModelHeader]:
    """The members and the header of a model file, see `read_model`."""
    members, header, _ = read_model(path, model, task)
    return members, header


def read_model(
    path: str | Path, model: nn.Module | Callable[[], nn.Module] | None = None, task: type[Task] | None = None
) -> tuple[list[nn.Module], ModelHeader, Partner | None]:
    """Read a model file: its members, on the CPU and in evaluation mode, its header, and the kernel beside the members.

    Nothing is allocated before the header is known to be in order and to fit the tensors of the file.

    Args:
        path: the file, or `foundation`, see `gtx.prediction.packaged`.
        model: for a model that is not gtx's own: a module of the same shape, or a function that makes one.
        task: the class of a task that is not gtx's own.

    Raises:
        InputError: there is no such file, or it is damaged, foreign or of another version; the message names the entry
            or the tensor at fault.
    """
    path = model_path(path)
    try:
        with safe_open(path, "pt") as file:
            plain = _read_header(file.metadata())
            _check_whole(path, plain)
            header = ModelHeader.from_dict(plain, task, own=model is not None)
            spec = header.partner
            members = read_members(file, header.model, plain["members"], model, spec is not None)
            return members, header, spec and read_partner(file, spec, header.task.num_predictions)
    except FileNotFoundError:
        near = did_you_mean(str(path), [FOUNDATION])
        raise InputError(f"no such file: {path}{near}") from None
    except OSError as reason:
        if Path(path).is_dir():
            raise InputError(f"{path} is a folder; expected a file, such as {Path(path) / 'model.gtx'}") from None
        raise InputError(f"cannot read {path}: {reason.strerror or reason}") from None
    except InputError as reason:
        raise InputError(f"{path} cannot be used: {reason}") from None
    except SafetensorError as reason:
        what = f"({printable(str(reason), 200)}); expected one that gtx train wrote, such as run/model.gtx"
        raise InputError(f"{path} is not a whole gtx model file {what}") from None


def _check_whole(path: Path, plain: Any) -> None:
    """Refuse a file whose bytes are not those that gtx wrote; older files have no checksum."""
    if isinstance(plain, dict) and (written := plain.pop(CHECKSUM, None)):
        with path.open("rb") as raw:
            if _digest(raw, plain) != written:
                raise InputError("it is damaged: its SHA-256 is another than when gtx wrote it")


def _digest(raw: IO[bytes], plain: dict[str, Any]) -> str:
    """SHA-256 of a header and of the tensors in a safetensors file."""
    raw.seek(8 + int.from_bytes(raw.read(8), "little"))  # past the names of the tensors
    digest = hashlib.sha256(_text(plain).encode("utf-8", "surrogatepass"))
    while part := raw.read(2**20):
        digest.update(part)
    return digest.hexdigest()


def _text(plain: dict[str, Any]) -> str:
    return json.dumps(plain, ensure_ascii=False, allow_nan=False)


def _read_header(metadata: dict[str, str] | None) -> dict[str, Any]:
    if not metadata or "gtx" not in metadata:
        raise InputError("it is a safetensors file, but gtx did not write it")
    try:
        return json.loads(metadata["gtx"], parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as reason:
        raise InputError(f"its header is no JSON: {reason}") from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")
