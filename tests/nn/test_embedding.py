"""Codes become sums of vectors; unseen ones are "other"; z-scores are clipped and know what is unknown."""

from __future__ import annotations

import torch

from gtx.encodings import CategoricalFeatureSpec, ContinuousFeatureSpec
from gtx.nn import CategoricalEmbedding
from gtx.nn.embedding import CategoryVocabulary, make_embedding
from gtx.nn.features import ClippedStandardScaler


def test_code_embedding_is_the_sum_over_columns() -> None:
    layer = CategoricalEmbedding([3, 2], 4)
    out = layer(torch.tensor([[2, 1], [0, 0]]))
    torch.testing.assert_close(out, torch.stack([layer.table[2] + layer.table[4], layer.table[0] + layer.table[3]]))
    assert repr(layer) == "CategoricalEmbedding([3, 2], 4)"
    assert (
        isinstance(make_embedding(CategoricalFeatureSpec((3,)), 4), CategoricalEmbedding)
        and make_embedding(ContinuousFeatureSpec(3), 4).in_features == 3
    )


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
