"""Attributions: the contribution of each atom or substructure to a prediction."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from math import factorial
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from gtx.base.errors import InputError
from gtx.data import MoleculeStore
from gtx.data.rows import percent
from gtx.explain.explanation import LINE, ExplanationBase
from gtx.explain.subject import copies, in_units, open_subject, outputs_without
from gtx.kernel import KernelRidge
from gtx.molecules import draw_molecule
from gtx.molecules.descriptors import assign_substructures
from gtx.molecules.drawing import SCALE
from gtx.molecules.perception import Text
from gtx.prediction import Predictor
from gtx.prediction.foundation_embedding import FoundationEmbedding
from gtx.prediction.model_file import blend_outputs

# --- Shapley values of players, by predictions without sets of them.

EXACT = 10
"""Most players for which all sets are taken, 1,024 of them."""


class ShapleyValues(NamedTuple):
    """Shapley values of n players: the contribution of each player to the value of all players minus the value of none.

    Attributes:
        values: Shapley value of each player, `[n]`. The values sum to the prediction with all players minus the
            prediction with none.
        errors: standard error of each value, `[n]`; 0 if all sets of players were evaluated.
        sets: number of sets of players that were removed.
    """

    values: np.ndarray
    errors: np.ndarray
    sets: int


def compute_shapley_values(
    change: Callable[[np.ndarray], np.ndarray], players: int, permutations: int = 50, seed: int = 0
) -> ShapleyValues:
    r"""Compute the Shapley value of each player: its mean contribution over all orders in which players can join.

    \[ \phi_i = \sum_{S \not\ni i} \frac{|S|!\,(n - |S| - 1)!}{n!} \bigl(v(S \cup i) - v(S)\bigr) \]

    v(S) is the prediction with only the players S. Equivalent players have equal values, a player without influence has
    the value 0, and the values sum to v(all) - v(none) (efficiency).

    For up to `EXACT` players, the sum is exact. For more players, random orders are drawn, each together with the
    reverse order. The values of each order, and the mean over orders, also sum to v(all) - v(none).

    Sources: Shapley 1953; sampled orders: Castro et al. 2009 (10.1016/j.cor.2008.04.004), with reverses: Mitchell et
    al. 2022 (arXiv:2104.12199).

    Args:
        change: function from sets of players, bool `[m, n]`, to the change of the prediction `[m]` when each set is
            removed.
        players: number n of players.
        permutations: number of orders to draw, each with its reverse; 2 or more.
        seed: seed of the random orders.
    """
    return _exact(change, players) if players <= EXACT else _sampled(change, players, permutations, seed)


def _exact(change: Callable[[np.ndarray], np.ndarray], n: int) -> ShapleyValues:
    sets = np.arange(2**n)
    present = (sets[:, None] >> np.arange(n)) % 2 == 1
    worth, size = change(~present), present.sum(1)
    weight = np.array([factorial(s) * factorial(n - s - 1) / factorial(n) for s in range(n)])
    values = np.empty(n)
    for i in range(n):
        without = sets[~present[:, i]]
        values[i] = weight[size[without]] @ (worth[without | 1 << i] - worth[without])
    return ShapleyValues(values, np.zeros(n), len(sets))


def _sampled(change: Callable[[np.ndarray], np.ndarray], n: int, permutations: int, seed: int) -> ShapleyValues:
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
    return ShapleyValues(pairs.mean(0), errors, 2 * permutations * (n - 1) + 2)


# --- One molecule, one target: the contribution of each atom, or of each substructure.


SIZE, LETTERS = (520, 400), 66  # width and height of the molecule in pixels, and the most letters of a line below it


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Attribution(ExplanationBase):
    """Contributions (Shapley values) of the atoms or substructures of a molecule to its prediction, in the target's
    unit.

    Attributes:
        without: baseline, the prediction without any atom; `contributions.values` sum to `prediction - without`.
        players: index of the atom or substructure (player) of each atom, int `[n]`, from 0.
        contributions: Shapley value of each atom or substructure.
        sums: description of the sums of the values for network and kernel model, and of the baseline.
        smiles, molecules, quantity, prediction, notes, neighbours: as of `ExplanationBase`; the prediction is that of
            one network, with the kernel and the calibration that the model has.
    """

    without: float
    players: np.ndarray
    contributions: ShapleyValues
    sums: list[str]

    def names(self) -> list[str]:
        """Name the atoms of each player, as "C1 O2"."""
        atoms, players = self.atoms, range(len(self.contributions.values))
        members = [np.flatnonzero(self.players == player) for player in players]
        return [" ".join(atoms[i] for i in player) for player in members]

    @property
    def drawn(self) -> bool:
        """True if some sets were drawn of all, so that the values have errors."""
        return len(self.contributions.values) > EXACT

    def text(self) -> str:
        """Describe the result in lines of text, the largest values first."""
        rows = zip(self.contributions.values, self.contributions.errors, self.names(), strict=True)
        how = f"{self.contributions.sets} sets drawn, ± the standard error" if self.drawn else "all sets"
        lines = []
        for value, error, name in sorted(rows, key=lambda row: -abs(row[0])):
            spread = f" ± {error:<8.2g}" if self.drawn else ""
            lines.append(f"{value:>+10.4g}{spread}  {name}")
        return "\n".join(
            [
                *self.headline(),
                *self.sums,
                f"Shapley values ({how}):",
                *lines,
                *(f"note: {note}" for note in self.notes),
                *self.neighbours,
            ]
        )

    def svg(self) -> str:
        """Draw the molecule, each atom coloured by the value (red raises the prediction, blue lowers it), and below it
        the legend.
        """
        from gtx.explain.figure import open_sheet  # matplotlib is slow to import

        lines = [line for text in self.legend() for line in textwrap.wrap(text, LETTERS)]
        drawing = draw_molecule(
            self.molecules, self.contributions.values[self.players], self.smiles, SIZE, numbers=True
        )
        width, end = SIZE[0], SIZE[1] + SCALE
        with open_sheet(width, end + LINE * (len(lines) + 1)) as sheet:
            sheet.put(0, 0, drawing)
            for k, line in enumerate(lines):
                sheet.write(width / 2, end + LINE * (k + 1), line, size=13, ha="center")
            return sheet.svg()

    def legend(self) -> list[str]:
        """Explain the drawing in lines of text."""
        errors = f", each with an error of up to {self.contributions.errors.max():.2g}" if self.drawn else ""
        meaning = f"Red raises the prediction, blue lowers it: Shapley values, in its unit{errors}."
        return [*self.headline()[1:], *self.sums, meaning]


def compute_attribution(
    predictor: Predictor,
    smiles: Text,
    target: str | None = None,
    to: Literal["atoms", "substructures"] = "atoms",
    member: int = 0,
    draws: int = 50,
    seed: int = 0,
    features: Mapping[str, Any] | None = None,
) -> Attribution:
    r"""Compute how much each atom or substructure contributes to the prediction of a molecule, as Shapley values.

    In the network, an atom or substructure is removed by masking the attention to and from its atoms; bond messages and
    descriptors are not removed. If a kernel model of weight s is blended with the network, the exact contributions of
    the removed atoms are subtracted (`gtx.kernel.KernelRidge.contributions`):

    \[ v(S) = g\Bigl((1 - s)\, z_n(S) + s\, \bigl(\mu + d + e(S) + \sum_{j \in S} \varphi_j\bigr)\Bigr) \]

    Here \(z_n(S)\) is the output of the network with the attention of the atoms S alone, \(\mu\) is the mean of the
    kernel model, d is the contribution of descriptors, e(S) is the contribution of the embedding that the pretrained
    network computes with the attention of the atoms S alone (0 for a kernel without embeddings), and g converts outputs
    to the units of the target. v(all) is the prediction, and v(none) is the baseline. If g is linear
    and the kernel compares no embeddings, the value of an atom is 1 - s times its value in the network plus s times
    \(\varphi_j\).

    The computation runs on the CPU in float64, on any device of the predictor.

    Args:
        predictor: a trained model.
        smiles: SMILES of one molecule, or a mol block for a model that needs coordinates; for a model of several
            molecules a row, a tuple of their SMILES.
        target: name of the target; by default the first target.
        to: what the prediction is attributed to: single atoms, or substructures (`assign_substructures`).
        member: index of the network, from 0, in a model of several folds.
        draws: number of random orders, each with its reverse, if there are too many sets to evaluate all; 2 or more.
        seed: seed of the random orders.
        features: values of the feature columns by name, numbers or lists of numbers.

    Raises:
        InputError: as `gtx.explain.explain_prediction`.
    """
    if draws < 2:
        raise InputError(f"draws: expected 2 or more, got {draws}")
    if to not in ("atoms", "substructures"):
        raise InputError(f"to: expected atoms or substructures, got {to!r}")
    subject = open_subject(predictor, smiles, target, member, features)
    store, task, column = subject.store, subject.task, subject.column
    players = np.arange(int(store.sizes[0])) if to == "atoms" else assign_substructures(*subject.molecules)
    partner = subject.kernel_member
    outputs_of_kernel = None if partner is None else _outputs_of_kernel(partner.kernel, store)

    def predicted(present: np.ndarray, of_kernel: np.ndarray | None = None) -> np.ndarray:
        """Predict with the players of sets, bool `[m, P]`, alone; the kernel may have other sets."""
        outputs = outputs_without(subject.model, store, ~present[:, players])
        if partner is not None and outputs_of_kernel is not None:
            own = outputs_of_kernel((present if of_kernel is None else of_kernel)[:, players])
            outputs = blend_outputs(outputs[:, None], own, partner.share)[:, 0]
        return in_units(outputs, store, task, column)

    every = np.ones((1, int(players.max()) + 1), bool)
    whole, without = float(predicted(every)[0]), float(predicted(~every)[0])
    values = compute_shapley_values(lambda sets: predicted(~sets) - whole, every.shape[1], draws, seed)
    sums = [f"the values sum to {whole - without:+.4g}: from the baseline {without:.4g} to the prediction {whole:.4g}"]
    if partner is None:
        sums += ["baseline: the prediction without any attention"]
    else:
        share = float(partner.share[column])
        if not task.objective.has_link:
            kernel_alone = float(predicted(~every, every)[0])
            network_part, kernel_part = whole - kernel_alone, kernel_alone - without
            sums += [
                f"{network_part:+.4g} comes from the network (weight {percent(1 - share)}), "
                f"{kernel_part:+.4g} from the kernel (weight {percent(share)})"
            ]
        attended = _foundation_of(partner.kernel) is not None
        inputs = "descriptors and the embedding without any attention" if attended else "descriptors"
        sums += [f"baseline: the network without any attention, and the kernel's mean with its {inputs}"]
    return Attribution(
        smiles=subject.smiles,
        molecules=subject.molecules,
        quantity=subject.header.quantity(column),
        prediction=whole,
        without=without,
        players=players,
        contributions=values,
        sums=sums,
        notes=subject.notes,
        neighbours=subject.neighbours,
    )


def _outputs_of_kernel(kernel: KernelRidge, store: MoleculeStore) -> Callable[[np.ndarray], Tensor]:
    """Return a function from sets of the n atoms of one molecule, bool `[m, n]`, to the outputs of a kernel with these
    atoms alone, `[m, P]`: those that its substructures have, and that the foundation attends to.
    """
    atoms, features = kernel.contributions(copies(store))
    rest, foundation = kernel.offset.double() + features, _foundation_of(kernel)
    if foundation is None:
        return lambda present: rest + torch.from_numpy(present).double() @ atoms
    network = deepcopy(foundation.network()).double()
    bare = replace(store, descriptors=store.descriptors[:, :0])

    def embedded(removed: np.ndarray) -> Tensor:
        return kernel.of_embeddings(outputs_without(network, bare, removed, embeddings=True))

    rest = rest - embedded(np.zeros((1, len(atoms)), bool))[0]
    return lambda present: rest + torch.from_numpy(present).double() @ atoms + embedded(~present)


def _foundation_of(kernel: KernelRidge) -> FoundationEmbedding | None:
    """Return the embedding that a kernel compares, if it is one of molecules, whose atoms can be removed."""
    embed = kernel.embed
    return embed if isinstance(embed, FoundationEmbedding) and embed.reads_molecules else None
