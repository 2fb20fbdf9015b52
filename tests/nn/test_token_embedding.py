"""The embedding is the paper's sum, and its scores are the same table the other way round."""

from __future__ import annotations

import torch

from gtx.encodings.sinusoidal import sinusoidal_encoding
from gtx.nn.decoder_layer import TokenEmbedding


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
