"""Codes, pairs, tokens and bonds become vectors; unseen codes are "other"; z-scores know what is unknown."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from gtx.encodings import CategoricalFeatureSpec, ContinuousFeatureSpec
from gtx.encodings.sinusoidal import sinusoidal_encoding
from gtx.nn import CategoricalEmbedding, PairEmbedding
from gtx.nn.bonds import BondVectorFromAtoms
from gtx.nn.decoder_layer import TokenEmbedding
from gtx.nn.embedding import CategoryVocabulary
from gtx.nn.features import ClippedStandardScaler


def test_code_embedding_is_the_sum_over_columns() -> None:
    layer = CategoricalEmbedding([3, 2], 4)
    out = layer(torch.tensor([[2, 1], [0, 0]]))
    torch.testing.assert_close(out, torch.stack([layer.table[2] + layer.table[4], layer.table[0] + layer.table[3]]))
    assert repr(layer) == "CategoricalEmbedding([3, 2], 4)"


def test_other_says_nothing_until_it_is_trained() -> None:
    layer = CategoricalEmbedding([3, 2], 4, silent_first=True)
    assert layer(torch.tensor([[0, 0]])).eq(0).all() and layer(torch.tensor([[1, 1]])).ne(0).all()


def test_vocabulary_turns_unseen_codes_into_other() -> None:
    vocabulary = CategoryVocabulary([3, 2])
    codes = torch.tensor([[2, 1], [1, 1]])
    assert vocabulary(codes).equal(codes)  # nothing observed yet
    vocabulary.observe(torch.tensor([[2, 0]], dtype=torch.uint8))
    assert vocabulary(codes).tolist() == [[2, 0], [0, 0]]
    assert vocabulary.unseen(codes).tolist() == [[False, True], [True, True]]


def test_clipped_scaler() -> None:
    scaler = ClippedStandardScaler(3, clip=2.0)
    train = torch.tensor([[1.0, 5.0, torch.nan], [3.0, 5.0, 2.0], [2.0, 5.0, 4.0]])
    scaler.observe(train)
    out = scaler(train)
    torch.testing.assert_close(out[:, 0].square().mean(), torch.tensor(1.0))
    assert out[:, 1].eq(0).all()  # constant in training: says nothing
    assert out[0, 2] == 0 and out[1, 2] == -out[2, 2]
    assert scaler(torch.tensor([[1e9, 7.0, -1e9]])).tolist() == [[2.0, 0.0, -2.0]]


# --- Pairs.


FEATURES = [ContinuousFeatureSpec(3), CategoricalFeatureSpec((4, 2))]


def inputs() -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [torch.randn(13, 3), torch.stack([torch.randint(4, (13,)), torch.randint(2, (13,))], 1)]


def test_is_the_equation_in_its_docstring() -> None:
    layer, (values, codes) = PairEmbedding(FEATURES, 6), inputs()
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


def test_is_the_scaled_table_and_the_sinusoids() -> None:
    layer = TokenEmbedding(7, 8).double()
    tokens, places = torch.tensor([3, 0, 6, 3]), torch.tensor([5, 9, 5, 6])
    expected = 8**0.5 * layer.table.weight[tokens] + sinusoidal_encoding(places.double(), 8)
    torch.testing.assert_close(layer(tokens, places), expected, rtol=0, atol=1e-12)
    assert layer(tokens[:0], places[:0]).shape == (0, 8)


def test_scores_are_products_with_the_same_table() -> None:
    layer, x = TokenEmbedding(7, 8).double(), torch.randn(3, 8).double()
    torch.nn.init.normal_(layer.bias)
    torch.testing.assert_close(layer.scores(x), x @ layer.table.weight.T + layer.bias)
