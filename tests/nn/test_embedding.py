"""Codes, pairs, tokens, bonds and substructures become vectors; channels of the graph and of space."""

from collections.abc import Sequence

import pytest
import torch
import torch.nn.functional as F
from rdkit import Chem
from rdkit.Chem.rdFingerprintGenerator import AdditionalOutput, GetMorganGenerator
from torch_geometric.data import Batch

from gtx.encodings import (
    CategoricalFeatureSpec,
    ContinuousFeatureSpec,
    GaussianDistance,
    NodeDegree,
    ShortestPathLength,
    TransformerM3DEncoding,
)
from gtx.encodings.positions import sinusoidal_encoding
from gtx.graph import CompleteGraph
from gtx.molecules import Featuriser
from gtx.nn import CategoricalEmbedding, PairEmbedding, SubstructureCountEmbedding, TransformerMPairEncoding
from gtx.nn.bonds import BondVectorFromAtoms
from gtx.nn.decoder_layer import TokenEmbedding
from gtx.nn.embedding import CategoryVocabulary
from gtx.nn.features import ClippedStandardScaler, UserFeatureProjection
from tests.molecules_for_tests import SMILES, store, whole_batch


@pytest.mark.parametrize("channels", [4, 128], ids=["plain", "compiled"])
def test_code_embedding_is_the_sum_over_columns(channels: int) -> None:
    layer = CategoricalEmbedding([3, 2], channels)
    out = layer(torch.tensor([[2, 1], [0, 0]]))
    torch.testing.assert_close(out, torch.stack([layer.table[2] + layer.table[4], layer.table[0] + layer.table[3]]))
    assert repr(layer) == f"CategoricalEmbedding([3, 2], {channels})"
    layer = CategoricalEmbedding([3, 2], channels, silent_first=True)  # "other" says nothing until it is trained
    assert layer(torch.tensor([[0, 0]])).eq(0).all() and layer(torch.tensor([[1, 1]])).ne(0).all()


def test_vocabulary_turns_unseen_codes_into_other() -> None:
    vocabulary = CategoryVocabulary([3, 2])
    codes = torch.tensor([[2, 1], [1, 1]])
    assert vocabulary(codes).equal(codes)  # nothing observed yet
    vocabulary.observe(torch.tensor([[2, 0]], dtype=torch.uint8))
    assert vocabulary(codes).tolist() == [[2, 0], [0, 0]]
    assert vocabulary.unseen(codes).tolist() == [[False, True], [True, True]]


@pytest.mark.parametrize(
    "module", [CategoricalEmbedding([3, 2], 4), CategoricalEmbedding([3, 2], 16), CategoryVocabulary([3, 2])], ids=repr
)
@pytest.mark.parametrize(
    ("codes", "message"),
    [
        ([[0, 0], [3, 0]], "expected codes from 0 to 2 in column 0, got 3 in row 1"),
        ([[0, -1]], "expected codes from 0 to 1 in column 1, got -1 in row 0"),
        ([[1]], r"expected codes, integers \[\*, 2\], got torch.int64 \[1, 1\]"),
        ([[0.0, 1.0]], r"expected codes, integers \[\*, 2\], got torch.float32 \[1, 2\]"),
    ],
)
def test_codes_without_a_row_are_named(module: torch.nn.Module, codes: list, message: str) -> None:
    """The row would be that of another column."""
    with pytest.raises(ValueError, match=message):
        module(torch.tensor(codes))


def test_clipped_scaler() -> None:
    scaler = ClippedStandardScaler(3, clip=2.0)
    train = torch.tensor([[1.0, 5.0, torch.nan], [3.0, 5.0, 2.0], [2.0, 5.0, 4.0]])
    scaler.observe(train)
    out = scaler(train)
    torch.testing.assert_close(out[:, 0].square().mean(), torch.tensor(1.0))
    assert out[:, 1].eq(0).all()  # constant in training: says nothing
    assert out[0, 2] == 0 and out[1, 2] == -out[2, 2]
    assert scaler(torch.tensor([[1e9, 7.0, -1e9]])).tolist() == [[2.0, 0.0, -2.0]]


def test_features_of_a_user_may_be_of_any_precision() -> None:
    module, batch = UserFeatureProjection("atom_features", 3, 4), whole_batch(["CCO"])
    batch.atom_features = torch.randn(3, 3, dtype=torch.float64)
    assert module(batch, torch.zeros(3, 4)).dtype == torch.float32
    with pytest.raises(ValueError, match=r"bond_features: expected \[n, 2\], see .*; got none"):
        UserFeatureProjection("bond_features", 2, 4)(batch, torch.zeros(4, 4))


