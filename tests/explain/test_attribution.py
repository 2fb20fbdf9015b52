"""Shapley values, relevance and removals: what is known of them, and of real molecules in a trained model."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from gtx.base.errors import InputError
from gtx.data import featurise
from gtx.explain import compute_attribution, explain_prediction
from gtx.explain.attribution import compute_shapley_values
from gtx.explain.relevance import attention_rollout, gradient_weighted_attention, measure_faithfulness
from gtx.models import build_model, kernel_ridge
from gtx.molecules import Featuriser, read_smiles
from gtx.molecules.descriptors import assign_substructures
from gtx.prediction import ModelFileHeader, Predictor
from gtx.prediction.model_file import KernelMember
from gtx.tasks import BinaryClassification, Regression
from gtx.tasks.closed_form import fit_closed_form
from tests.explain.conftest import specification
from tests.tables import molecules

WORTH = np.array([5.0, -3.0, 1.0, 0.0, 2.0, 2.0])


def game(sets: np.ndarray) -> np.ndarray:
    """Players are worth a number each, and the first two 4 more where both are there; less than the whole."""
    return -(sets @ WORTH) - 4.0 * (sets[:, 0] | sets[:, 1])


def test_values_of_a_game_that_is_known() -> None:
    expected = WORTH + np.array([2.0, 2.0, 0, 0, 0, 0])  # what two bring together is shared
    exact = compute_shapley_values(game, 6)
    np.testing.assert_allclose(exact.values, expected, atol=1e-12)
    assert exact.sets == 64 and not exact.errors.any()

    def among_more(sets: np.ndarray) -> np.ndarray:
        return game(sets[:, :6])

    drawn = compute_shapley_values(among_more, 12, permutations=400, seed=1)
    np.testing.assert_allclose(drawn.values.sum(), -game(np.ones((1, 6), bool))[0])  # whatever is drawn
    np.testing.assert_allclose(drawn.values[:6], expected, atol=1e-9)  # an order and its reverse share it alike
    three = compute_shapley_values(
        lambda sets: -1.0 * sets[:, :3].all(1), 12, permutations=400
    )  # one of three is enough
    assert (np.abs(three.values[:3] - 1 / 3) < 4 * three.errors[:3]).all() and (three.errors[:3] > 0).all()


@pytest.mark.parametrize("smiles", ["CC(C)O", "CC(=O)Nc1ccc(O)cc1"])
def test_values_sum_to_the_difference_of_predictions(predictor: Predictor, smiles: str) -> None:
    of_attention = explain_prediction(predictor, smiles, draws=1)
    for to in ("atoms", "substructures"):
        found = compute_attribution(predictor, smiles, to=to, draws=2)
        assert found.prediction == pytest.approx(of_attention.prediction)
        assert found.contributions.values.sum() == pytest.approx(-of_attention.without, abs=1e-9)
        assert np.abs(found.contributions.values).max() > 1e-4


@pytest.fixture(scope="module", params=[Regression, BinaryClassification])
def mixed(request, predictor: Predictor) -> Predictor:
    """One network and a kernel with most of the say."""
    table = molecules(120)
    kind, column = request.param, table[["solvation_water"]].to_numpy()
    y = column if kind is Regression else (column > np.median(column)).astype(float)
    store = featurise(Featuriser(), table["smiles"].tolist(), workers=0).store.with_targets(y)
    task, model = kind("y").fit(store), specification("standard", Featuriser(), 1)
    own = kernel_ridge(1, num_descriptors=store.descriptors.shape[1])
    fit_closed_form(own, task, store)
    torch.manual_seed(0)
    network = build_model(model)
    network.observe(store)
    task = replace(task, temperatures=(3.0,)) if kind is BinaryClassification else task
    header = ModelFileHeader(task, Featuriser(), model)
    return Predictor([network], header, "cpu", KernelMember(own, torch.tensor([0.8])))


def test_of_a_mix_the_values_sum_to_the_whole_prediction(mixed: Predictor) -> None:
    smiles = "CC(C)O"
    (said,) = mixed.predict([smiles])["y_pred"]
    found = compute_attribution(mixed, smiles, draws=2)
    assert found.prediction == pytest.approx(said, abs=1e-4)
    assert found.contributions.values.sum() == pytest.approx(found.prediction - found.without, abs=1e-9)
    alone = compute_attribution(Predictor(mixed.members, mixed.header, "cpu"), smiles, draws=2)
    batch = featurise(Featuriser(), [smiles], workers=0).store.batch(torch.tensor([0]))
    told, text = mixed.kernel_member.kernel.double().contributions(batch)[0][:, 0].numpy(), found.text()
    assert f"the values sum to {found.prediction - found.without:+.4g}: from the baseline" in text
    if not mixed.task.objective.has_link:
        scale = float(mixed.task.scaler.sd[0])
        np.testing.assert_allclose(
            found.contributions.values, 0.2 * alone.contributions.values + 0.8 * scale * told, atol=1e-6
        )
        share = f"{0.8 * scale * told.sum():+.4g} from the kernel (weight 80%)"
        assert share in text and share in " ".join(found.legend())


def test_values_depend_on_the_atom_and_not_on_its_place_in_the_smiles(predictor: Predictor) -> None:
    values = compute_attribution(predictor, "CC(C)(C)Cl").contributions.values
    np.testing.assert_allclose(values[[0, 2, 3]], values[0], atol=1e-9)
    assert abs(values[0] - values[4]) > 1e-6
    forward, backward = (compute_attribution(predictor, smiles).contributions.values for smiles in ("CCOC=O", "O=COCC"))
    np.testing.assert_allclose(forward, backward[::-1], atol=1e-9)
    ring = compute_attribution(predictor, "c1ccncc1").contributions.values
    np.testing.assert_allclose(ring[[1, 2]], ring[[5, 4]], atol=1e-9)


def test_substructures_are_cut_where_brics_cuts() -> None:
    assert assign_substructures(read_smiles("CC(=O)Nc1ccc(O)cc1")).tolist() == [0, 0, 0, 1, 2, 2, 2, 2, 2, 2, 2]
    assert assign_substructures(read_smiles("c1ccccc1")).tolist() == [0] * 6
    assert assign_substructures(read_smiles("CCO.Cl")).tolist() == [0, 0, 0, 1]


def test_it_says_what_it_found_and_draws_it(predictor: Predictor, tmp_path) -> None:
    found = compute_attribution(predictor, "CC(=O)Nc1ccc(O)cc1", to="substructures")
    text = found.text()
    atoms = compute_attribution(predictor, "CC(=O)Nc1ccc(O)cc1", draws=2)
    assert f"an error of up to {atoms.contributions.errors.max():.2g}" in atoms.legend()[-1]
    assert "error" not in found.legend()[-1] and "42 sets drawn, ± the standard error" in atoms.text()
    assert "C0 C1 O2" in text and "all sets" in text and "descriptors also reach the prediction" in text
    for name in ("a.svg", "a.html"):
        found.save(tmp_path / name)
        assert "<svg" in (tmp_path / name).read_text()
    assert "C0 C1 O2" in (tmp_path / "a.html").read_text()
    for wrong, message in (({"draws": 1}, "draws: expected 2 or more, got 1"), ({"to": "bonds"}, "got 'bonds'")):
        with pytest.raises(InputError, match=message):
            compute_attribution(predictor, "CCO", **wrong)


# --- Relevance: scores of three atoms, by hand.


FIRST = torch.tensor([[1.0, 0, 0], [1, 0, 0], [0, 1, 0]])  # 0 and 1 look at 0, 2 looks at 1
SECOND = torch.tensor([[1.0, 0, 0], [0, 1, 0], [0, 1, 0]])  # 2 looks at 1 again


def test_rollout_by_hand() -> None:
    reached = attention_rollout(torch.stack([FIRST, SECOND]))
    # first layer, halved with the residual: rows (1 0 0), (1/2 1/2 0), (0 1/2 1/2)
    # second layer: row 2 is half its own first row and half that of atom 1
    expected = torch.tensor([[1, 0, 0], [0.5, 0.5, 0], [0.25, 0.5, 0.25]])
    torch.testing.assert_close(reached, expected)


def test_gradient_weighted_by_hand() -> None:
    weights = torch.stack([FIRST, SECOND])[:, None]
    gradients = torch.ones(2, 1, 3, 3)
    gradients[0, 0, 2, 1] = -1.0  # what 2 takes from 1 in the first layer lowers the output: it does not count
    gradients[1, 0, 2, 1] = 2.0
    # after layer 1: I + rows (1 0 0), (1 0 0), (0 0 0); layer 2 adds twice row 1 = (1 1 0) to row 2, and to rows 0, 1
    expected = torch.tensor([[3.0, 0, 0], [2, 1, 0], [2, 2, 0]])
    torch.testing.assert_close(gradient_weighted_attention(weights, gradients), expected)


# --- Removing atoms, on a prediction that is known.


EIGHT = np.array([5.0, -3.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0])


def worth(sets: np.ndarray) -> np.ndarray:
    """A prediction that is the sum of what its atoms are worth."""
    return -(sets @ EIGHT)


def test_a_score_that_knows_the_truth_beats_chance_and_one_that_does_not_does_not() -> None:
    tables = measure_faithfulness(worth, {"true": np.abs(EIGHT), "wrong": -np.abs(EIGHT)})
    one, two, *_ = tables["true"]
    assert one.k == 1 and one.change == -5.0 and two.change == -2.0
    np.testing.assert_allclose(np.sort(one.random), np.sort(-EIGHT))  # all eight sets of one atom, none twice
    assert one.mean == np.abs(EIGHT).mean() and one.sd == np.abs(EIGHT).std()
    assert one.less == 7 / 8  # the set itself is among the eight
    assert tables["wrong"][0].change == 0 and tables["wrong"][0].less == 0
    assert len(two.random) == 28  # pairs of eight
