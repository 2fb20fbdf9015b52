"""The subject of an explanation: one molecule, one target, one network of a model file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any, NamedTuple

import torch
from torch import nn

from gtx.data import MoleculeStore, featurise
from gtx.errors import InputError
from gtx.explain.account import copies
from gtx.molecules.graphs import name_code
from gtx.prediction import ModelHeader, Predictor
from gtx.prediction.kernel_member import KernelMember
from gtx.prediction.neighbour_columns import neighbour_lines
from gtx.tasks import NumberTask


class Subject(NamedTuple):
    """The molecule, target and network that an explanation is about.

    Attributes:
        model: the network, on the CPU and in float64.
        store: the molecule.
        header: of the model file.
        column: number of the target.
        mol: the RDKit molecule whose atoms are those of the store.
        smiles: the molecule as given, or for a mol block its SMILES.
        kernel_member: the kernel that has a share in the prediction, likewise, or None.
        mix: what the whole model predicts, in words, where the network is a part of it.
        notes: what a reader should know about this model and molecule.
        neighbours: the training molecules that are most similar to it, in lines of text.
    """

    model: nn.Module
    store: MoleculeStore
    header: ModelHeader
    column: int
    mol: Any
    smiles: str
    kernel_member: KernelMember | None
    mix: str | None
    notes: list[str]
    neighbours: list[str]


def explained_names(predictor: Predictor) -> list[str]:
    """The names of what the model predicts, each of which can be explained.

    Raises:
        InputError: this model's predictions cannot.
    """
    header = predictor.header
    if not isinstance(header.task, NumberTask):
        raise InputError(
            f"only predictions of numbers and classes are explained; this model's task is {header.task.name}"
        )
    if names := header.featuriser.components:
        raise InputError(f"only models of one molecule a row are explained; this one reads {' and '.join(names)}")
    if not hasattr(predictor.members[0], "attention"):
        raise InputError(f"the model {header.model['name']} has no attention to explain; there is Predictor.neighbours")
    return header.task.prediction_names


def open_subject(
    predictor: Predictor, smiles: str, target: str | None, member: int, features: Mapping[str, Any] | None
) -> Subject:
    """Read the molecule and find the target and the network, see `gtx.explain.explain`."""
    header = predictor.header
    column = number_of("target", target, explained_names(predictor))
    members = len(predictor.members)
    model = deepcopy(predictor.members[index("member", member, members)]).cpu().double()
    done = featurise(header.featuriser, [smiles], workers=0)
    if header.features:
        done = header.features.joined(done, header.features.of_one(features or {}))
    if done.errors[0]:
        raise InputError(f"{smiles!r} {done.errors[0]}")
    store = done.store
    notes = [*_notes(model, store, member, members), *done.warnings[0]]
    shown = done.smiles[0] if "\n" in smiles else smiles
    mol, mix = header.featuriser.read(smiles), _mix(predictor, store, column)
    kernel_member = predictor.kernel_member and deepcopy(predictor.kernel_member).cpu().double()
    return Subject(
        model, store, header, column, mol, shown, kernel_member, mix, notes, neighbour_lines(predictor, smiles)
    )


def index(what: str, number: int, count: int, negative: bool = True) -> int:
    """A number that counts from 0, or from the end where it is negative."""
    if not (-count if negative else 0) <= number < count:
        raise InputError(f"{what} {number}: expected {-count if negative else 0} to {count - 1}")
    return number % count


def _notes(model: nn.Module, store: MoleculeStore, member: int, members: int) -> Iterator[str]:
    batch = copies(store)
    if members > 1:
        yield f"network {member} of an ensemble of {members}; the attention of the others may differ"
    if unseen := model.unseen(batch)[0]:
        yield f"not seen in training: {', '.join(name_code(*code) for code in unseen)}"
    beside = [
        "bond messages" * any(getattr(layer, "local", None) is not None for layer in model.layers),
        "whole-molecule descriptors" * (store.descriptors.shape[1] > 0),
    ]
    if any(beside):
        yield f"{' and '.join(filter(None, beside))} also reach the prediction; they stay when attention is removed"
    with torch.inference_mode():
        graph = model.graph(batch)
    if graph.num_edges < graph.num_pairs:
        yield f"this model attends over {graph.num_edges} of {graph.num_pairs} pairs; all other weights are 0"
    further = ["virtual nodes"] * (model.virtual is not None) + ["bonds as nodes"] * (model.tokens is not None)
    if further:
        yield f"this model has {' and '.join(further)}: they carry attention between atoms and are not drawn"


def _mix(predictor: Predictor, store: MoleculeStore, column: int) -> str | None:
    if predictor.kernel_member is None:
        return None
    mixed, share = predictor.predict_store(store).mean[0, column], float(predictor.kernel_member.share[column])
    return f"the model predicts {mixed:.4g}, a blend of {1 - share:.0%} network and {share:.0%} kernel"


def number_of(what: str, name: str | None, names: list[str]) -> int:
    """The place of a name among all; of none the first."""
    if name is None:
        return 0
    if name not in names:
        raise InputError(f"{what} {name!r}: the model has {', '.join(names)}")
    return names.index(name)
