"""An explanation tells of the model at hand: attention, Shapley values, relevance and removals, figure and text."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
from rdkit import Chem
from rdkit.Chem import AllChem

from gtx.base.errors import InputError
from gtx.data import featurise
from gtx.explain import Explanation, compute_attribution, explain_prediction
from gtx.explain.attribution import compute_shapley_values
from gtx.explain.explanation import most_uneven
from gtx.explain.relevance import attention_rollout, gradient_weighted_attention, highest, measure_faithfulness
from gtx.explain.subject import copies
from gtx.models import ARCHITECTURES, build_model, kernel_ridge
from gtx.molecules import Featuriser, read_smiles
from gtx.molecules.descriptors import assign_substructures
from gtx.prediction import ModelFileHeader, Predictor
from gtx.prediction.model_file import KernelMember
from gtx.tasks import BinaryClassification, Regression
from gtx.tasks.closed_form import fit_closed_form
from tests.explain.conftest import specification
from tests.tables import molecules

SMILES = "CC(=O)Nc1ccc(O)cc1"
N = 11


def test_it_explains_the_prediction_of_the_member_and_target(predictor: Predictor) -> None:
    predictor = Predictor(predictor.members, replace(predictor.header, units={"gap": "eV"}), "cpu")
    assert explain_prediction(predictor, SMILES, draws=2).quantity == "gap (eV)"
    frame = predictor.predict(SMILES)
    for target in predictor.header.targets:
        each = [explain_prediction(predictor, SMILES, target, member=member, draws=2) for member in (0, 1)]
        assert abs(each[0].prediction - each[1].prediction) > 1e-4
        said = frame[f"{target}_pred"][0]
        np.testing.assert_allclose(np.mean([e.prediction for e in each]), said, rtol=1e-4)
        assert f"network 1 of 2: its attention is its own; together they predict {said:.4g}" in each[1].notes


def test_weights_are_the_models_own(predictor: Predictor) -> None:
    e = explain_prediction(predictor, SMILES, draws=2)
    assert e.weights.shape == (2, 2, N, N) and e.weights.dtype == np.float64
    np.testing.assert_allclose(e.weights.sum(-1), 1)  # receivers in rows
    member = predictor.members[0]
    store = predictor._featurise([SMILES], 0)[1].store
    seen = member.attention(store.batch(torch.zeros(1, dtype=torch.long)))
    np.testing.assert_allclose(e.weights[1, 0].ravel(), seen.weights[1][:, 0].detach(), atol=1e-5)
    assert e.atoms[:3] == ["C0", "C1", "O2"] and e.distance[0, 2] == 2
    assert repr(e) == f"Explanation({SMILES}, gap = {e.prediction:.4g})"
    np.testing.assert_array_equal(e.shown(), e.weights[1].mean(0))
    other = explain_prediction(predictor, SMILES, layer=0, head=1, draws=2)
    np.testing.assert_array_equal(other.shown(), e.weights[0, 1])


def test_a_removal_is_a_graph_without_these_edges(predictor: Predictor) -> None:
    e = explain_prediction(predictor, SMILES, draws=2)
    model = deepcopy(predictor.members[0]).double()
    batch = copies(predictor._featurise([SMILES], 0)[1].store)
    graph = model.graph(batch)
    for name, table in e.faithfulness.items():
        for removal in table:
            gone = np.isin(np.arange(N), highest(getattr(e, name), removal.k))
            keep = [not (gone[s] or gone[r]) for s, r in graph.edge_index.T.tolist()]
            maps = model.attention(batch, graph.masked(torch.tensor(keep)))  # the edge list, one set at a time
            out = model.head(maps.embedding)
            changed = float(predictor.task.scaler.unscale(out.detach())[0, 0])
            assert removal.change == pytest.approx(changed - e.prediction, abs=1e-9)
    assert [removal.k for removal in e.faithfulness["rollout"]] == [1, 2, 3, 5]


def test_scores_follow_the_atoms_when_they_are_renumbered(predictor: Predictor) -> None:
    one, other = explain_prediction(predictor, "CCCO", draws=2), explain_prediction(predictor, "OCCC", draws=2)
    np.testing.assert_allclose(one.rollout, other.rollout[::-1])
    np.testing.assert_allclose(one.gradient, other.gradient[::-1])
    np.testing.assert_allclose(one.weights, other.weights[:, :, ::-1, ::-1])


def test_random_weights_are_those_of_the_seed_and_change_nothing(predictor: Predictor) -> None:
    before = predictor.predict(SMILES)
    state = torch.get_rng_state()
    one, same, other = (explain_prediction(predictor, SMILES, seed=seed, draws=2) for seed in (3, 3, 4))
    assert torch.equal(torch.get_rng_state(), state)
    assert predictor.predict(SMILES).equals(before) and all(p.grad is None for p in predictor.members[0].parameters())
    np.testing.assert_array_equal(one.random.weights, same.random.weights)
    assert one.random.prediction == same.random.prediction != other.random.prediction
    assert np.abs(one.random.weights - one.weights).max() > 1e-3
    np.testing.assert_array_equal(one.weights, other.weights)
    assert -1 <= one.agreement()["rollout"] <= 1


def test_random_weights_know_the_atoms_that_training_had(predictor: Predictor) -> None:
    selenium, methanol = (explain_prediction(predictor, smiles, draws=2) for smiles in ("C[Se]C", "CO"))
    assert any("element Se" in note for note in selenium.notes) and not any("element" in n for n in methanol.notes)
    # carbon and oxygen differ for random weights: both are known elements
    assert abs(methanol.random.rollout[0] - methanol.random.rollout[1]) > 1e-6


def test_the_most_uneven_receiver_is_the_least_even() -> None:
    weights = np.full((4, 4), 0.25)
    weights[2] = [0.7, 0.1, 0.1, 0.1]
    weights[3] = [0, 0, 0, 1]  # one edge alone: even
    assert most_uneven(weights) == 2
    assert most_uneven(np.zeros((2, 2))) == 0


KINDS = ["standard", "gat", "rmat", "graphormer", "exphormer", "transformer_m", "tokengt"]
"""Of all pairs, of bonds, in space, with virtual nodes, with few edges, with both channels, with bonds as nodes."""


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_architecture_can_be_explained(name: str, untrained: Callable[..., Predictor]) -> None:
    text = "CC(=O)NC"
    if ARCHITECTURES[name].coordinates == "needed":
        mol = Chem.AddHs(Chem.MolFromSmiles(text))
        AllChem.EmbedMolecule(mol, randomSeed=1)
        text = Chem.MolToMolBlock(Chem.RemoveHs(mol))
    e = explain_prediction(untrained(name), text, draws=2)
    assert e.weights.shape[2:] == (5, 5) and np.isfinite(e.weights).all()
    assert np.isfinite([e.rollout, e.gradient]).all() and (e.gradient >= 0).all() and e.gradient.max() > 0
    bonds_alone = name == "gat"
    notes = " ".join(e.notes)
    assert ("pairs" in notes) == (bonds_alone or name == "exphormer")
    assert ("bonds as nodes" in notes) == (name == "tokengt")
    assert ("virtual" in notes) == (name in ("graphormer", "exphormer", "transformer_m", "tokengt"))
    if bonds_alone:
        assert (e.weights[:, :, e.distance > 1] == 0).all()
    assert any(removal.change != 0 for removal in e.faithfulness["gradient"])
    assert e.smiles in ("CC(=O)NC", "CNC(C)=O")  # a mol block is named by its SMILES


def test_virtual_nodes_carry_what_is_read_out(untrained: Callable[..., Predictor]) -> None:
    e = explain_prediction(untrained("standard", virtual_nodes=2, readout=[]), "CCO", draws=2)
    assert e.weights.shape == (2, 2, 3, 3) and (e.weights.sum(-1) < 1).all()  # the rest comes from virtual nodes
    assert 0 < e.rollout.sum() < 1


def test_a_probability_changes_within_its_bounds(untrained: Callable[..., Predictor]) -> None:
    e = explain_prediction(untrained("standard", task=BinaryClassification("y")), SMILES)
    assert 0 < e.prediction < 1 and 0 < e.prediction + e.without < 1
    assert "probability of y" in e.text()


@pytest.mark.parametrize("smiles", ["C", "[Na+].[Cl-]", "CC", "C" * 30])
def test_odd_molecules(smiles: str, predictor: Predictor) -> None:
    e = explain_prediction(predictor, smiles, draws=2)
    assert np.isfinite(e.rollout).all() and len(e.rollout) == len(e.atoms)
    assert bool(e.faithfulness["rollout"]) == (smiles != "C")
    assert e.text() and (len(e.atoms) > 2 or "<svg" in e.svg())


# --- The figure: one well-formed SVG that needs nothing else, and a page.


SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def explanation(predictor: Predictor) -> Explanation:
    return explain_prediction(predictor, SMILES, receiver=2)


@pytest.fixture(scope="module")
def svg(explanation: Explanation) -> str:
    return explanation.svg()


def words(svg: str) -> str:
    return " ".join("".join(text.itertext()) for text in ET.fromstring(svg).iter(f"{SVG}text"))


@pytest.mark.slow
def test_one_svg_that_needs_nothing_else(explanation: Explanation, svg: str) -> None:
    assert svg == explanation.svg()
    assert set(re.findall(r"https?://[^\"' ]*", svg)) <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    names = re.findall(r'\bid="([^"]*)"', svg)
    assert len(names) == len(set(names))
    assert set(re.findall(r"(?:url\(|href=\")#([^)\"]*)", svg)) <= set(names)
    drawings = [child for child in ET.fromstring(svg) if child.tag == f"{SVG}svg"]
    assert float(ET.fromstring(svg).get("width")) <= 1100  # words of 11 pixels are still read where 900 are at hand
    assert len(drawings) == 6 and len({(d.get("x"), d.get("y")) for d in drawings}) == 6


def test_figure_and_text_say_what_is_drawn_and_what_the_check_found(explanation: Explanation, svg: str) -> None:
    said, text = words(svg), explanation.text()
    assert "Attention of atom O2" in said and SMILES in said
    assert f"Trained: gap = {explanation.prediction:.4g}" in said
    assert f"Random weights: gap = {explanation.random.prediction:.4g}" in said
    assert "do not prove a cause" in said and "do not prove a cause" in text and "network 0 of 2" in said.lower()
    assert "drawn: layer 1 of 2, mean of 2 heads, counted from 0; receiver O2" in text
    for account in (explanation, explanation.random):
        for table in account.faithfulness.values():
            assert all(f"{removal.less:.0%}" in said for removal in table)
            assert all(f"{r.change:+.3g}" in text and f"{r.mean:.3g} ± {r.sd:.2g}" in text for r in table)
    odd = replace(explanation, quantity="$x_1$ <b> & y")  # names of targets are text
    assert "$x_1$ <b> & y" in words(odd.svg())


@pytest.mark.slow
def test_files(explanation: Explanation, tmp_path) -> None:
    explanation.save(tmp_path / "figure.svg")
    ET.parse(tmp_path / "figure.svg")
    explanation.save(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert page.startswith("<!doctype html>") and "<svg" in page and "change less" in page


# --- Shapley values: what is known of them, and of real molecules in a trained model.


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
    three = compute_shapley_values(lambda sets: -1.0 * sets[:, :3].all(1), 12, permutations=400)  # one is enough
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
        both = 0.2 * alone.contributions.values + 0.8 * scale * told
        np.testing.assert_allclose(found.contributions.values, both, atol=1e-6)
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
