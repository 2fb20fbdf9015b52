"""Rationales: the smallest substructure with a prediction of its own, by tree search."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gtx.data import featurise
from gtx.data.ledger import counted
from gtx.errors import InputError
from gtx.explain.drawn import SIZE, Drawn
from gtx.explain.subject import number_of
from gtx.explain.words import headline
from gtx.molecules import as_molecule, draw_molecule, peelings
from gtx.prediction import Predictor
from gtx.prediction.neighbour_columns import neighbour_lines
from gtx.tasks import NumberTask

# --- Monte Carlo tree search among the substructures of a molecule, without chemistry.

Atoms = frozenset[int]

EXPLORE = 10.0
"""Weight of a substructure's own score against the scores found below it, in the choice of a step of the search."""


@dataclass
class Node:
    """A substructure of the tree.

    Attributes:
        worth: its own, from 0 to 1.
        visits, total: how often it was entered, and the sum of what was found at the ends.
        below: the nodes one step smaller; None before they were looked at.
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
    r"""Look for small substructures that are worth much, from the whole molecule downwards.

    Every rollout takes away part after part until `least` atoms would not be left. It goes to the substructure with the
    largest

    \[ Q + c\, P\, \sqrt{1 + \textstyle\sum_b N_b} \;/\; (1 + N) \]

    with P what the substructure is worth by itself, N how often it was entered, Q what the ends of these rollouts were
    worth on average, the sum of all N on the same step, and c = 10.

    Source: Jin et al. 2020 (arXiv:2002.03244), whose search chemprop's `interpret` has; the 1 under the root is gtx's,
    so that the first choice is by P too.

    Args:
        worth: of substructures, `[k]`, from 0 to 1; each is asked for once.
        smaller: the substructures that are left after one step.
        whole: the atoms of the molecule.
        least: atoms of the smallest substructure.
        rollouts: how many.
        seed: of the order of those that are worth the same.

    Returns:
        All substructures that were looked at, and what they are worth.
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
    """The one to enter."""
    entered = np.sqrt(1 + sum(nodes[atoms].visits for atoms in sets))

    def promise(atoms: Atoms) -> float:
        node = nodes[atoms]
        return node.total / max(1, node.visits) + EXPLORE * node.worth * entered / (1 + node.visits)

    return max(sets, key=promise)


# --- One molecule, one target: the smallest substructure that by itself is predicted as the molecule is.

