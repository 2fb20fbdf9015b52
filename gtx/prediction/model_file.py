"""The model file: one safetensors file, weights of all members and a JSON header; nothing in it is ever executed."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import nn

import gtx.models
from gtx.errors import InputError
from gtx.molecules import Featuriser
from gtx.prediction.versions import library_versions
from gtx.sequence import TokenVocabulary
from gtx.training import TargetScaler

FORMAT = 2
"""Raised whenever another gtx could not read the file. 2: pair features are embedded in a module of their own."""


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
        if plain["format"] < FORMAT:
            raise InputError(f"of format {plain['format']}, this gtx reads {FORMAT}: use an older gtx, or train anew")
        if plain["format"] > FORMAT:
            raise InputError(f"it is of format {plain['format']}, this gtx reads up to {FORMAT}: upgrade gtx")
        featuriser = Featuriser.from_dict(plain["featuriser"]["settings"])
        if featuriser.hash != plain["featuriser"]["hash"]:
            made = plain["versions"]["gtx"]
            raise InputError(f"gtx {made} made it, which describes molecules differently: use that gtx, or train anew")
        known = {entry.name: plain[entry.name] for entry in fields(cls) if entry.name in plain}
        for name, kind in (("scaler", TargetScaler), ("vocabulary", TokenVocabulary)):
            if known.get(name) is not None:
                known[name] = kind.from_dict(known[name])
        return cls(**known | {"featuriser": featuriser})


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
        save_file(tensors, partial, {"gtx": text})
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def load_model(path: str | Path) -> tuple[list[nn.Module], ModelHeader]:
    """Read a model file: its members, on the CPU and in evaluation mode, and its header.

    Raises:
        InputError: there is no such file, or it is damaged, foreign or of another version.
    """
    members = []
    try:
        with safe_open(path, "pt") as file:
            plain = _read_header(file.metadata())
            header = ModelHeader.from_dict(plain)
            for k in range(plain["members"]):
                model = build_model(header.model)
                model.load_state_dict({name: file.get_tensor(f"members.{k}.{name}") for name in model.state_dict()})
                members.append(model.eval())
    except FileNotFoundError:
        raise InputError(f"no such file: {path}") from None
    except OSError as reason:
        raise InputError(f"cannot read {path}: {reason.strerror or reason}") from None
    except InputError as reason:
        raise InputError(f"{path} cannot be used: {reason}") from None
    except (SafetensorError, AttributeError, KeyError, IndexError, TypeError, ValueError, RuntimeError) as reason:
        detail = " ".join(str(reason).split())
        raise InputError(f"{path} is not a whole gtx model file ({type(reason).__name__}: {detail[:200]})") from None
    return members, header


def build_model(spec: dict[str, Any]) -> nn.Module:
    """The untrained network of a specification `{"name": ..., "arguments": {...}}`."""
    makers = {name: entry.make for name, entry in gtx.models.ARCHITECTURES.items()} | gtx.models.WRITERS
    if spec["name"] not in makers:
        raise InputError(f"its model {spec['name']!r} is unknown; gtx has {', '.join(makers)}")
    return makers[spec["name"]](**spec["arguments"])


def _read_header(metadata: dict[str, str] | None) -> dict[str, Any]:
    if not metadata or "gtx" not in metadata:
        raise InputError("it is a safetensors file, but gtx did not write it")
    return json.loads(metadata["gtx"])
