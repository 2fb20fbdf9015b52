"""Relevance, distances, removals and rationales."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from rdkit import Chem

import gtx
from gtx.closed_form import fit_closed_form
from gtx.data import featurise
from gtx.errors import InputError
from gtx.explain import (
    attention_rollout,
    average_attention_by_distance,
    find_rationale,
    gradient_weighted_attention,
    measure_faithfulness,
    score_atoms_by_attention,
    to_dense_attention,
)
from gtx.explain.rationales import Atoms, search
from gtx.explain.relevance import highest, shortest_path_lengths
from gtx.models import kernel_ridge as ridge
from gtx.molecules import Featuriser, read_smiles
from gtx.molecules.fragments import list_smaller_substructures, substructure_to_smiles
from gtx.prediction import ModelFileHeader, Predictor
from gtx.tasks import Regression
from tests.tables import molecules

# --- Distances along bonds, and attention by them.


CHAIN = np.array([[0, 1, 1, 2], [1, 0, 2, 1]])  # 0-1-2, and an atom apart


def test_bond_distances() -> None:
    apart = np.inf
    expected = [[0, 1, 2, apart], [1, 0, 1, apart], [2, 1, 0, apart], [apart, apart, apart, 0]]
    assert shortest_path_lengths(CHAIN, 4).tolist() == expected
    assert shortest_path_lengths(np.zeros((2, 0), int), 2).tolist() == [[0, apart], [apart, 0]]


def test_mean_weight_of_pairs_equally_far_apart() -> None:
    weights = np.arange(16.0).reshape(1, 4, 4)
    distances, means = average_attention_by_distance(weights, shortest_path_lengths(CHAIN, 4))
    assert distances.tolist() == [0, 1, 2, np.inf]
    expected = [[(0 + 5 + 10 + 15) / 4, (1 + 4 + 6 + 9) / 4, (2 + 8) / 2, (3 + 7 + 11 + 12 + 13 + 14) / 6]]
    np.testing.assert_allclose(means, expected)


def test_receivers_stand_in_rows_of_the_matrix() -> None:
    edges = torch.tensor([[2, 0], [1, 0]])  # sender 2 into receiver 1, and 0 into itself
    matrix = to_dense_attention(torch.tensor([[0.5, 0.25], [1.0, 2.0]]), edges, 3)
    assert matrix.shape == (2, 3, 3)
    assert matrix[:, 1, 2].tolist() == [0.5, 0.25] and matrix[:, 0, 0].tolist() == [1.0, 2.0]
    assert float(matrix.sum()) == 3.75


# --- Scores of three atoms, by hand.


FIRST = torch.tensor([[1.0, 0, 0], [1, 0, 0], [0, 1, 0]])  # 0 and 1 look at 0, 2 looks at 1
SECOND = torch.tensor([[1.0, 0, 0], [0, 1, 0], [0, 1, 0]])  # 2 looks at 1 again


def test_rollout_by_hand() -> None:
    reached = attention_rollout(torch.stack([FIRST, SECOND]))
    # first layer, halved with the residual: rows (1 0 0), (1/2 1/2 0), (0 1/2 1/2)
    # second layer: row 2 is half its own first row and half that of atom 1
    expected = torch.tensor([[1, 0, 0], [0.5, 0.5, 0], [0.25, 0.5, 0.25]])
    torch.testing.assert_close(reached, expected)
    everyone = torch.arange(3)
    torch.testing.assert_close(
        score_atoms_by_attention(reached, everyone, everyone), torch.tensor([1.75, 1.0, 0.25]) / 3
    )


def test_rollout_of_no_layer_is_the_residual_and_rows_sum_to_one() -> None:
    torch.testing.assert_close(attention_rollout(torch.zeros(0, 3, 3)), torch.eye(3))
    weights = torch.randn(4, 7, 7, generator=torch.Generator().manual_seed(0)).softmax(-1)
    torch.testing.assert_close(attention_rollout(weights).sum(1), torch.ones(7))


def test_gradient_weighted_by_hand() -> None:
    weights = torch.stack([FIRST, SECOND])[:, None]
    gradients = torch.ones(2, 1, 3, 3)
    gradients[0, 0, 2, 1] = -1.0  # what 2 takes from 1 in the first layer lowers the output: it does not count
    gradients[1, 0, 2, 1] = 2.0
    # after layer 1: I + rows (1 0 0), (1 0 0), (0 0 0); layer 2 adds twice row 1 = (1 1 0) to row 2, and to rows 0, 1
    expected = torch.tensor([[3.0, 0, 0], [2, 1, 0], [2, 2, 0]])
    torch.testing.assert_close(gradient_weighted_attention(weights, gradients), expected)


def test_gradient_weighted_equals_a_plain_loop() -> None:
    generator = torch.Generator().manual_seed(1)
    weights = torch.rand(3, 2, 5, 5, generator=generator, dtype=torch.float64)
    gradients = torch.randn(3, 2, 5, 5, generator=generator, dtype=torch.float64)
    relevance = [[float(i == j) for j in range(5)] for i in range(5)]
    for a, g in zip(weights.tolist(), gradients.tolist(), strict=True):
        mean = [[sum(max(a[h][i][j] * g[h][i][j], 0) for h in range(2)) / 2 for j in range(5)] for i in range(5)]
        relevance = [
            [relevance[i][j] + sum(mean[i][k] * relevance[k][j] for k in range(5)) for j in range(5)] for i in range(5)
        ]
    expected = torch.tensor(relevance, dtype=torch.float64) - torch.eye(5, dtype=torch.float64)
    torch.testing.assert_close(gradient_weighted_attention(weights, gradients), expected)


def test_nodes_that_are_no_atoms_carry_but_have_no_score() -> None:
    # atoms 0 and 2 know each other only through node 1
    through = torch.tensor([[0.0, 1, 0], [0, 0, 1], [0, 1, 0]])
    reached = attention_rollout(torch.stack([through, through]))
    assert reached[0, 2] == 0.25
    atoms, virtual = torch.tensor([0, 2]), torch.tensor([1])
    torch.testing.assert_close(score_atoms_by_attention(reached, atoms, virtual), reached[1, [0, 2]])
    torch.testing.assert_close(score_atoms_by_attention(reached, atoms, atoms), reached[[0, 2]].mean(0)[[0, 2]])


# --- Removing atoms, on a prediction that is known.


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


# --- Rationales: the search finds what is planted, and its cuts are molecules.


GOLDEN = Path(__file__).parents[1] / "prediction" / "golden"
LARGE = "CC(C)CC(N)c1ccc(CCOC(=O)C2CCC(C#N)CC2)cc1"


@pytest.fixture(scope="module")
def nitriles() -> Predictor:
    """A kernel that has learned to count nitriles, whose truth is known."""
    smiles = molecules(150)["smiles"].tolist()
    smiles += [f"{'C' * n}C#N" for n in range(1, 20)] + [f"N#CC{one}" for one in smiles[:60] if one[0] == "C"]
    nitrile, featuriser = Chem.MolFromSmarts("C#N"), Featuriser(descriptors=False)
    y = [[float(len(read_smiles(one).GetSubstructMatches(nitrile)))] for one in smiles]
    store = featurise(featuriser, smiles, workers=0).store.with_targets(np.array(y))
    task = Regression(("nitriles",)).fitted(store)
    kernel = ridge(1, labels=[[{"radius": 1, "atoms": [0], "bonds": [0]}]])
    fit_closed_form(kernel, task, store)
    spec = {"name": "tanimoto", "arguments": {"out_channels": 1, **kernel.learned_arguments}}
    return Predictor([kernel], ModelFileHeader(task, featuriser, spec), "cpu")


def test_the_search_finds_what_is_planted_in_bounded_work() -> None:
    mol = read_smiles(LARGE)
    planted = frozenset(mol.GetSubstructMatch(Chem.MolFromSmarts("OC(=O)C")))
    asked: list[Atoms] = []

    def worth(sets: Sequence[Atoms]) -> np.ndarray:
        asked.extend(sets)
        return np.array([float(planted <= atoms) for atoms in sets])

    def look(seed: int) -> dict[Atoms, float]:
        return search(
            worth,
            lambda atoms: list_smaller_substructures(mol, atoms),
            frozenset(range(mol.GetNumAtoms())),
            4,
            30,
            seed,
        )

    found = look(0)
    smallest = min((atoms for atoms, value in found.items() if value), key=len)
    assert planted <= smallest and len(smallest) <= len(planted) + 6  # of a ring at one of its ends
    assert len(asked) == len(set(asked)) == len(found) < 1500 and min(map(len, found)) >= 4
    assert look(0) == found and list(look(1)) != list(found)


def test_a_trained_models_planted_substructure_is_found(nitriles: Predictor) -> None:
    found = find_rationale(nitriles, LARGE, threshold=0.4, least=2, draws=30)
    assert found.prediction > 0.4 and found.prediction_alone >= 0.4 and len(found.atoms) <= 8
    assert set(read_smiles(LARGE).GetSubstructMatch(Chem.MolFromSmarts("C#N"))) <= set(found.atoms.tolist())
    own = nitriles.predict(found.substructure).nitriles_pred[0]
    assert (
        own == pytest.approx(found.prediction_alone)
        and f"{found.substructure} ({len(found.atoms)} atoms" in found.text()
    )
    below = find_rationale(nitriles, LARGE, threshold=5.0, least=6, draws=2)
    assert "stays below it" in below.text() and len(below.atoms) == 6
    none = find_rationale(nitriles, LARGE, threshold=0.4, most=1, least=1, draws=1)
    assert none.substructure is None and "none of at most 1 atoms stays above it" in none.text()


def test_peelings_are_connected_and_take_whole_rings() -> None:
    mol = read_smiles("Cc1ccc2ccccc2c1")  # a methyl group at naphthalene
    atoms = frozenset(range(mol.GetNumAtoms()))
    without_methyl, without_ring = sorted(list_smaller_substructures(mol, atoms), key=len, reverse=True)
    assert substructure_to_smiles(mol, without_methyl) == "c1ccc2ccccc2c1"
    assert substructure_to_smiles(mol, without_ring) == "Cc1ccccc1"
    assert {len(atoms) for atoms in list_smaller_substructures(mol, without_methyl)} == {6}
    assert list_smaller_substructures(read_smiles("C"), frozenset({0})) == []


@pytest.mark.parametrize(
    ("smiles", "left", "expected"),
    [
        ("Cn1cccc1", [1, 2, 3, 4, 5], "c1cc[nH]c1"),
        ("C[N+](C)(C)CC(=O)[O-]", [1, 4, 5, 6, 7], "[NH3+]CC(=O)[O-]"),
        ("Cn1ccccc1=O", [1, 2, 3, 4, 5, 6], "C1=CCNC=C1"),  # what was aromatic by its oxygen alone
        ("C[C@H](O)F", [1, 2, 3], "OCF"),
        ("CC#N", [0, 1], "CC"),
    ],
)
def test_hydrogens_take_the_place_of_what_is_cut(smiles: str, left: list[int], expected: str) -> None:
    assert substructure_to_smiles(read_smiles(smiles), left) == Chem.CanonSmiles(expected)


def test_what_has_no_rationale_is_one_line(nitriles: Predictor) -> None:
    with pytest.raises(InputError, match="threshold: expected a value of nitriles"):
        find_rationale(nitriles, "CCO")
    with pytest.raises(InputError, match="most: expected 4 or more, got 3"):
        find_rationale(nitriles, "CCO", threshold=0, most=3)
    with pytest.raises(InputError, match="task sequence does not support explanations"):
        find_rationale(gtx.load(GOLDEN / "sequence.gtx"), "CCO")
    classes = gtx.load(GOLDEN / "classification.gtx", device="cpu")
    assert find_rationale(classes, "CCCCO", draws=1).threshold == 0.5
