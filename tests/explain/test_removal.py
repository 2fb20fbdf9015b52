"""Removing atoms, on a prediction that is known."""

from __future__ import annotations

import numpy as np

from gtx.explain import measure_faithfulness
from gtx.explain.relevance import highest

WORTH = np.array([5.0, -3.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0])


def worth(sets: np.ndarray) -> np.ndarray:
    """A prediction that is the sum of what its atoms are worth."""
    return -(sets @ WORTH)


def test_a_score_that_knows_the_truth_beats_chance_and_one_that_does_not_does_not() -> None:
    tables = measure_faithfulness(worth, {"true": np.abs(WORTH), "wrong": -np.abs(WORTH)}, sizes=(1, 2))
    one, two = tables["true"]
    assert one.k == 1 and one.change == -5.0 and two.change == -2.0
    np.testing.assert_allclose(np.sort(one.random), np.sort(-WORTH))  # all eight sets of one atom, none twice
    assert one.mean == np.abs(WORTH).mean() and one.sd == np.abs(WORTH).std()
    assert one.less == 7 / 8  # the set itself is among the eight
    assert tables["wrong"][0].change == 0 and tables["wrong"][0].less == 0
    assert len(two.random) == 28  # pairs of eight


def test_random_sets_are_of_k_atoms_seeded_and_shared() -> None:
    seen = []

    def remember(sets: np.ndarray) -> np.ndarray:
        seen.append(sets)
        return worth(sets)

    tables = measure_faithfulness(remember, {"a": WORTH, "b": -WORTH}, sizes=(3,), draws=20, seed=4)
    assert seen[0].shape == (20, 8) and (seen[0].sum(1) == 3).all()
    assert tables["a"][0].random is tables["b"][0].random
    again = measure_faithfulness(worth, {"a": WORTH}, sizes=(3,), draws=20, seed=4)
    assert again["a"][0].random.tolist() == tables["a"][0].random.tolist()
    other = measure_faithfulness(worth, {"a": WORTH}, sizes=(3,), draws=20, seed=5)
    assert other["a"][0].random.tolist() != tables["a"][0].random.tolist()


def test_one_atom_has_nothing_to_compare_with() -> None:
    assert measure_faithfulness(lambda sets: np.zeros(len(sets)), {"a": np.ones(1)}) == {"a": []}


def test_equal_scores_are_taken_in_order_whatever_their_rounding() -> None:
    assert highest(np.array([0.1, 0.3, 0.3 + 1e-15, 0.2]), 2).tolist() == [1, 2]
