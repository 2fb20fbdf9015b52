"""Rationales: the smallest substructure that alone is predicted like the molecule, by tree search."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gtx.data import featurise
from gtx.data.row_log import plural
from gtx.errors import InputError
from gtx.explain.explanation import SIZE, Drawn
from gtx.explain.findings import headline
from gtx.explain.subject import mean_predictions, number_of
from gtx.molecules import draw_molecule
from gtx.molecules.fragments import list_smaller_substructures, substructure_to_smiles
from gtx.prediction import Predictor
from gtx.prediction.extended import neighbour_lines
from gtx.tasks.numbers import require_numeric

if TYPE_CHECKING:
    from rdkit.Chem import Mol

# --- Monte Carlo tree search among the substructures of a molecule, without chemistry.

Atoms = frozenset[int]

EXPLORE = 10.0
"""Weight of a substructure's own worth against the worths found below it, in the choice of a step of the search."""


@dataclass
class Node:
    """Node of the search tree for a rationale: one substructure.

    Attributes:
        worth: worth of the substructure itself, from 0 to 1.
        visits: number of rollouts that entered it.
        total: sum of the worths at the ends of the rollouts that entered the node.
        below: child nodes, which are one step smaller; None before the children are listed.
    """

    worth: float
    visits: int = 0
    total: float = 0.0
    below: list[Atoms] | None = field(default=None)


def search(
    worth: Callable[[Sequence[Atoms]], np.ndarray],
    smaller: Callable[[Atoms], Sequence[Atoms]],
    whole: Atoms,
    least: int,
    rollouts: int = 50,
    seed: int = 0,
) -> dict[Atoms, float]:
    r"""Search for small substructures of high worth, from the whole molecule downwards.

    Every rollout removes one piece after another, as long as `least` atoms are left. Each step of a rollout selects the
    substructure with the largest

    \[ Q + c\, P\, \sqrt{1 + \textstyle\sum_b N_b} \;/\; (1 + N) \]

    with P the worth of the substructure itself, N the number of rollouts that entered it, Q the mean worth at the ends
    of these rollouts, the sum over the choices b of the same step, and c = 10.

    Source: Jin et al. 2020 (arXiv:2002.03244); chemprop's `interpret` uses the same search. The 1 under the root is
    gtx's, so that the first choice is by P too.

    Args:
        worth: function that computes the worth of substructures, `[k]`, from 0 to 1; called once for each substructure.
        smaller: function that lists the substructures after one step.
        whole: atoms of the molecule.
        least: smallest number of atoms of a substructure.
        rollouts: number of rollouts.
        seed: seed of the order of substructures of equal worth.

    Returns:
        The worth of all substructures that were evaluated.
    """
    generator = np.random.default_rng(seed)
    nodes: dict[Atoms, Node] = {}

    def look(sets: Sequence[Atoms]) -> None:
        new = [atoms for atoms in sets if atoms not in nodes]
        if new:
            nodes.update((atoms, Node(float(value))) for atoms, value in zip(new, worth(new), strict=True))

    def rollout() -> None:
        path = [whole]
        while True:
            node = nodes[path[-1]]
            if node.below is None:
                found = [atoms for atoms in smaller(path[-1]) if len(atoms) >= least]
                node.below = [found[i] for i in generator.permutation(len(found))]
                look(node.below)
            if not node.below:
                break
            path.append(_next(node.below, nodes))
        end = nodes[path[-1]].worth
        for atoms in path[1:]:
            nodes[atoms].visits += 1
            nodes[atoms].total += end

    look([whole])
    for _ in range(rollouts):
        rollout()
    return {atoms: node.worth for atoms, node in nodes.items()}


def _next(sets: Sequence[Atoms], nodes: dict[Atoms, Node]) -> Atoms:
    """Choose the substructure to enter."""
    entered = np.sqrt(1 + sum(nodes[atoms].visits for atoms in sets))

    def promise(atoms: Atoms) -> float:
        node = nodes[atoms]
        return node.total / max(1, node.visits) + EXPLORE * node.worth * entered / (1 + node.visits)

    return max(sets, key=promise)


# --- One molecule, one target: the smallest substructure that alone is predicted like the molecule.

