"""One attention layer, forward and forward + backward, against other ways to attend over all pairs of every molecule.

    python -m experiments.speed.layer
    python -m experiments.speed.layer --device cuda

Batches: drug-like (128 molecules of 9 to 38 atoms), tiny (512 of 4 to 9), peptide-like (16 of 80 to 300), one graph of
2,000 nodes; 64, 128 and 256 channels, 8 heads, 32 pair features. Two functions: "key and value", exactly PyG's
`TransformerConv` (pair features in key and value, no W_o), and "bias", one number per pair and head added to the score
(and W_o). `MultiheadAttention` and `GPSConv` take no pair features, so they do less; `TransformerConv` among the
"bias" rows does its own function. "forward" is inference (no gradients kept); "forward + backward" yields the gradients
of weights, nodes and pair features. What depends on neither weights nor features is made once per batch and not
counted (indices, `edge_index`); features are random. float32 on a CPU; bfloat16 and float32 on a GPU.

Time is the median over turns, each case in a process of its own. Memory is the peak during a step above what the
process held before it: inputs, weights and indices do not count.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from experiments.speed import attentions
from experiments.speed.attentions import Batch, Call
from experiments.speed.cases import Work, options, race, serve
from experiments.speed.results import Table, megabytes, milliseconds, ratio, write

MODULE = "experiments.speed.layer"
BOTH = "forward + backward"
SIZES = {"drug-like": (128, 9, 38), "tiny": (512, 4, 9), "peptide-like": (16, 80, 300), "2000 nodes": (1, 2000, 2000)}
CHANNELS = (64, 128, 256)
CONTENDERS = {
    "key and value": {"gtx": attentions.gtx_key_value, "TransformerConv": attentions.transformer_conv},
    "bias": {
        "gtx": attentions.gtx_bias,
        "TransformerConv": attentions.transformer_conv,
        "padded SDPA": attentions.padded_sdpa,
        "MultiheadAttention": attentions.multihead,
        "GPSConv": attentions.gps_conv,
        "FlexAttention": attentions.flex_attention,
    },
}
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def sizes(kind: str) -> Tensor:
    """Nodes of each graph of a batch."""
    count, least, most = SIZES[kind]
    return torch.randint(least, most + 1, (count,), generator=torch.Generator().manual_seed(0))


def make(name: str, device: str = "cpu") -> Work:
    """A case, such as "bias, drug-like, 64, float32, gtx"."""
    function, kind, channels, dtype, contender = name.split(", ")
    build = CONTENDERS[function][contender]
    return work(build, sizes(kind), int(channels), DTYPES[dtype], device)


def work(
    build: Callable[[Batch], tuple[nn.Module, Call]],
    sizes: Tensor,
    channels: int,
    dtype: torch.dtype = torch.float32,
    device: str = "cpu",
) -> Work:
    """A contender on a batch.

    Args:
        build: one of `attentions`.
        sizes: nodes of each graph.
        channels: of the nodes.
        dtype: of features and weights.
        device: where it runs.
    """
    for step in _steps(build, Batch(sizes[:1].clamp(max=9), channels, dtype, device)).values():
        step()  # libraries load parts of themselves at first use: that is nobody's memory
    batch = Batch(sizes, channels, dtype, device)
    facts = {"nodes": batch.graph.num_nodes, "pairs": batch.graph.num_pairs, "channels": channels}
    return Work(_steps(build, batch), facts)


def _steps(build: Callable[[Batch], tuple[nn.Module, Call]], batch: Batch) -> dict[str, Callable[[], None]]:
    torch.manual_seed(0)
    module, call = build(batch)
    module.to(batch.x.device, batch.x.dtype)

    def forward() -> None:
        module.eval()
        with torch.no_grad():
            call(batch.x, batch.edge_attr)

    def both() -> None:
        module.train()
        out = call(batch.x, batch.edge_attr)
        out.backward(torch.ones_like(out))
        module.zero_grad()
        batch.x.grad = batch.edge_attr.grad = None

    return {"forward": forward, BOTH: both}


def groups(options: argparse.Namespace) -> list[list[str]]:
    """Cases that take turns."""
    cuda = options.device.startswith("cuda")
    kinds, channels = (["drug-like"], [64]) if options.quick else (options.kinds, options.channels)
    return [
        [f"{function}, {kind}, {c}, {d}, {name}" for name in contenders if cuda or name != "FlexAttention"]
        for function, contenders in CONTENDERS.items()
        for kind in kinds
        for c in channels
        for d in (["bfloat16", "float32"] if cuda else ["float32"])
    ]


def tables(records: Sequence[dict[str, Any]]) -> list[Table]:
    """One table per function and step."""
    found = {(*record["case"].split(", "), record["step"]): record for record in records}
    failed = {key: record for key, record in found.items() if key[-1] == "all"}  # could not be set up

    def get(function: str, *key: str) -> dict[str, Any] | None:
        return found.get((function, *key)) or failed.get((function, *key[:-1], "all"))

    made = []
    for function in CONTENDERS:
        batches = list(dict.fromkeys(key[1:4] for key in found if key[0] == function))
        names = [n for n in CONTENDERS[function] if any(key[0] == function and key[4] == n for key in found)]
        for step in ("forward", BOTH):
            rows = []
            for batch in batches:
                gtx = get(function, *batch, "gtx", step)
                for name in names:
                    record = get(function, *batch, name, step)
                    if record is not None:
                        times = ratio(record, gtx), ratio(record, gtx, "peak")
                        rows.append([", ".join(batch), name, milliseconds(record), megabytes(record), *times])
            columns = ["batch, channels, type", "layer", "time", "peak memory", "time over gtx", "memory over gtx"]
            made.append(Table(f"{function}: {step}", columns, rows))
    return made


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all, or be the process of one case."""

    def more(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--kinds", nargs="+", default=list(SIZES), choices=list(SIZES), help="some of the batches")
        parser.add_argument("--channels", nargs="+", type=int, default=list(CHANNELS), help="of the nodes")

    read = options(__doc__, arguments, more)
    if read.case:
        return serve(lambda name: make(name, read.device), read)
    records = [record for group in groups(read) for record in race(MODULE, group, read)]
    write("layer", __doc__, read, records, tables(records))


if __name__ == "__main__":
    main()
