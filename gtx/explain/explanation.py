"""One molecule, one target: what a trained model computes, beside the same model with random weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from gtx.data import MoleculeStore, featurise
from gtx.errors import InputError
from gtx.explain.account import account, copies, random_model
from gtx.explain.distances import bond_distances
from gtx.explain.findings import Findings, chosen
from gtx.files import write_text
from gtx.molecules.naming import name_code
from gtx.prediction import ModelHeader, Predictor
from gtx.tasks import NumberTask


class Explanation(Findings):
    """The account of a trained network, with the account of the same network with random weights for comparison.

    Attention weights are a picture of the computation, not a proof of reasons. Attributes as `Findings`.
    """

    def __repr__(self) -> str:
        return f"Explanation({self.smiles}, {self.target} = {self.prediction:.4g}, {self.weights.shape[0]} layers)"

    def text(self) -> str:
        """What was found, in lines of text."""
        from gtx.explain.words import report

        return report(self)

    def svg(self) -> str:
        """The whole figure as an SVG element."""
        from gtx.explain.figure import figure

        return figure(self)

    _repr_svg_ = svg

    def save(self, path: str | Path) -> None:
        """Write the figure.

        Args:
            path: `.svg`, or `.html` for a page with the figure and the text.

        Raises:
            InputError: it ends in anything else, or RDKit cannot draw on this machine.
        """
        from gtx.explain.figure import page

        path = Path(path)
        check_name(path)
        write_text(path, page(self) if path.suffix == ".html" else self.svg() + "\n")


def check_name(path: str | Path) -> None:
    """Raise InputError unless a figure can be written under that name."""
    if Path(path).suffix not in (".svg", ".html"):
        raise InputError(f"{path}: expected a file name that ends in .svg or .html")


def explain(
    predictor: Predictor,
    smiles: str,
    target: str | None = None,
    layer: int = -1,
    head: int | None = None,
    receiver: int | None = None,
    seed: int = 0,
    member: int = 0,
    draws: int = 50,
    features: Mapping[str, Any] | None = None,
) -> Explanation:
    """Explain a prediction, as far as attention can: pictures, scores per atom, and a check of those scores.

    It runs on the CPU and in float64, whatever the predictor's device.

    Args:
        predictor: a trained model.
        smiles: one molecule; a mol block too, for a model that needs coordinates.
        target: name of the target; default the first.
        layer: whose attention is drawn, from 0; negative numbers count from the last.
        head: from 0; default the mean over heads.
        receiver: the atom whose attention is drawn, in the order of the SMILES, from 0; default the one whose attention
            is farthest from even (of lowest entropy).
        seed: of the random weights and the random removals.
        member: which network of an ensemble.
        draws: random removals per number of atoms.
        features: what the model reads beside the molecule, numbers by name.

    Raises:
        InputError: the molecule cannot be read, or the model writes sequences or has no such target, layer, head,
            receiver or member.
    """
    if draws < 1:
        raise InputError(f"draws: expected 1 or more, got {draws}")
    header = predictor.header
    if not isinstance(header.task, NumberTask):
        raise InputError(
            f"only predictions of numbers and classes are explained; this model's task is {header.task.name}"
        )
    if names := header.featuriser.components:
        raise InputError(f"only models of one molecule a row are explained; this one reads {' and '.join(names)}")
    if not hasattr(predictor.members[0], "attention"):
        raise InputError(f"the model {header.model['name']} has no attention to explain; there is Predictor.nearest")
    names = header.task.prediction_names
    column = _number("target", target, names)
    model = deepcopy(predictor.members[_index("member", member, len(predictor.members))]).cpu().double()
    done = featurise(header.featuriser, [smiles], workers=0)
    if done.errors[0]:
        raise InputError(f"{smiles!r} {done.errors[0]}")
    store = done.store
    if header.features:
        store = store.with_features(header.features.of_columns(features or {}, 1))
    mol = header.featuriser.read(smiles)

    trained = account(model, store, header, column, seed, draws)
    layers, heads, n, _ = trained.weights.shape
    layer = _index("layer", layer, layers)
    head = None if head is None else _index("head", head, heads)
    if receiver is None:
        receiver = most_telling(chosen(trained.weights, layer, head))
    return Explanation(
        **vars(trained),
        smiles=done.smiles[0] if "\n" in smiles else smiles,
        mol=mol,
        atoms=[f"{atom.GetSymbol()}{atom.GetIdx()}" for atom in mol.GetAtoms()],
        distance=bond_distances(store.bonds.numpy(), n),
        target=names[column],
        quantity=header.task.quantity(column),
        layer=layer,
        head=head,
        receiver=_index("receiver", receiver, n, negative=False),
        seed=seed,
        random=account(random_model(model, header, seed), store, header, column, seed, draws),
        notes=[
            *_notes(model, store, header, member, len(predictor.members)),
            *_notes_of_mix(predictor, store, column),
            *done.warnings[0],
        ],
    )


def most_telling(weights: np.ndarray) -> int:
    """The receiver whose attention `[n, n]` is farthest from even: whose entropy is lowest beside an even share's."""
    size = np.abs(weights)
    share = np.maximum(size / np.maximum(size.sum(1, keepdims=True), 1e-300), 1e-300)
    entropy, even = -(share * np.log(share)).sum(1), np.log(np.maximum((size > 0).sum(1), 1))
    return int(np.argmax(np.round(even - entropy, 9)))  # of equals, the first


def _notes(model: nn.Module, store: MoleculeStore, header: ModelHeader, member: int, members: int) -> Iterator[str]:
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


def _notes_of_mix(predictor: Predictor, store: MoleculeStore, column: int) -> Iterator[str]:
    if predictor.partner is not None:
        mixed = predictor.predict_store(store).mean[0, column]
        words = predictor.partner.words(predictor.task)
        yield f"this is the network alone; the model predicts {mixed:.4g}, the mix of {words}"


def _number(what: str, name: str | None, names: list[str]) -> int:
    if name is None:
        return 0
    if name not in names:
        raise InputError(f"{what} {name!r}: the model has {', '.join(names)}")
    return names.index(name)


def _index(what: str, number: int, count: int, negative: bool = True) -> int:
    if not (-count if negative else 0) <= number < count:
        raise InputError(f"{what} {number}: expected {-count if negative else 0} to {count - 1}")
    return number % count
