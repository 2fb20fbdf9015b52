"""Molecules by classes of size, a launch each: who is worked through by which program, and who is too large."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from gtx.graph import CompleteGraph
from gtx.graph.packing import MoleculesBySize

TILES = (16, 32, 64, 128, 256)  # a molecule of n atoms takes the smallest T >= n
LARGEST = 64  # of these are launched; larger ones spill registers, and were never measured against matrix products
_ON_CHIP = 131_072  # bytes of shared memory that are used at most
_COPIES = 8  # so many tiles [T, channels] the compiler lays into shared memory at most


def power_of_two(channels: int) -> int:
    """Return the smallest power of two that is not below, at least 16, as matrix units need."""
    return max(16, 1 << (channels - 1).bit_length())


def limit(channels: int, dtype: torch.dtype, device: torch.device) -> int:
    """Atoms of the largest molecule that fits, by the shared memory of the card.

    By channels per head in bfloat16 and float16: 64 up to 128, above that 0. In float32: 64 up to 64, 32 up to 128; on
    a card with 99 KiB 64 up to 32, 32 up to 64, 16 up to 128.
    """
    row = _COPIES * power_of_two(channels) * min(dtype.itemsize, 4)
    fits = [tile for tile in TILES if tile <= LARGEST and channels <= 128 and tile * row <= shared_memory(device)]
    return max([0, *fits])


@torch.compiler.assume_constant_result
def shared_memory(device: torch.device) -> int:
    """Bytes that a program may lay out on chip."""
    if device.type != "cuda":
        return _ON_CHIP  # under the interpreter
    card = torch.cuda.get_device_properties(device)
    return min(_ON_CHIP, getattr(card, "shared_memory_per_block_optin", 0) or card.shared_memory_per_block)


class SizeClass(NamedTuple):
    """Launch over molecules of `least` < n <= `tile`, all among those from `first` to `stop` in order of size."""

    tile: int
    least: int
    first: int
    stop: int


class Plan(NamedTuple):
    """Order in which the molecules of a graph are computed, derived from `CompleteGraph.size_order`.

    Attributes:
        molecules: first node, first pair and size of every molecule, int64 `[3, M]`, in order of size.
        classes: the launches.
        whole: whether the classes hold every node and every pair; nothing is written for the others.
        large: (nodes, pairs, their graph) of the molecules above the largest tile, or None.
    """

    molecules: Tensor
    classes: tuple[SizeClass, ...]
    whole: bool
    large: tuple[Tensor, Tensor, CompleteGraph] | None


def fits(graph: CompleteGraph, largest: int) -> bool:
    """Return whether a plan exists: some molecule is small enough, and either all are or the others can be selected.

    To select them, the host reads from the device. Compiled code cannot do so, nor a graph that is not `whole`.
    """
    order = graph.size_order
    apart = order.whole and not torch.compiler.is_compiling()
    return 0 < order.least <= largest and (order.most <= largest or apart)


def plan(graph: CompleteGraph, largest: int) -> Plan:
    """Made once per graph. The host knows the classes, so it waits for nothing but large molecules."""
    name, order = f"plan up to {largest}", graph.size_order
    if name not in graph.shared:
        large = _large(graph, largest) if order.most > largest else None
        graph.shared[name] = Plan(order.molecules, _classes(order, largest), order.whole and large is None, large)
    return graph.shared[name]


def _classes(order: MoleculesBySize, largest: int) -> tuple[SizeClass, ...]:
    """Launch a range that straddles two tiles in both; there a program of the other tile ends at once."""
    classes = []
    for least, tile in zip((0, *TILES), TILES, strict=False):
        inside = [r for r in order.ranges if r.most > least and r.least <= tile <= largest]
        if inside:
            classes.append(SizeClass(tile, least, inside[0].first, inside[-1].stop))
    return tuple(classes)


def _large(graph: CompleteGraph, largest: int) -> tuple[Tensor, Tensor, CompleteGraph]:
    sizes = graph.ptr.diff()
    of_node = sizes[graph.batch]
    nodes = (of_node > largest).nonzero().squeeze(1)
    pairs = (torch.repeat_interleave(of_node, of_node) > largest).nonzero().squeeze(1)
    sizes = sizes[sizes > largest]
    return nodes, pairs, CompleteGraph.from_ptr(torch.cat([sizes.new_zeros(1), sizes.cumsum(0)]))
