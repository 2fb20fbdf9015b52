"""Explanations of one prediction: what they have in common, and that by attention, beside random weights."""

from __future__ import annotations

import re
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from gtx.base.errors import InputError
from gtx.base.files import write_text
from gtx.explain.findings import Findings, account, chosen, describe, random_model
from gtx.explain.relevance import shortest_path_lengths
from gtx.explain.subject import index, open_subject
from gtx.prediction import Predictor


def check_figure_name(path: str | Path) -> None:
    """Raise InputError unless a figure can be written to a file of that name."""
    if Path(path).suffix not in (".svg", ".html"):
        raise InputError(f"{path}: expected a file name that ends in .svg or .html")


# --- Explanations that are one drawing, with lines of text.

SIZE = (520, 400)
"""Width and height of a molecule, in pixels."""
LINE, LETTERS = 19, 66  # height of a line of the legend in pixels, and its most letters


class Drawn(ABC):
    """An explanation that is drawn as one molecule and described in text."""

    @abstractmethod
    def text(self) -> str:
        """Describe the result in lines of text."""

    @abstractmethod
    def drawing(self) -> str:
        """Draw the molecule with the result, as an SVG element of the size `SIZE` or a little higher."""

    @abstractmethod
    def legend(self) -> list[str]:
        """Explain the drawing in lines of text."""

    def svg(self) -> str:
        """Draw the molecule with the result, and the legend below it."""
        drawing = self.drawing()
        opened = re.match(r'<svg [^>]*?width="([\d.]+)[^>]*?height="([\d.]+)', drawing)
        if opened is None:
            raise ValueError(f"expected an SVG element with width and height, got {drawing[:80]!r}")
        width, height = map(float, opened.groups())
        lines = [piece for line in self.legend() for piece in textwrap.wrap(line, LETTERS)]
        words = "".join(
            f'<text x="{width / 2}" y="{height + LINE * (k + 1)}" text-anchor="middle" font-family="sans-serif" '
            f'font-size="13" fill="#222">{escape(line)}</text>'
            for k, line in enumerate(lines)
        )
        whole = height + LINE * (len(lines) + 1)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{whole:g}" viewBox="0 0 {width:g} '
            f'{whole:g}"><rect width="100%" height="100%" fill="#fff"/>{drawing}{words}</svg>'
        )

    def _repr_svg_(self) -> str:
        return self.svg()

    def save(self, path: str | Path) -> None:
        """Write the picture as `.svg`, or as `.html` a page with the picture and the text.

        Raises:
            InputError: the name ends in anything else.
        """
        check_figure_name(path)
        page = f"<!doctype html><meta charset=utf-8>{self.svg()}<pre>{escape(self.text())}</pre>\n"
        write_text(Path(path), page if Path(path).suffix == ".html" else self.svg() + "\n")


# --- Attention, beside the same network with random weights.


class Explanation(Findings):
    """Explanation of a prediction by attention, compared with the same network with random weights.

    Attention weights show the computation of the network, and do not prove a cause. The attributes are those of
    `Findings`.
    """

    def __repr__(self) -> str:
        return f"Explanation({self.smiles}, {self.target} = {self.prediction:.4g}, {self.weights.shape[0]} layers)"

    def text(self) -> str:
        """Describe the result in lines of text."""
        return describe(self)

    def svg(self) -> str:
        """Draw the whole figure as an SVG element."""
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
        check_figure_name(path)
        write_text(path, page(self) if path.suffix == ".html" else self.svg() + "\n")


def explain_prediction(
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
    """Explain a prediction by attention: pictures, a score for each atom, and a test of whether the scores are
    faithful.

    The computation runs on the CPU in float64, on any device of the predictor.

    Args:
        predictor: a trained model.
        smiles: SMILES of one molecule, or a mol block for a model that needs coordinates.
        target: name of the target; by default the first target.
        layer: layer whose attention is drawn, counted from 0; negative numbers count from the last layer.
        head: attention head that is drawn, counted from 0; by default the mean over heads.
        receiver: atom whose attention is drawn, in the order of the SMILES, counted from 0; by default the atom whose
            attention has the lowest entropy.
        seed: seed of the random weights and of the random removals.
        member: index of the network, from 0, in a model of several folds.
        draws: number of random removals for each number of atoms.
        features: values of the feature columns by name, numbers or lists of numbers.

    Raises:
        InputError: the molecule cannot be read, or the model writes sequences or has no such target, layer, head,
            receiver or member.
    """
    if draws < 1:
        raise InputError(f"draws: expected 1 or more, got {draws}")
    subject = open_subject(predictor, smiles, target, member, features)
    trained = account(subject, subject.model, seed, draws)
    layers, heads, n, _ = trained.weights.shape
    layer = index("layer", layer, layers)
    head = None if head is None else index("head", head, heads)
    if receiver is None:
        receiver = most_uneven(chosen(trained.weights, layer, head))
    return Explanation(
        **vars(trained),
        smiles=subject.smiles,
        mol=subject.mol,
        atoms=[f"{atom.GetSymbol()}{atom.GetIdx()}" for atom in subject.mol.GetAtoms()],
        distance=shortest_path_lengths(subject.store.bonds.numpy(), n),
        target=subject.task.answers.prediction_names[subject.column],
        quantity=subject.header.quantity(subject.column),
        layer=layer,
        head=head,
        receiver=index("receiver", receiver, n, negative=False),
        seed=seed,
        random=account(subject, random_model(subject, seed), seed, draws),
        blend=subject.blend,
        notes=subject.notes,
        neighbours=subject.neighbours,
    )


def most_uneven(weights: np.ndarray) -> int:
    """Find the receiver whose attention `[n, n]` is farthest from even: of lowest entropy beside an even share's."""
    size = np.abs(weights)
    share = np.maximum(size / np.maximum(size.sum(1, keepdims=True), 1e-300), 1e-300)
    entropy, even = -(share * np.log(share)).sum(1), np.log(np.maximum((size > 0).sum(1), 1))
    return int(np.argmax(np.round(even - entropy, 9)))  # of equals, the first
