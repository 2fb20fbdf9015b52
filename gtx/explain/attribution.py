"""One molecule, one target: what each atom, or each substructure, brings to the prediction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from gtx.data.ledger import counted
from gtx.errors import InputError
from gtx.explain.account import predict_without
from gtx.explain.drawn import Drawn
from gtx.explain.shapley_values import Shapley, shapley
from gtx.explain.subject import open_subject
from gtx.molecules import draw_molecule, substructures
from gtx.prediction import Predictor

MEANING = "What is taken away is the attention to and from the atoms."


@dataclass(frozen=True, kw_only=True, eq=False)
class Attribution(Drawn):
    """What the parts of a molecule of n atoms bring; all numbers are in the target's own units.

    Attributes:
        smiles: the molecule as given.
        mol: the RDKit molecule whose atoms are the n atoms.
        quantity: what is predicted, in words.
        prediction: of the target; for classes the probability of class 1.
        without: the prediction without all attention; `parts.values` sum to the difference.
        players: int `[n]`, to which part each atom belongs, from 0.
        parts: the Shapley value of each part.
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
    notes: list[str]
    neighbours: list[str]

    def names(self) -> list[str]:
        """The atoms of each part, as "C1 O2"."""
        atoms = [f"{atom.GetSymbol()}{atom.GetIdx()}" for atom in self.mol.GetAtoms()]
        members = [np.flatnonzero(self.players == part) for part in range(len(self.parts.values))]
        return [" ".join(atoms[i] for i in part) for part in members]

    def text(self) -> str:
        """What was found, in lines of text, the largest values first."""
        rows = zip(self.parts.values, self.parts.errors, self.names(), strict=True)
        how = f"{self.parts.sets} sets drawn, ± the standard error" if self.parts.errors.any() else "all sets"
        return "\n".join(
            [
                f"{self.smiles}: {counted(len(self.players), 'atom')}",
                f"predicted {self.quantity}: {self.prediction:.4g}; without attention {self.without:.4g}",
                f"Shapley values, which sum to the difference ({how}):",
                *(
                    f"{value:>+10.4f} ± {error:<8.2g}  {name}"
                    for value, error, name in sorted(rows, key=lambda row: -abs(row[0]))
                ),
                *(f"note: {note}" for note in self.notes),
                MEANING,
                *self.neighbours,
            ]
        )

    def svg(self) -> str:
        """The molecule, its atoms coloured by the value of their part: red raises the prediction, blue lowers it."""
        return draw_molecule(self.mol, self.parts.values[self.players], self.smiles, (520, 400), numbers=True)


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
    """Shapley values of the atoms, or of the substructures, of one molecule.

    A part that is taken away neither attends nor is attended to; bond messages and descriptors stay, if the model has
    them. It runs on the CPU and in float64, whatever the predictor's device.

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
    players = np.arange(subject.mol.GetNumAtoms()) if parts == "atoms" else substructures(subject.mol)

    def change(sets: np.ndarray) -> np.ndarray:
        gone = sets[:, players]
        return predict_without(subject.model, subject.store, subject.header, subject.column, gone) - whole

    nothing, everything = np.zeros((1, len(players)), bool), np.ones((1, len(players)), bool)
    whole, without = (
        float(predict_without(subject.model, subject.store, subject.header, subject.column, sets)[0])
        for sets in (nothing, everything)
    )
    return Attribution(
        smiles=subject.smiles,
        mol=subject.mol,
        quantity=subject.header.task.quantity(subject.column),
        prediction=whole,
        without=without,
        players=players,
        parts=shapley(change, int(players.max()) + 1, draws, seed),
        notes=subject.notes,
        neighbours=subject.neighbours,
    )
