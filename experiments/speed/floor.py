r"""What the attention layer takes, over the least this machine could take for it.

    python -m experiments.speed.floor

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

import argparse
from collections.abc import Sequence

import torch

from experiments.speed import layer
from experiments.speed.attentions import EDGE_DIM, HEADS
from experiments.speed.cases import Work, options, race, serve
from experiments.speed.results import Table, milliseconds, write

MODULE = "experiments.speed.floor"
SIDE, COPIED = 1024, 256 << 20
MATRIX, COPY = "matrix product", "copy"


def counts(function: str, nodes: int, pairs: int, channels: int) -> tuple[int, int]:
    """Multiplications and numbers moved, of a forward pass."""
    own = {
        "bias": 4 * nodes * channels**2 + pairs * EDGE_DIM * HEADS,
        "key and value": 3 * nodes * channels**2 + 2 * nodes * channels * EDGE_DIM + 2 * pairs * EDGE_DIM * HEADS,
    }
    return own[function] + 2 * pairs * channels, 2 * nodes * channels + pairs * EDGE_DIM + _weights(function, channels)


def both_counts(function: str, nodes: int, pairs: int, channels: int) -> tuple[int, int]:
    """The same, forward and backward."""
    products, _ = counts(function, nodes, pairs, channels)
    return 3 * products, 5 * nodes * channels + 3 * pairs * EDGE_DIM + 3 * _weights(function, channels)


def _weights(function: str, channels: int) -> int:
    if function == "bias":
        return 4 * channels**2 + EDGE_DIM * HEADS
    return 3 * channels**2 + 2 * channels * EDGE_DIM


def make(name: str, device: str = "cpu") -> Work:
    """A case: one of the machine's two rates, or a layer as `layer.make` names it."""
    kind, _, dtype = name.partition(", ")
    if kind == MATRIX:
        one, other = torch.randn(2, SIDE, SIDE, device=device).to(layer.DTYPES[dtype]).unbind()
        return Work({"all": lambda: torch.mm(one, other)})
    if kind == COPY:
        source = torch.ones(COPIED, dtype=torch.uint8, device=device)
        target = torch.zeros_like(source)
        return Work({"all": lambda: target.copy_(source) is None})
    return layer.make(name, device)


def groups(options: argparse.Namespace) -> list[list[str]]:
    """Cases that take turns: the rates and the layers of one number type."""
    kinds, channels = (["drug-like"], [64]) if options.quick else (["drug-like", "peptide-like"], layer.CHANNELS)
    dtypes = ["bfloat16", "float32"] if options.device.startswith("cuda") else ["float32"]
    return [
        [f"{MATRIX}, {d}", COPY, *(f"{function}, {kind}, {c}, {d}, gtx" for kind in kinds for c in channels)]
        for d in dtypes
        for function in layer.CONTENDERS
    ]


def tables(records: Sequence[dict]) -> list[Table]:
    """Achieved over floor."""
    rates, measured, rows, size = {}, [], [], {"float32": 4, "bfloat16": 2}
    for record in records:  # a group's rates stand before its layers
        kind, _, dtype = record["case"].partition(", ")
        if "failed" in record:
            rows.append([record["case"], record["step"], record["failed"], "", "", "", "", ""])
        elif kind == MATRIX:
            rates[dtype] = SIDE**3 / record["seconds"]
            measured.append([record["case"], f"{rates[dtype] / 1e9:,.1f} G multiplications/s"])
        elif kind == COPY:
            rates[COPY] = 2 * COPIED / record["seconds"]
            measured.append([COPY, f"{rates[COPY] / 2**30:,.1f} GiB/s"])
        else:
            function, batch, _, dtype, _ = record["case"].split(", ")
            count = counts if record["step"] == "forward" else both_counts
            products, moved = count(function, record["nodes"], record["pairs"], record["channels"])
            times = products / rates[dtype], moved * size[dtype] / rates[COPY]
            rows.append(
                [
                    f"{function}, {batch}, {record['channels']}, {dtype}",
                    record["step"],
                    milliseconds(record),
                    f"{products / 1e6:,.0f} M",
                    f"{moved * size[dtype] / 2**20:,.1f} MiB",
                    *(f"{time * 1e3:.3g} ms" for time in times),
                    f"{record['seconds'] / max(times):.1f}x",
                ]
            )
    columns = ["layer", "step", "time", "products", "moved", "at the matrix rate", "at the copy rate", "over floor"]
    return [
        Table("The machine's rates", ["what", "rate"], measured, "In the order of the layers below."),
        Table("Achieved over floor", columns, rows),
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all, or be the process of one case."""
    read = options(__doc__, arguments)
    if read.case:
        return serve(lambda name: make(name, read.device), read)
    records = [record for group in groups(read) for record in race(MODULE, group, read)]
    write("floor", __doc__, read, records, tables(records))


if __name__ == "__main__":
    main()
