"""Molecules by classes of size, a launch each: who is worked through by which program, and who is too large."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from gtx.graph import CompleteGraph

_TILES = (16, 32, 64, 128, 256)  # a molecule of n atoms takes the smallest T >= n
_ON_CHIP = 16384  # bytes of T * channels: keys, values and their gradients, four of them, stay on chip


def power_of_two(channels: int) -> int:
    """The smallest power of two that is not below, at least 16, as matrix units need."""
    return max(16, 1 << (channels - 1).bit_length())


def limit(channels: int, dtype: torch.dtype) -> int:
    """Atoms of the largest molecule that fits.

    By channels per head in bfloat16 and float16: 256 up to 32, 128 up to 64, 64 up to 128, above that 0. In float32:
    256 up to 16, 128 up to 32, 64 up to 64, 32 up to 128.
    """
    row = power_of_two(channels) * min(dtype.itemsize, 4)
    return max((tile for tile in _TILES if channels <= 128 and tile * row <= _ON_CHIP), default=0)


class SizeClass(NamedTuple):
    """One launch: molecules of `least` < n <= `tile`, all among the `count` from `first` in order of size."""

    tile: int
    least: int
    first: int
    count: int


class Plan(NamedTuple):
    """How a graph is worked through.

    Attributes:
        molecules: first node, first pair and size of every molecule, int64 `[3, B]`, in order of size.
        classes: what is launched.
        large: (nodes, pairs, their graph) of the molecules above the largest tile, or None.
    """

    molecules: Tensor
    classes: list[SizeClass]
    large: tuple[Tensor, Tensor, CompleteGraph] | None


def plan(graph: CompleteGraph, largest: int) -> Plan:
    """Made once per graph, and kept with it as a `cached_property` would."""
    plans = vars(graph).setdefault("_ragged_plans", {})
    if largest not in plans:
        sizes, order = graph.ptr.diff().sort()
        molecules = torch.stack([graph.ptr[order], graph.pair_ptr[order], sizes])
        large = _large(graph, largest) if graph.buckets[-1][1] > largest else None
        plans[largest] = Plan(molecules, _classes(graph, largest), large)
    return plans[largest]


def _classes(graph: CompleteGraph, largest: int) -> list[SizeClass]:
    """From the sizes of the buckets, which the host knows: none in a bucket is above its size, or below the last one's.

    A bucket that straddles two classes is launched in both; there a program of the other class ends at once.
    """
    start = graph.num_graphs - sum(count for count, _ in graph.buckets)  # empty graphs come first
    lowest, bounds = 1, []
    for count, size in graph.buckets:
        bounds.append((start, start + count, lowest, size))
        start, lowest = start + count, size
    classes = []
    for least, tile in zip((0, *_TILES), _TILES, strict=False):
        inside = [(lo, hi) for lo, hi, lowest, size in bounds if size > least and lowest <= tile <= largest]
        if inside:
            classes.append(SizeClass(tile, least, inside[0][0], inside[-1][1] - inside[0][0]))
    return classes


def _large(graph: CompleteGraph, largest: int) -> tuple[Tensor, Tensor, CompleteGraph]:
    sizes = graph.ptr.diff()
    of_node = sizes[graph.batch]
    nodes = (of_node > largest).nonzero().squeeze(1)
    pairs = (torch.repeat_interleave(of_node, of_node) > largest).nonzero().squeeze(1)
    sizes = sizes[sizes > largest]
    return nodes, pairs, CompleteGraph.from_ptr(torch.cat([sizes.new_zeros(1), sizes.cumsum(0)]))
