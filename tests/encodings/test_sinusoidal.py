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


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_positions_are_distinct_and_of_one_length(convention: str) -> None:
    D = 16
    rows = sinusoidal_encoding(torch.arange(500), D, convention)
    torch.testing.assert_close(rows.square().sum(1), torch.full((500,), D / 2))
    apart = torch.cdist(rows, rows)
    assert apart[~torch.eye(500, dtype=torch.bool)].min() > 0.1


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("k", [1, 13])
def test_a_shift_is_one_rotation_for_all_positions(convention: str, k: int) -> None:
    D = 8
    t = 20 * torch.arange(200.0, dtype=torch.float64)
    rows, later = sinusoidal_encoding(t, D, convention), sinusoidal_encoding(t + k, D, convention)
    turn = torch.linalg.lstsq(rows[:100], later[:100]).solution  # from the first positions ...
    torch.testing.assert_close(rows @ turn, later)  # ... it holds for all
    torch.testing.assert_close(turn @ turn.T, torch.eye(D, dtype=torch.float64))
    pairs = torch.arange(D).view(D // 2, 2) if convention == "interleaved" else torch.arange(D).view(2, D // 2).T
    blocks = torch.zeros(D, D, dtype=torch.bool)
    for a in pairs:
        blocks[a[:, None], a] = True
    assert turn[~blocks].abs().max() < 1e-8


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
