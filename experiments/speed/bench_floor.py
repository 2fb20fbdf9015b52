"""What the attention layer takes, over the least this machine could take for it.

`counts` has the multiplications (with as many additions) that a layer with N nodes, P pairs, C channels, H heads and K
pair features must do; exponentials are not counted, and backward needs each product twice more. Whatever is kept on
chip, it must read nodes, pair features and weights and write its output once; backward reads them and the output's
gradient again and writes three gradients. The machine's rates are measured in the same run: a product of two 1024 x
1024 matrices, a copy of 256 MiB (read and written). The floor is the longer of the two times, as if they overlapped.
"""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Sequence

import torch

from experiments.speed import bench_layer
from experiments.speed.attentions import EDGE_DIM, HEADS
from experiments.speed.harness import Record, Work
from experiments.speed.pages import milliseconds, table

SIDE, COPIED = 1024, 256 << 20
MATRIX, COPY = "matrix product, float32", "copy"
FUNCTIONS = ("key and value", "bias")


def counts(function: str, nodes: int, pairs: int, channels: int, backward: bool = False) -> tuple[int, int]:
    """Multiplications and numbers moved, of a forward pass or of both."""
    N, P, C, K, H = nodes, pairs, channels, EDGE_DIM, HEADS
    if function == "bias":  # q, k, v and W_o; the bias
        weights, products = 4 * C**2 + K * H, 4 * N * C**2 + P * K * H
    else:  # q, k, v; W_K^T q and W_V applied to the summed pair features; their products with the pair features
        weights, products = 3 * C**2 + 2 * C * K, 3 * N * C**2 + 2 * N * C * K + 2 * P * K * H
    products += 2 * P * C  # scores and weighted sums
    if backward:
        return 3 * products, 5 * N * C + 3 * P * K + 3 * weights
    return products, 2 * N * C + P * K + weights


def groups(options: Namespace) -> list[list[str]]:
    """The rates and the layers."""
    kinds, channels = (["drug-like"], [64]) if options.quick else (["drug-like", "peptide-like"], bench_layer.CHANNELS)
    return [[MATRIX, COPY, *(f"{f}, {kind}, {c}, float32, gtx" for kind in kinds for c in channels)] for f in FUNCTIONS]


def make(name: str, options: Namespace) -> Work:
    """A case: one of the machine's two rates, or a layer as `bench_layer` names it."""
    if name == MATRIX:
        one, other = torch.randn(2, SIDE, SIDE)
        return Work({"all": lambda: torch.mm(one, other)})
    if name == COPY:
        source, target = torch.ones(2, COPIED, dtype=torch.uint8)
        return Work({"all": lambda: target.copy_(source) is None})
    return bench_layer.make(name, options)


def tables(records: Sequence[Record]) -> list[str]:
    """The rates, and what was achieved over the floor."""
    rate, rates, rows = {}, [], []
    for record in records:  # a group's rates stand before its layers
        case, step = record["case"], record["step"]
        row = {"layer": case.removesuffix(", gtx"), "step": step}
        if "failed" in record:
            rows.append(row | {"time": record["failed"]})
        elif case in (MATRIX, COPY):
            rate[case] = (SIDE**3 if case == MATRIX else 2 * COPIED) / record["seconds"]
            shown = f"{rate[case] / 1e9:,.1f} G multiplications/s", f"{rate[case] / 2**30:,.1f} GiB/s"
            rates.append({"what": case, "rate": shown[case == COPY]})
        else:
            shape = record["nodes"], record["pairs"], record["channels"]
            products, numbers = counts(case.split(", ")[0], *shape, step == bench_layer.BOTH)
            moved = numbers * torch.float32.itemsize
            times = products / rate.get(MATRIX, math.nan), moved / rate.get(COPY, math.nan)
            row |= {"time": milliseconds(record), "products": f"{products / 1e6:,.0f} M"}
            row |= {"moved": f"{moved / 2**20:,.1f} MiB", "at the matrix rate": f"{times[0] * 1e3:.3g} ms"}
            row |= {"at the copy rate": f"{times[1] * 1e3:.3g} ms"}
            rows.append(row | {"over floor": f"{record['seconds'] / max(times):.1f}x"})
    note = "In the order of the layers below."
    return [table("The machine's rates", rates, note), table("Achieved over floor", rows)]
