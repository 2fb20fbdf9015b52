r"""What the attention layer takes, over the least this machine could take for it.

    python -m experiments.speed.bench_floor

With N nodes, P pairs, C channels, H heads and K pair features, a layer with a bias per head must do

    4 N C^2      q, k, v and W_o
    P K H        the bias
    2 P C        scores and weighted sums

multiplications (with as many additions), and one with pair features in key and value

    3 N C^2      q, k, v
    2 N C K      W_K^T q and W_V applied to the summed pair features
    2 P K H      their products with the pair features
    2 P C        scores and weighted sums.

Exponentials are not counted. Backward needs each product twice more. Whatever is kept on chip, it must read nodes,
pair features and weights and write its output once; backward reads them and the output's gradient again and writes
three gradients. The machine's rates are measured in the same run: a product of two 1024 x 1024 matrices, a copy of
256 MiB (read and written). The floor is the longer of the two times, as if they overlapped wholly.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

import torch

from experiments.speed import bench_layer
from experiments.speed.attentions import EDGE_DIM, HEADS
from experiments.speed.harness import Record, Topic, Work
from experiments.speed.measured import main, milliseconds, table

SIDE, COPIED = 1024, 256 << 20
MATRIX, COPY = "matrix product", "copy"


def counts(function: str, nodes: int, pairs: int, channels: int, backward: bool = False) -> tuple[int, int]:
    """Multiplications and numbers moved, of a forward pass or of both."""
    square, pair_products = channels**2, pairs * EDGE_DIM * HEADS
    weights, products = {
        "bias": (4 * square + EDGE_DIM * HEADS, 4 * nodes * square + pair_products),
        "key and value": (
            3 * square + 2 * channels * EDGE_DIM,
            3 * nodes * square + 2 * nodes * channels * EDGE_DIM + 2 * pair_products,
        ),
    }[function]
    products += 2 * pairs * channels
    if backward:
        return 3 * products, 5 * nodes * channels + 3 * pairs * EDGE_DIM + 3 * weights
    return products, 2 * nodes * channels + pairs * EDGE_DIM + weights


def make_case(name: str, read: Namespace) -> Work:
    """A case: one of the machine's two rates, or a layer as `bench_layer` names it."""
    kind, _, dtype = name.partition(", ")
    if kind == MATRIX:
        one, other = torch.randn(2, SIDE, SIDE, device=read.device).to(bench_layer.DTYPES[dtype]).unbind()
        return Work({"all": lambda: torch.mm(one, other)})
    if kind == COPY:
        source = torch.ones(COPIED, dtype=torch.uint8, device=read.device)
        target = torch.zeros_like(source)
        return Work({"all": lambda: target.copy_(source) is None})
    return bench_layer.make_case(name, read)


def case_groups(read: Namespace) -> list[list[str]]:
    """The rates and the layers of one number type."""
    kinds, channels = (["drug-like"], [64]) if read.quick else (["drug-like", "peptide-like"], bench_layer.CHANNELS)
    dtypes = ["bfloat16", "float32"] if read.device.startswith("cuda") else ["float32"]
    return [
        [f"{MATRIX}, {d}", COPY, *(f"{function}, {kind}, {c}, {d}, gtx" for kind in kinds for c in channels)]
        for d in dtypes
        for function in bench_layer.CONTENDERS
    ]


def tables(records: Sequence[Record]) -> list[str]:
    """The rates, and what was achieved over the floor."""
    rates, measured, rows = {}, [], []
    for record in records:  # a group's rates stand before its layers
        kind, _, dtype = record["case"].partition(", ")
        if "failed" in record:
            rows.append([record["case"], record["step"], record["failed"], *[""] * 5])
        elif kind == MATRIX:
            rates[dtype] = SIDE**3 / record["seconds"]
            measured.append([record["case"], f"{rates[dtype] / 1e9:,.1f} G multiplications/s"])
        elif kind == COPY:
            rates[COPY] = 2 * COPIED / record["seconds"]
            measured.append([COPY, f"{rates[COPY] / 2**30:,.1f} GiB/s"])
        else:
            layer, step = record["case"].removesuffix(", gtx"), record["step"]
            function, *_, dtype = layer.split(", ")
            shape = record["nodes"], record["pairs"], record["channels"]
            products, numbers = counts(function, *shape, backward=step == bench_layer.BOTH)
            moved = numbers * bench_layer.DTYPES[dtype].itemsize
            times = products / rates[dtype], moved / rates[COPY]
            cells = [milliseconds(record), f"{products / 1e6:,.0f} M", f"{moved / 2**20:,.1f} MiB"]
            cells += [f"{time * 1e3:.3g} ms" for time in times]
            rows.append([layer, step, *cells, f"{record['seconds'] / max(times):.1f}x"])
    columns = ["layer", "step", "time", "products", "moved", "at the matrix rate", "at the copy rate", "over floor"]
    return [
        table("The machine's rates", ["what", "rate"], measured, "In the order of the layers below."),
        table("Achieved over floor", columns, rows),
    ]


TOPIC = Topic("floor", __doc__, make_case, case_groups, tables)

if __name__ == "__main__":
    main(TOPIC)
