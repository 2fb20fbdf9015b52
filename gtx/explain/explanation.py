"""One molecule, one target: what a trained model computes, beside the same model with random weights."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gtx.errors import InputError
from gtx.explain.account import account, random_model
from gtx.explain.findings import Findings, chosen
from gtx.explain.removal import bond_distances
from gtx.explain.subject import index, open_subject
from gtx.files import write_text
from gtx.prediction import Predictor


class Explanation(Findings):
    """The account of a trained network, with the account of the same network with random weights for comparison.

    Attention weights show the computation; they do not prove a cause. Attributes as `Findings`.
    """

    def __repr__(self) -> str:
        return f"Explanation({self.smiles}, {self.target} = {self.prediction:.4g}, {self.weights.shape[0]} layers)"

    def text(self) -> str:
        """Describe the result in lines of text."""
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
        features: what the model reads beside the molecule, numbers, or lists of numbers, by name.

    Raises:
        InputError: the molecule cannot be read, or the model writes sequences or has no such target, layer, head,
            receiver or member.
    """
    if draws < 1:
        raise InputError(f"draws: expected 1 or more, got {draws}")
    subject = open_subject(predictor, smiles, target, member, features)
    model, store, header, column, mol = subject[:5]

    trained = account(model, store, header, column, seed, draws)
    layers, heads, n, _ = trained.weights.shape
    layer = index("layer", layer, layers)
    head = None if head is None else index("head", head, heads)
    if receiver is None:
        receiver = most_telling(chosen(trained.weights, layer, head))
    return Explanation(
        **vars(trained),
        smiles=subject.smiles,
        mol=mol,
        atoms=[f"{atom.GetSymbol()}{atom.GetIdx()}" for atom in mol.GetAtoms()],
        distance=bond_distances(store.bonds.numpy(), n),
        target=header.task.prediction_names[column],
        quantity=header.quantity(column),
        layer=layer,
        head=head,
        receiver=index("receiver", receiver, n, negative=False),
        seed=seed,
        random=account(random_model(model, header, seed), store, header, column, seed, draws),
        mix=subject.mix,
        notes=subject.notes,
        neighbours=subject.neighbours,
    )


def most_telling(weights: np.ndarray) -> int:
    """The receiver whose attention `[n, n]` is farthest from even: whose entropy is lowest beside an even share's."""
    size = np.abs(weights)
    share = np.maximum(size / np.maximum(size.sum(1, keepdims=True), 1e-300), 1e-300)
    entropy, even = -(share * np.log(share)).sum(1), np.log(np.maximum((size > 0).sum(1), 1))
    return int(np.argmax(np.round(even - entropy, 9)))  # of equals, the first
