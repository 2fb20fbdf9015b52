"""The model file: one safetensors file, weights of all members and a JSON header; nothing in it is ever executed."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import nn

from gtx.errors import InputError, printable
from gtx.models import ARCHITECTURES, WRITERS
from gtx.models.building import SPEC
from gtx.molecules import Featuriser
from gtx.prediction.versions import library_versions
from gtx.prediction.weights import read_members
from gtx.schema import ListOf, MappingOf, OrNone, Record, anything, number, one_of, shown, text, whole
from gtx.sequence import TokenVocabulary
from gtx.training import TargetScaler

FORMAT = 2
"""Raised whenever another gtx could not read the file. 2: pair features are embedded in a module of their own."""
LONGEST = 10_000
"""The most tokens that a model may be asked to write."""

_SCORES = Record({"per_target": MappingOf(MappingOf(OrNone(number())))})
_INTERVAL = Record({"level": number(0, 1), "half_width": ListOf(OrNone(number(0)))})
_HEADER = Record(
    {
        "members": whole(1),
        "task": one_of(("regression", "classification", "sequence")),
        "targets": ListOf(text(), least=1),
        "featuriser": Record({"settings": MappingOf(anything()), "hash": text()}),
        "model": SPEC,
        "versions": Record({"gtx": text()}),
    },
    {
        "scaler": OrNone(anything()),  # checks itself, as the vocabulary does
        "smiles_column": text(),
        "interval": OrNone(_INTERVAL),
        "vocabulary": OrNone(anything()),
        "limit": OrNone(whole(1, LONGEST)),
        "split": MappingOf(anything()),
        "metrics": Record({}, dict.fromkeys(("train", "val", "test"), _SCORES)),
        "settings": MappingOf(anything()),
    },
)


@dataclass(frozen=True)
class ModelHeader:
    """All that a model file says beside its weights.

    Attributes:
        task: "regression", "classification" or "sequence".
        targets: names of the T targets, in the order of the outputs.
        featuriser: how molecules are read.
        model: `{"name": a function of gtx.models, "arguments": {...}}`.
        scaler: from outputs to the targets' units; None of sequences.
        smiles_column: what the column with the molecules was called.
        interval: `{"level": 0.9, "half_width": [T numbers or None]}`, in the targets' units, or None.
        vocabulary: of the sequences, or None.
        limit: the most tokens of a sequence that is written, or None.
        split: how the rows were divided, and how many are in each part.
        metrics: as in `metrics.json`.
        settings: as in `config.yaml`.
        versions: of the libraries it was trained with.
    """

    task: str
    targets: list[str]
    featuriser: Featuriser
    model: dict[str, Any]
    scaler: TargetScaler | None = None
    smiles_column: str = "smiles"
    interval: dict[str, Any] | None = None
    vocabulary: TokenVocabulary | None = None
    limit: int | None = None
    split: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=library_versions)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        plain = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        plain["featuriser"] = {"settings": self.featuriser.to_dict(), "hash": self.featuriser.hash}
        for name in ("scaler", "vocabulary"):
            plain[name] = plain[name] and plain[name].to_dict()
        return {"format": FORMAT, **plain}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> ModelHeader:
        """What `to_dict` described.

        Raises:
            InputError: it was made by a newer or older gtx, or with other features than this one computes.
        """
        Record({"format": whole()}).check(plain)
        if plain["format"] < FORMAT:
            raise InputError(f"of format {plain['format']}, this gtx reads {FORMAT}: use an older gtx, or train anew")
        if plain["format"] > FORMAT:
            raise InputError(f"it is of format {plain['format']}, this gtx reads up to {FORMAT}: upgrade gtx")
        _HEADER.check(plain)
        featuriser = Featuriser.from_dict(plain["featuriser"]["settings"])
        if featuriser.hash != plain["featuriser"]["hash"]:
            made = plain["versions"]["gtx"]
            raise InputError(f"gtx {made} made it, which describes molecules differently: use that gtx, or train anew")
        known = {entry.name: plain[entry.name] for entry in fields(cls) if entry.name in plain}
        for name, kind in (("scaler", TargetScaler), ("vocabulary", TokenVocabulary)):
            if known.get(name) is not None:
                known[name] = kind.from_dict(known[name])
        header = cls(**known | {"featuriser": featuriser})
        _check_agreement(header)
        return header


def _check_agreement(header: ModelHeader) -> None:
    """Whether the entries of a header suit each other; each by itself is in order."""
    model, given, read = header.model["name"], header.model["arguments"], header.featuriser
    writes = header.task == "sequence"
    _agree("model.name", model, list(WRITERS if writes else ARCHITECTURES))
    coordinates = given.get("coordinates", not writes and ARCHITECTURES[model].coordinates == "needed")
    _agree("model.arguments.coordinates", coordinates, [False, True] if read.coordinates else [False])
    _agree("model.arguments.atom_sizes", given.get("atom_sizes"), [list(read.atom_sizes)])
    _agree("model.arguments.bond_sizes", given.get("bond_sizes"), [list(read.bond_sizes)])
    (_check_sequences if writes else _check_numbers)(header, given)


def _check_numbers(header: ModelHeader, given: dict[str, Any]) -> None:
    targets = len(header.targets)
    if header.scaler is None:
        raise InputError(f"scaler: the task {header.task} needs one, got None")
    _agree("scaler.task", header.scaler.task, [header.task])
    _agree("scaler.mean: its length", len(header.scaler.mean), [targets])
    _agree("model.arguments.out_channels", given.get("out_channels"), [targets])
    _agree("model.arguments.num_descriptors", given.get("num_descriptors", 0), [0, header.featuriser.num_descriptors])
    if header.interval is not None:
        _agree("interval.half_width: its length", len(header.interval["half_width"]), [targets])


def _check_sequences(header: ModelHeader, given: dict[str, Any]) -> None:
    for name in ("vocabulary", "limit"):
        if getattr(header, name) is None:
            raise InputError(f"{name}: the task sequence needs one, got None")
    _agree("targets: their number", len(header.targets), [1])
    _agree("model.arguments.size", given.get("size"), [len(header.vocabulary)])


def _agree(entry: str, value: Any, fitting: list[Any]) -> None:
    """Whether a value is one of those that suit the other entries."""
    if value not in fitting:
        words = " or ".join(map(shown, fitting)) if len(fitting) < 3 else f"one of {', '.join(map(str, fitting))}"
        raise InputError(f"{entry}: expected {words}, got {shown(value)}")


def save_model(path: str | Path, members: Sequence[nn.Module], header: ModelHeader) -> None:
    """Write a model file, whole or not at all; the same model gives the same bytes.

    Args:
        path: where to.
        members: one network or more, all of `header.model`.
        header: everything else.
    """
    tensors = {
        f"members.{k}.{name}": tensor.detach().cpu().clone().contiguous()
        for k, member in enumerate(members)
        for name, tensor in member.state_dict().items()
    }
    text = json.dumps(header.to_dict() | {"members": len(members)}, ensure_ascii=False, allow_nan=False)
    partial = Path(path).with_name(f".{Path(path).name}.{os.getpid()}.part")
    try:
        with partial.open("wb") as file:  # not by `save_file`, whose files nobody but the owner may read
            file.write(save(tensors, {"gtx": text}))
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def load_model(path: str | Path) -> tuple[list[nn.Module], ModelHeader]:
    """Read a model file: its members, on the CPU and in evaluation mode, and its header.

    Nothing is allocated before the header is known to be in order and to fit the tensors of the file.

    Raises:
        InputError: there is no such file, or it is damaged, foreign or of another version; the message names the entry
            or the tensor at fault.
    """
    try:
        with safe_open(path, "pt") as file:
            plain = _read_header(file.metadata())
            header = ModelHeader.from_dict(plain)
            return read_members(file, header.model, plain["members"]), header
    except FileNotFoundError:
        raise InputError(f"no such file: {path}") from None
    except OSError as reason:
        raise InputError(f"cannot read {path}: {reason.strerror or reason}") from None
    except InputError as reason:
        raise InputError(f"{path} cannot be used: {reason}") from None
    except SafetensorError as reason:
        raise InputError(f"{path} is not a whole gtx model file ({printable(str(reason), 200)})") from None


def _read_header(metadata: dict[str, str] | None) -> dict[str, Any]:
    if not metadata or "gtx" not in metadata:
        raise InputError("it is a safetensors file, but gtx did not write it")
    try:
        return json.loads(metadata["gtx"], parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as reason:
        raise InputError(f"its header is no JSON: {reason}") from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")
