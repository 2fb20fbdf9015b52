"""Sinusoids of a position: both published conventions, and what both have in common."""

from __future__ import annotations

import math

import pytest
import torch
from torch_geometric.data import Batch

from gtx.encodings import SinusoidalPosition
from gtx.encodings.sinusoidal import sinusoidal_encoding
from gtx.graph import CompleteGraph

CONVENTIONS = ["interleaved", "halves"]


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_is_its_equation(convention: str) -> None:
    t, D = 7, 8
    row = sinusoidal_encoding(torch.tensor([t]), D, convention)[0].tolist()
    for i in range(D // 2):
        if convention == "interleaved":
            angle, at = t / 10000 ** (2 * i / D), (2 * i, 2 * i + 1)
        else:
            angle, at = t / 10000 ** (i / (D / 2 - 1)), (i, D // 2 + i)
        assert [row[a] for a in at] == pytest.approx([math.sin(angle), math.cos(angle)])


def test_far_positions_keep_their_digits() -> None:
    assert sinusoidal_encoding(torch.tensor(123_456), 2)[0].item() == pytest.approx(math.sin(123_456), abs=1e-6)
    assert sinusoidal_encoding(torch.rand(2, 3, dtype=torch.float64), 4).dtype == torch.float64


def test_encoding_counts_within_each_graph(batch: Batch, graph: CompleteGraph) -> None:
    node, pair = SinusoidalPosition(6, "halves")(batch, graph)
    assert pair is None
    for start, stop in zip(batch.ptr[:-1], batch.ptr[1:], strict=True):
        assert node[start:stop].equal(sinusoidal_encoding(torch.arange(int(stop - start)), 6, "halves"))


@pytest.mark.parametrize(
    ("channels", "convention", "message"),
    [
        (5, "interleaved", "an even number of channels, at least 2, got 5"),
        (2, "halves", "an even number of channels, at least 4, got 2"),
        (4, "thirds", "the convention 'interleaved' or 'halves', got 'thirds'"),
    ],
)
def test_wrong_settings_are_refused(channels: int, convention: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SinusoidalPosition(channels, convention)
    with pytest.raises(ValueError, match=message):
        sinusoidal_encoding(torch.arange(3), channels, convention)
