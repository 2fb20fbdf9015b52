"""The findings for one molecule and one target: the numbers behind every figure and sentence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gtx.explain.account import Account
from gtx.explain.removal import rank_correlation


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Findings(Account):
    """The account of a trained network, beside the account of the same network with random weights.

    Attributes:
        smiles: the molecule as given.
        mol: the RDKit molecule whose atoms are the n atoms.
        atoms: `[n]`, symbol and number of each, as "O2".
        distance: float64 `[n, n]`, bonds between atoms, infinite where nothing connects them.
        target: name of the target.
        quantity: what is predicted, in words.
        layer, head, receiver: what the pictures show, from 0; head None is the mean over heads.
        seed: of the random weights and the random removals.
        random: the account of the network with random weights.
        mix: what the whole model predicts, in words, where the network is a part of it.
        notes: what a reader should know about this model and molecule.
        neighbours: the training molecules that are most similar to it, in lines of text.
    """

    smiles: str
    mol: object
    atoms: list[str]
    distance: np.ndarray
    target: str
    quantity: str
    layer: int
    head: int | None
    receiver: int
    seed: int
    random: Account
    mix: str | None
    notes: list[str]
    neighbours: list[str]

    def shown(self, account: Account | None = None) -> np.ndarray:
        """The attention of the chosen layer and head, `[n, n]`, of this network or of another account."""
        return chosen((account or self).weights, self.layer, self.head)

    def agreement(self) -> dict[str, float]:
        """Spearman's rank correlation of each score with that of random weights; NaN if either is even or n < 3."""
        scores = {name: (getattr(self, name), getattr(self.random, name)) for name in self.faithfulness}
        return {name: rank_correlation(*pair) for name, pair in scores.items()}


def chosen(weights: np.ndarray, layer: int, head: int | None) -> np.ndarray:
    """The attention `[n, n]` of a layer and head out of `[L, H, n, n]`; the mean over heads for None."""
    return weights[layer].mean(0) if head is None else weights[layer, head]