# --- Pairs.


def test_is_the_equation_in_its_docstring() -> None:
    layer = PairEmbedding([ContinuousFeatureSpec(3), CategoricalFeatureSpec((4, 2))], 6)
    values, codes = torch.randn(13, 3), torch.stack([torch.randint(4, (13,)), torch.randint(2, (13,))], 1)
    linear, table = layer.parts[0], layer.parts[1].table
    summed = values @ linear.weight.T + linear.bias + table[codes[:, 0]] + table[4 + codes[:, 1]]
    middle = layer.mlp[1]
    expected = F.gelu(F.gelu(summed) @ middle.weight.T + middle.bias)
    torch.testing.assert_close(layer([values, codes]), expected)
    assert layer.width == 6


# --- Bonds.


def test_the_direction_of_a_bond_does_not_matter() -> None:
    readout, x = BondVectorFromAtoms(4, [3, 2]), torch.randn(3, 4)
    bond_index, codes = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), torch.tensor([[1, 1], [1, 1], [2, 0], [2, 0]])
    found = readout(x, bond_index, codes)
    assert found.shape == (4, readout.width) == (4, 12)
    assert torch.equal(found[0::2], found[1::2])
    torch.testing.assert_close(found[0, :8], torch.cat([x[0] + x[1], (x[0] - x[1]).abs()]))
    torch.testing.assert_close(found[2, 8:], readout.embedding(codes[2:3])[0])


# --- Tokens.


def test_a_token_is_its_scaled_row_and_the_sinusoids_and_scores_are_products_with_the_same_table() -> None:
    layer = TokenEmbedding(7, 8).double()
    tokens, places = torch.tensor([3, 0, 6, 3]), torch.tensor([5, 9, 5, 6])
    expected = 8**0.5 * layer.table.weight[tokens] + sinusoidal_encoding(places.double(), 8)
    torch.testing.assert_close(layer(tokens, places), expected, rtol=0, atol=1e-12)
    assert layer(tokens[:0], places[:0]).shape == (0, 8)
    torch.nn.init.normal_(layer.bias)
    x = torch.randn(3, 8).double()
    torch.testing.assert_close(layer.scores(x), x @ layer.table.weight.T + layer.bias)


# --- A molecule's channels of the graph and of space are on or off, and what is off does not count.


@pytest.fixture(scope="module")
def batch() -> Batch:
    """Ethanol again and again; the coordinates of the second molecule are unknown."""
    made = whole_batch(["CCO"] * 200)
    made.pos = torch.randn(made.num_nodes, 3, generator=torch.Generator().manual_seed(0))
    made.pos[3:6] = torch.nan
    return made


@pytest.fixture(scope="module")
def graph(batch: Batch) -> CompleteGraph:
    return CompleteGraph.from_batch(batch.batch)


def make(modes: Sequence[float] = (0.2, 0.5, 0.3)) -> TransformerMPairEncoding:
    torch.manual_seed(0)
    return TransformerMPairEncoding(
        [NodeDegree(), ShortestPathLength(4)], [TransformerM3DEncoding(GaussianDistance(6))], 5, 4, modes
    )


def test_either_alone_or_both_as_often_as_is_said(batch: Batch, graph: CompleteGraph) -> None:
    layer = make()
    flat, space = layer.switches(batch, graph)
    assert flat[1] and not space[1]  # without coordinates there is no choice
    known = torch.arange(200) != 1
    for share, found in zip((0.2, 0.5, 0.3), (flat & ~space, space & ~flat, flat & space), strict=True):
        assert abs(found[known].double().mean() - share) < 4 * (share * (1 - share) / 199) ** 0.5
    again, _ = layer.switches(batch, graph)
    assert not torch.equal(again, flat)
    flat, space = layer.eval().switches(batch, graph)
    assert flat.all() and torch.equal(space, known)


@pytest.mark.parametrize("mode", ["flat", "space", "both"])
def test_what_is_off_does_not_count_and_what_is_on_adds_up(mode: str, batch: Batch, graph: CompleteGraph) -> None:
    layer = make({"flat": (1, 0, 0), "space": (0, 1, 0), "both": (0, 0, 1)}[mode])
    on = [torch.tensor(mode in ("flat", "both")), torch.tensor(mode in ("space", "both"))]
    nodes, pairs = layer(batch, graph)
    (flat_nodes, flat_pairs), (space_nodes, space_pairs) = layer.flat(batch, graph), layer.space(batch, graph)
    unplaced = graph.batch == 1
    torch.testing.assert_close(nodes[unplaced], flat_nodes[unplaced])
    torch.testing.assert_close(nodes[~unplaced], (on[0] * flat_nodes + on[1] * space_nodes)[~unplaced])
    of_pair = unplaced[graph.pair_index[1]]
    torch.testing.assert_close(pairs[~of_pair], (on[0] * flat_pairs + on[1] * space_pairs)[~of_pair])
    assert space_nodes.std() > 0.01 < flat_pairs.std()