CAVEAT = (
    "A substructure alone is a different molecule, perhaps unlike the training molecules: this does not prove a cause."
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Rationale(Drawn):
    """Rationale of a prediction: a small substructure whose own prediction is on the same side of a threshold.

    Attributes:
        smiles: SMILES of the molecule as given.
        mol: the RDKit molecule.
        quantity: name of the predicted quantity.
        prediction: prediction for the molecule, in the target's own units; for classes a probability.
        threshold: threshold in the units of the prediction.
        atoms: atoms of the substructure, int `[k]`, from 0; empty if no rationale was found.
        substructure: SMILES of the substructure, with hydrogens in place of the bonds that were cut; None if no
            rationale was found.
        prediction_alone: prediction for the substructure alone; NaN if no rationale was found.
        tried: number of substructures that were predicted.
        most: largest number of atoms of the substructure.
        neighbours: lines of text about the most similar training molecules.
    """

    smiles: str
    mol: Mol
    quantity: str
    prediction: float
    threshold: float
    atoms: np.ndarray
    substructure: str | None
    prediction_alone: float
    tried: int
    most: int
    neighbours: list[str]

    def text(self) -> str:
        """Describe the result in lines of text."""
        side = "above" if self.prediction >= self.threshold else "below"
        names = " ".join(f"{self.mol.GetAtomWithIdx(i).GetSymbol()}{i}" for i in self.atoms.tolist())
        found = f"none of at most {self.most} atoms stays {side} it"
        if self.substructure is not None:
            named = f"{plural(len(self.atoms), 'atom')}: {names}"
            found = f"the smallest that stays {side} it, {self.prediction_alone:.4g}: {self.substructure} ({named})"
        threshold = f"; threshold {self.threshold:.4g}"
        return "\n".join(
            [
                *headline(self.smiles, self.mol.GetNumAtoms(), self.quantity, self.prediction, beside=threshold),
                f"of {plural(self.tried, 'substructure')}, each predicted alone, {found}",
                CAVEAT,
                *self.neighbours,
            ]
        )

    def drawing(self) -> str:
        """Draw the molecule, with the atoms of the substructure in red."""
        within = np.isin(np.arange(self.mol.GetNumAtoms()), self.atoms).astype(float)
        return draw_molecule(self.mol, within, self.smiles, SIZE, numbers=True, scale=False)

    def legend(self) -> list[str]:
        """Explain the drawing in lines of text."""
        alone = "none was found" if self.substructure is None else f"predicted alone: {self.prediction_alone:.4g}"
        return [
            *headline(self.smiles, 1, self.quantity, self.prediction)[1:],
            f"Red: the smallest substructure on the same side of {self.threshold:.4g}; {alone}.",
        ]


def find_rationale(
    predictor: Predictor,
    smiles: str,
    target: str | None = None,
    threshold: float | None = None,
    most: int = 20,
    least: int = 4,
    draws: int = 50,
    seed: int = 0,
    features: Mapping[str, Any] | None = None,
) -> Rationale:
    """Search for the smallest substructure whose prediction alone is on the same side of a threshold as the molecule's.

    The search removes ends of chains and whole rings one after the other, see `gtx.explain.rationales.search`.
    Hydrogens replace the bonds that were cut, and the whole model (network, kernel model, all ensemble members)
    predicts the remaining substructure. Among substructures of equal size, the substructure whose prediction is
    furthest beyond the threshold is chosen.

    Args:
        predictor: any trained model of molecules, with or without attention.
        smiles: SMILES of one molecule.
        target: name of the target; by default the first target.
        threshold: threshold in the target's own units; for classes a probability, 0.5 by default.
        most, least: largest and smallest number of atoms of the substructure.
        draws: number of descents of the search; each descent predicts a few dozen substructures.
        seed: seed of the search.
        features: values of the feature columns, by name.

    Raises:
        InputError: the molecule cannot be read, the model has no such target, predicts no numbers of molecules or needs
            coordinates or features of atoms or bonds, or a number needs a threshold.
    """
    header = predictor.header
    task, featuriser = require_numeric(header.task, "explain"), header.featuriser
    if featuriser.components or featuriser.coordinates:
        reads = " and ".join(featuriser.components) or "coordinates, which a substructure does not have"
        raise InputError(f"rationales need a model that reads one molecule a row; this one reads {reads}")
    if header.features and (columns := (*header.features.atoms, *header.features.bonds)):
        reads = " and ".join(columns)
        raise InputError(f"this model reads {reads} of atoms or bonds, which the substructures of a rationale lack")
    column = number_of("target", target, task.prediction_names)
    if threshold is None and not task.discrete:
        raise InputError(
            f"threshold: expected a value of {task.prediction_names[column]}, above or below which the prediction stays"
        )
    for name, value, floor in (("draws", draws, 1), ("least", least, 1), ("most", most, least)):
        if value < floor:
            raise InputError(f"{name}: expected {floor} or more, got {value}")
    threshold = 0.5 if threshold is None else threshold

    def predicted(texts: Sequence[str]) -> np.ndarray:
        """Predict SMILES, `[k]`; NaN for one that cannot be read."""
        done = featurise(featuriser, list(texts), workers=0, smiles=False)
        if header.features:
            done = header.features.joined(done, header.features.read_one(features or {}) * len(texts))
        values = np.full(len(texts), np.nan)
        values[done.good] = mean_predictions(predictor, task, done.store)[:, column]
        return values

    done = featurise(featuriser, [smiles], workers=0)
    if done.errors[0]:
        raise InputError(f"{smiles!r} {done.errors[0]}")
    mol = featuriser.read(smiles)
    whole = float(predicted([smiles])[0])
    span = abs(whole - threshold) or 1.0
    side = 1.0 if whole >= threshold else -1.0
    alone: dict[Atoms, tuple[str, float]] = {}  # SMILES and prediction of each substructure

    def worth(sets: Sequence[Atoms]) -> np.ndarray:
        """Map predictions to 1/2 at the threshold, 1 at the molecule's, 0 as far on the other side."""
        smiles_of = [substructure_to_smiles(mol, atoms) for atoms in sets]
        texts = {i: text for i, text in enumerate(smiles_of) if text}
        values = np.full(len(sets), np.nan)
        if texts:
            values[list(texts)] = predicted(list(texts.values()))
        alone.update((sets[i], (text, values[i])) for i, text in texts.items())
        return np.nan_to_num(np.clip((1 + side * (values - threshold) / span) / 2, 0, 1))

    atoms = frozenset(range(mol.GetNumAtoms()))
    search(worth, lambda part: list_smaller_substructures(mol, part), atoms, least, draws, seed)
    passing = [
        (len(part), -side * value, sorted(part))
        for part, (_, value) in alone.items()
        if len(part) <= most and side * (value - threshold) >= 0
    ]
    best = min(passing)[2] if passing else []
    substructure, prediction = alone[frozenset(best)] if best else (None, float("nan"))
    return Rationale(
        smiles=smiles,
        mol=mol,
        quantity=header.quantity(column),
        prediction=whole,
        threshold=threshold,
        atoms=np.array(best, dtype=int),
        substructure=substructure,
        prediction_alone=prediction,
        tried=len(alone),
        most=most,
        neighbours=neighbour_lines(predictor, smiles),
    )