CAVEAT = (
    "A substructure alone is a different molecule, perhaps unlike the training molecules: this does not prove a cause."
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Rationale(Drawn):
    """A substructure whose own prediction stays on the molecule's side of a threshold.

    Attributes:
        smiles: the molecule as given.
        mol: the RDKit molecule.
        quantity: what is predicted, in words.
        prediction: of the molecule, in the target's own units; for classes a probability.
        threshold: in the same units.
        atoms: int `[k]`, the atoms of the substructure, from 0; empty if none was found.
        part: its SMILES, with hydrogens in place of the bonds that were cut; None if none was found.
        own: the prediction of this molecule; NaN if none was found.
        looked: how many substructures were predicted.
        most: how many atoms it may have.
        neighbours: the training molecules that are most similar to the molecule, in lines of text.
    """

    smiles: str
    mol: Any
    quantity: str
    prediction: float
    threshold: float
    atoms: np.ndarray
    part: str | None
    own: float
    looked: int
    most: int
    neighbours: list[str]

    def text(self) -> str:
        """Describe the result in lines of text."""
        side = "above" if self.prediction >= self.threshold else "below"
        names = " ".join(f"{self.mol.GetAtomWithIdx(i).GetSymbol()}{i}" for i in self.atoms.tolist())
        found = f"no substructure of at most {self.most} atoms that was tried stays {side} it"
        if self.part is not None:
            named = f"{counted(len(self.atoms), 'atom')}: {names}"
            found = f"the smallest that stays {side} it, {self.own:.4g}: {self.part} ({named})"
        threshold = f"; threshold {self.threshold:.4g}"
        return "\n".join(
            [
                *headline(self.smiles, self.mol.GetNumAtoms(), self.quantity, self.prediction, beside=threshold),
                f"of {counted(self.looked, 'substructure')}, each predicted by itself, {found}",
                CAVEAT,
                *self.neighbours,
            ]
        )

    def drawing(self) -> str:
        """The molecule, with the atoms of the substructure in red."""
        within = np.isin(np.arange(self.mol.GetNumAtoms()), self.atoms).astype(float)
        return draw_molecule(self.mol, within, self.smiles, SIZE, numbers=True, scale=False)

    def legend(self) -> list[str]:
        own = "none was found" if self.part is None else f"by itself predicted {self.own:.4g}"
        return [
            *headline(self.smiles, 1, self.quantity, self.prediction)[1:],
            f"Red: the smallest substructure on the same side of {self.threshold:.4g}; {own}.",
        ]


def rationale(
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
    """Search for the smallest substructure whose own prediction stays on the molecule's side of a threshold.

    Ends of chains and whole rings are taken off the molecule, one after the other, see
    `gtx.explain.rationales.search`. Hydrogens take the place of what was cut, and the whole model predicts what
    is left: of a mix the kernel too, of an ensemble the mean. Of substructures of one size the one whose prediction is
    furthest on that side counts.

    Args:
        predictor: a trained model of molecules; any one, with attention or without.
        smiles: one molecule.
        target: name of the target; default the first.
        threshold: in the target's own units; for classes a probability, 0.5 by default.
        most, least: atoms of the substructure; a smaller one is not looked at.
        draws: how often the search goes from the molecule downwards; each time it predicts some tens of substructures.
        seed: of the search.
        features: what the model reads beside the molecule, numbers by name.

    Raises:
        InputError: the molecule cannot be read, the model has no such target, predicts no numbers of molecules or needs
            coordinates or features of atoms or bonds, or a number needs a threshold.
    """
    header = predictor.header
    task, featuriser = header.task, header.featuriser
    if not isinstance(task, NumberTask) or task.per != "molecule":
        raise InputError(f"a rationale is of numbers or classes of molecules; this model's task is {task.name}")
    if featuriser.components or featuriser.coordinates:
        reads = " and ".join(featuriser.components) or "coordinates, which a substructure has none of"
        raise InputError(f"a rationale is of models that read one molecule a row; this one reads {reads}")
    if header.features and (given := (*header.features.atoms, *header.features.bonds)):
        reads = " and ".join(given)
        raise InputError(f"a rationale is a molecule of its own; its atoms have no {reads}, which this model reads")
    column = number_of("target", target, task.prediction_names)
    if threshold is None and not task.discrete:
        raise InputError(
            f"threshold: give the {task.prediction_names[column]} that a substructure is to stay above or below"
        )
    for name, value, floor in (("draws", draws, 1), ("least", least, 1), ("most", most, least)):
        if value < floor:
            raise InputError(f"{name}: expected {floor} or more, got {value}")
    threshold = 0.5 if threshold is None else threshold

    def predicted(texts: Sequence[str]) -> np.ndarray:
        """`[k]`; NaN for what cannot be read."""
        done = featurise(featuriser, list(texts), workers=0, smiles=False)
        if header.features:
            done = header.features.joined(done, header.features.of_one(features or {}) * len(texts))
        found = np.full(len(texts), np.nan)
        found[done.good] = predictor.predict_store(done.store).mean[:, column]
        return found

    done = featurise(featuriser, [smiles], workers=0)
    if done.errors[0]:
        raise InputError(f"{smiles!r} {done.errors[0]}")
    mol = featuriser.read(smiles)
    whole = float(predicted([smiles])[0])
    span = abs(whole - threshold) or 1.0
    side = 1.0 if whole >= threshold else -1.0
    owns: dict[Atoms, tuple[str, float]] = {}

    def worth(sets: Sequence[Atoms]) -> np.ndarray:
        """1/2 at the threshold, 1 for what is predicted as the molecule, 0 for as far on the other side."""
        texts = [as_molecule(mol, atoms) for atoms in sets]
        own = np.full(len(sets), np.nan)
        known = [i for i, text in enumerate(texts) if text]
        if known:
            own[known] = predicted([texts[i] for i in known])
        owns.update((sets[i], (texts[i], own[i])) for i in known)
        return np.nan_to_num(np.clip((1 + side * (own - threshold) / span) / 2, 0, 1))

    atoms = frozenset(range(mol.GetNumAtoms()))
    search(worth, lambda held: peelings(mol, held), atoms, least, draws, seed)
    passing = [
        (len(held), -side * own, sorted(held))
        for held, (_, own) in owns.items()
        if len(held) <= most and side * (own - threshold) >= 0
    ]
    best = min(passing)[2] if passing else []
    part, own = owns[frozenset(best)] if best else (None, float("nan"))
    return Rationale(
        smiles=smiles,
        mol=mol,
        quantity=header.quantity(column),
        prediction=whole,
        threshold=threshold,
        atoms=np.array(best, dtype=int),
        part=part,
        own=own,
        looked=len(owns),
        most=most,
        neighbours=neighbour_lines(predictor, smiles),
    )
