"""Attributions: what each atom or substructure adds to a prediction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import factorial
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from gtx.data import MoleculeStore
from gtx.errors import InputError
from gtx.explain.account import copies, in_units, outputs_without
from gtx.explain.drawn import SIZE, Drawn
from gtx.explain.subject import open_subject
from gtx.explain.words import headline
from gtx.molecules import draw_molecule, substructures
from gtx.prediction import Predictor
from gtx.prediction.kernel_member import KernelMember, blend_outputs

# --- What each atom brings to a prediction: Shapley values of taking sets of atoms away.

EXACT = 10
"""Up to so many players all their sets are taken, 1,024 of them."""


class Shapley(NamedTuple):
    """Shapley values of n players.

    Attributes:
        values: `[n]`; they sum to the worth of all players less that of none.
        errors: `[n]`, the standard error of each value where sets were drawn, 0 where all were taken.
        sets: how many sets were taken away.
    """

    values: np.ndarray
    errors: np.ndarray
    sets: int


def shapley(change: Callable[[np.ndarray], np.ndarray], players: int, permutations: int = 50, seed: int = 0) -> Shapley:
    r"""The mean of what a player adds to the players before it, over all orders of the players:

    \[ \phi_i = \sum_{S \not\ni i} \frac{|S|!\,(n - |S| - 1)!}{n!} \bigl(v(S \cup i) - v(S)\bigr) \]

    v(S) is the prediction with only the players S, so players that are alike have equal values, one that changes
    nothing has 0, and the values sum to v(all) - v(none) (efficiency).

    Up to `EXACT` players the sum is worked out. Above, orders are drawn, each together with its reverse; the values of
    one order sum to v(all) - v(none) too, and so does their mean.

    Sources: Shapley 1953; sampled orders: Castro et al. 2009 (10.1016/j.cor.2008.04.004), with reverses: Mitchell et
    al. 2022 (arXiv:2104.12199).

    Args:
        change: from sets of players, bool `[m, n]`, to the change of the prediction `[m]` when each set is taken away.
        players: how many there are, n.
        permutations: orders drawn, beside as many reverses; 2 or more.
        seed: of the orders.
    """
    return _exact(change, players) if players <= EXACT else _sampled(change, players, permutations, seed)


def _exact(change: Callable[[np.ndarray], np.ndarray], n: int) -> Shapley:
    sets = np.arange(2**n)
    present = (sets[:, None] >> np.arange(n)) % 2 == 1
    worth, size = change(~present), present.sum(1)
    weight = np.array([factorial(s) * factorial(n - s - 1) / factorial(n) for s in range(n)])
    values = np.empty(n)
    for i in range(n):
        without = sets[~present[:, i]]
        values[i] = weight[size[without]] @ (worth[without | 1 << i] - worth[without])
    return Shapley(values, np.zeros(n), len(sets))


def _sampled(change: Callable[[np.ndarray], np.ndarray], n: int, permutations: int, seed: int) -> Shapley:
    generator = np.random.default_rng(seed)
    ends = change(np.array([[True] * n, [False] * n]))
    pairs = np.empty((permutations, n))
    for k in range(permutations):
        order = generator.permutation(n)
        gains = np.empty((2, n))
        for gain, players in zip(gains, (order, order[::-1]), strict=True):
            place = np.empty(n, dtype=int)
            place[players] = np.arange(n)
            absent = place[None] >= np.arange(1, n)[:, None]  # row s: all but the first s + 1
            gain[players] = np.diff(np.concatenate([ends[:1], change(absent), ends[1:]]))
        pairs[k] = gains.mean(0)
    errors = pairs.std(0, ddof=1) / np.sqrt(permutations)
    return Shapley(pairs.mean(0), errors, 2 * permutations * (n - 1) + 2)


# --- One molecule, one target: what each atom, or each substructure, brings to the prediction.


@dataclass(frozen=True, kw_only=True, eq=False)
class Attribution(Drawn):
    """Shapley values of the parts of a molecule of n atoms; all numbers are in the target's unit.

    Attributes:
        smiles: the molecule as given.
        mol: the RDKit molecule whose atoms are the n atoms.
        quantity: what is predicted, in words.
        prediction: of the target, by the whole model; for classes the probability of class 1.
        without: the baseline, the prediction without the parts; `parts.values` sum to the difference.
        players: int `[n]`, to which part each atom belongs, from 0.
        parts: the Shapley value of each part.
        sums: what the values sum to, in words: of the network and of the kernel, and what the baseline is made of.
        notes: what a reader should know about this model and molecule.
        neighbours: the training molecules that are most similar to it, in lines of text.
    """

    smiles: str
    mol: Any
    quantity: str
    prediction: float
    without: float
    players: np.ndarray
    parts: Shapley
    sums: list[str]
    notes: list[str]
    neighbours: list[str]

    def names(self) -> list[str]:
        """The atoms of each part, as "C1 O2"."""
        atoms = [f"{atom.GetSymbol()}{atom.GetIdx()}" for atom in self.mol.GetAtoms()]
        members = [np.flatnonzero(self.players == part) for part in range(len(self.parts.values))]
        return [" ".join(atoms[i] for i in part) for part in members]

    def text(self) -> str:
        """Describe the result in lines of text, the largest values first."""
        rows = zip(self.parts.values, self.parts.errors, self.names(), strict=True)
        drawn = bool(self.parts.errors.any())
        how = f"{self.parts.sets} sets drawn, ± the standard error" if drawn else "all sets"
        return "\n".join(
            [
                *headline(self.smiles, len(self.players), self.quantity, self.prediction),
                *self.sums,
                f"Shapley values ({how}):",
                *(
                    f"{value:>+10.4f}{f' ± {error:<8.2g}' * drawn}  {name}"
                    for value, error, name in sorted(rows, key=lambda row: -abs(row[0]))
                ),
                *(f"note: {note}" for note in self.notes),
                *self.neighbours,
            ]
        )

    def drawing(self) -> str:
        """The molecule, its atoms coloured by the value of their part: red raises the prediction, blue lowers it."""
        return draw_molecule(self.mol, self.parts.values[self.players], self.smiles, SIZE, numbers=True)

    def legend(self) -> list[str]:
        told = headline(self.smiles, len(self.players), self.quantity, self.prediction)[1:]
        return [*told, *self.sums, "Red raises the prediction, blue lowers it: Shapley values, in its unit."]


def attribute(
    predictor: Predictor,
    smiles: str,
    target: str | None = None,
    parts: Literal["atoms", "substructures"] = "atoms",
    member: int = 0,
    draws: int = 50,
    seed: int = 0,
    features: Mapping[str, Any] | None = None,
) -> Attribution:
    r"""Shapley values of the atoms, or of the substructures, of one molecule, in the whole model.

    A part that is taken away neither attends nor is attended to in the network; bond messages and descriptors stay, if
    the network has them. Of a kernel with the share s, its atoms' exact contributions are taken away
    (`gtx.kernel.KernelRidge.contributions`):

    \[ v(S) = g\Bigl((1 - s)\, z_n(S) + s\, \bigl(\mu + d + \sum_{j \in S} \varphi_j\bigr)\Bigr) \]

    with \(z_n(S)\) the network's output with the attention of the atoms S alone, \(\mu\) the kernel's mean, d what its
    descriptors bring, and g from outputs to the target's units. v(all) is the prediction of the whole model, v(none)
    the baseline. Where g is linear, an atom's value is 1 - s times its value in the network plus s times \(\varphi_j\).

    It runs on the CPU and in float64, whatever the predictor's device.

    Args:
        predictor: a trained model.
        smiles: one molecule; a mol block too, for a model that needs coordinates.
        target: name of the target; default the first.
        parts: what is taken away: single atoms, or substructures (`gtx.molecules.substructures`).
        member: which network of an ensemble.
        draws: orders drawn, beside as many reverses, where there are too many sets to take all; 2 or more.
        seed: of the orders.
        features: what the model reads beside the molecule, numbers, or lists of numbers, by name.

    Raises:
        InputError: as `gtx.explain.explain`.
    """
    if draws < 2:
        raise InputError(f"draws: expected 2 or more, got {draws}")
    subject = open_subject(predictor, smiles, target, member, features)
    model, store, header, column = subject[:4]
    players = np.arange(subject.mol.GetNumAtoms()) if parts == "atoms" else substructures(subject.mol)
    kernel = None if subject.kernel_member is None else _Kernel.of(subject.kernel_member, store)

    def worth(present: np.ndarray, of_kernel: np.ndarray | None = None) -> np.ndarray:
        """Predictions with the parts of sets, bool `[m, P]`, alone; other sets for the kernel may be given."""
        outputs = outputs_without(model, store, ~present[:, players])
        if kernel is not None:
            outputs = kernel.mixed(outputs, (present if of_kernel is None else of_kernel)[:, players])
        return in_units(outputs, store, header, column)

    every = np.ones((1, int(players.max()) + 1), bool)
    whole, without, with_kernel = (float(worth(*sets)[0]) for sets in ((every,), (~every,), (~every, every)))
    found = shapley(lambda sets: worth(~sets) - whole, every.shape[1], draws, seed)
    sums = [f"the values sum to {whole - without:+.4g}: from the baseline {without:.4g} to the prediction {whole:.4g}"]
    if kernel is None:
        sums += ["baseline: the prediction without all attention"]
    else:
        share = float(kernel.share[column])
        if not header.task.linked:
            own, other = whole - with_kernel, with_kernel - without
            sums += [
                f"of this {own:+.4g} is of the network ({1 - share:.0%}), {other:+.4g} of the kernel ({share:.0%})"
            ]
        sums += ["baseline: the network without all attention; the kernel's mean, and its descriptors"]
    return Attribution(
        smiles=subject.smiles,
        mol=subject.mol,
        quantity=header.quantity(column),
        prediction=whole,
        without=without,
        players=players,
        parts=found,
        sums=sums,
        notes=subject.notes,
        neighbours=subject.neighbours,
    )


class _Kernel(NamedTuple):
    """Kernel outputs for one molecule: without its atoms `[P]`, the contribution of each of n atoms `[n, P]`, and
    the kernel's blend weights `[P]`."""

    rest: Tensor
    atoms: Tensor
    share: Tensor

    @classmethod
    def of(cls, kernel_member: KernelMember, store: MoleculeStore) -> _Kernel:
        atoms, descriptors = kernel_member.kernel.contributions(copies(store))
        return cls(kernel_member.kernel.offset.double() + descriptors, atoms, kernel_member.share)

    def mixed(self, outputs: Tensor, present: np.ndarray) -> Tensor:
        """Outputs `[m, C]` of the network, mixed with those of the kernel with the atoms `[m, n]` that are present."""
        own = self.rest + torch.from_numpy(present).double() @ self.atoms
        return blend_outputs(outputs[:, None], own, self.share)[:, 0]
