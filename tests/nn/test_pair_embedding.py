"""Pair features are embedded, summed and mixed."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from gtx.encodings import CategoricalFeatureSpec, ContinuousFeatureSpec
from gtx.nn import PairEmbedding

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


def test_without_the_mlp_it_is_the_sum() -> None:
    layer, features = PairEmbedding(FEATURES, 6, mlp=False), inputs()
    expected = sum(part(feature) for part, feature in zip(layer.parts, features, strict=True))
    torch.testing.assert_close(layer(features), expected)