def test_bad_settings_are_named() -> None:
    for modes in ((0.5, 0.5), (0.5, 0.6, 0.1), (-0.5, 1.0, 0.5)):
        with pytest.raises(ValueError, match="the probabilities of three modes, with sum 1, got"):
            make(modes)
    space, without = [TransformerM3DEncoding(GaussianDistance(6))], whole_batch(["CCO"])
    for flat in ([], [ShortestPathLength(4)], [NodeDegree()]):
        with pytest.raises(ValueError, match=r"encodings of the graph with node values and pair values, got \["):
            TransformerMPairEncoding(flat, space, 5, 4)
    with pytest.raises(ValueError, match=r"encodings of the coordinates with pair values, got \[NodeDegree"):
        TransformerMPairEncoding([NodeDegree(), ShortestPathLength(4)], [NodeDegree()], 5, 4)
    with pytest.raises(ValueError, match=r"needs coordinates: expected pos \[N, 3\] in Å, got None"):
        make()(without, CompleteGraph.from_batch(without.batch))


# --- Substructures are counted in any order, told apart as RDKit does, and used where training has enough of them.


PLAIN = Featuriser().constitution


def counts(smiles: str, **arguments: object) -> torch.Tensor:
    return SubstructureCountEmbedding(4, **PLAIN, **arguments).counts(whole_batch([smiles]))[0]


def test_counts_by_hand() -> None:
    """Propane: CH3 twice and CH2 once; within one bond the same; within two all three see the whole molecule."""
    assert counts("CCC", radius=0)[counts("CCC", radius=0) > 0].sort().values.tolist() == [1, 2]
    assert counts("CCC", radius=2)[counts("CCC", radius=2) > 0].sort().values.tolist() == [1, 1, 1, 2, 2, 2]


@pytest.mark.parametrize(("one", "other"), [("C[C@H](F)Cl", "C[C@@H](F)Cl"), ("F/C=C/F", "F/C=C\\F")])
def test_constitution_alone_tells_apart(one: str, other: str) -> None:
    """Environments of another constitution have other labels: see the next test."""
    assert torch.equal(counts(one), counts(other))


def test_like_labels_are_like_environments_of_morgan() -> None:
    """RDKit's identifier of what lies around an atom is a function of its label; the label may know more."""
    texts = [text for text in SMILES if "[2H]" not in text]  # the isotope's hydrogen is an atom of its own
    labels = SubstructureCountEmbedding(4, **PLAIN).labels(whole_batch(texts))
    generator = GetMorganGenerator(radius=2, includeRedundantEnvironments=True)
    environment: dict[int, tuple[int, int]] = {}
    start = 0
    for text in texts:
        mol, seen = Chem.MolFromSmiles(text), AdditionalOutput()
        seen.AllocateBitInfoMap()
        generator.GetSparseCountFingerprint(mol, additionalOutput=seen)
        for identifier, places in seen.GetBitInfoMap().items():
            for atom, radius in places:
                label = int(labels[radius, start + atom])
                assert environment.setdefault(label, (identifier, radius)) == (identifier, radius)
        start += mol.GetNumAtoms()
    assert start == labels.shape[1] and len(environment) > 60


def test_rare_ones_are_left_out() -> None:
    texts = ["CCO", "CCCO", "CCN", "CCF"]
    module = SubstructureCountEmbedding(4, **PLAIN).eval()
    module.observe(store(texts))
    assert torch.equal(module.used, (module.counts(whole_batch(texts)) > 0).sum(0) >= 3)
    assert 0 < module.used.sum() < 5
    assert not module(whole_batch(["BrBr"])).any()
    assert module(whole_batch(["CCO"])).any()


@pytest.mark.parametrize("wrong", [{"radius": -1}, {"radius": 21}, {"folded": 0}])
def test_counts_that_make_no_sense_are_refused(wrong: dict) -> None:
    (name, value), *_ = wrong.items()
    with pytest.raises(ValueError, match=f"expected a radius from 0 to 20 and at least 1 folded, got .*{name}={value}"):
        SubstructureCountEmbedding(8, **wrong)
