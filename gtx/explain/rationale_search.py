"""Monte Carlo tree search among the substructures of a molecule, without chemistry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

Atoms = frozenset[int]

EXPLORE = 10.0
"""How much a step depends on what a substructure is worth by itself beside what was found below it."""


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
