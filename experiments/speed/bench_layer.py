"""One attention layer, forward and forward + backward, against other ways to attend over all pairs of every molecule.

    python -m experiments.speed.bench_layer
    GTX_RAGGED=1 python -m experiments.speed.bench_layer --device cuda --name layer-ragged
    python -m experiments.speed.bench_layer --channels 64 --kinds "100 atoms" "2000 atoms" --name layer-growth

Batches: drug-like (128 molecules of 9 to 38 atoms), tiny (512 of 4 to 9), peptide-like (16 of 80 to 300), one graph of
2,000 nodes; 64, 128 and 256 channels, 8 heads, 32 pair features. For growth there are molecules of `n atoms`, about
2,000 atoms in all, and `n molecules` of 9 to 38. Two functions: "key and value", exactly PyG's `TransformerConv` (pair
features in key and value, no W_o), and "bias", one number per pair and head added to the score (and W_o).
`MultiheadAttention` and `GPSConv` take no pair features, so they do less; `TransformerConv` among the "bias" rows does
its own function. "forward" is inference (no gradients kept); "forward + backward" yields the gradients of weights,
nodes and pair features. What depends on neither weights nor features is made once per batch and not counted (indices,
`edge_index`); features are random. float32 on a CPU; bfloat16 and float32 on a GPU.

Memory is the peak during a step above what the process held before it: inputs, weights and indices do not count.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from experiments.speed import attentions
from experiments.speed.attentions import Batch, Contender
from experiments.speed.harness import Record, Topic, Work
from experiments.speed.measured import main, megabytes, milliseconds, rival_table

BOTH = "forward + backward"
SIZES = {"drug-like": (128, 9, 38), "tiny": (512, 4, 9), "peptide-like": (16, 80, 300), "2000 nodes": (1, 2000, 2000)}
GROWTH = {f"{n} atoms": (2000 // n, n, n) for n in (10, 20, 50, 100, 200, 500, 1000, 2000)}
GROWTH |= {f"{n} molecules": (n, 9, 38) for n in (1, 4, 16, 64, 256, 1024)}
CHANNELS = (64, 128, 256)
CONTENDERS = {
    "key and value": {"gtx": attentions.gtx_key_value, "TransformerConv": attentions.transformer_conv},
    "bias": {
        "gtx": attentions.gtx_bias,
        "TransformerConv": attentions.transformer_conv,
        "padded SDPA": attentions.padded_sdpa,
        "MultiheadAttention": attentions.multihead,
        "GPSConv": attentions.gps_conv,
    },
}
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def sizes(kind: str) -> Tensor:
    """Nodes of each graph of a batch."""
    count, least, most = (SIZES | GROWTH)[kind]
    return torch.randint(least, most + 1, (count,), generator=torch.Generator().manual_seed(0))


def make_case(name: str, read: Namespace) -> Work:
    """A case, such as "bias, drug-like, 64, float32, gtx"."""
    function, kind, width, dtype, contender = name.split(", ")
    build, nodes, channels = CONTENDERS[function][contender], sizes(kind), int(width)
    for step in _steps(build, Batch(nodes[:1].clamp(max=9), channels, DTYPES[dtype], read.device)).values():
        step()  # libraries load parts of themselves at first use: that is nobody's memory
    batch = Batch(nodes, channels, DTYPES[dtype], read.device)
    facts = {"nodes": batch.graph.num_nodes, "pairs": batch.graph.num_pairs, "channels": channels}
    return Work(_steps(build, batch), facts | {"rival": f"{name.rpartition(', ')[0]}, gtx"})


def _steps(build: Contender, batch: Batch) -> dict[str, Callable[[], None]]:
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


def case_groups(read: Namespace) -> list[list[str]]:
    """Every function on every batch."""
    dtypes = ["bfloat16", "float32"] if read.device.startswith("cuda") else ["float32"]
    kinds, channels = (["drug-like"], [64]) if read.quick else (read.kinds, read.channels)
    return [
        [f"{function}, {kind}, {c}, {d}, {name}" for name in contenders]
        for function, contenders in CONTENDERS.items()
        for kind in kinds
        for c in channels
        for d in dtypes
    ]


def tables(records: Sequence[Record]) -> list[str]:
    """One per function and step; what could not be set up stands in both steps."""
    figures = {"time": milliseconds, "peak memory": megabytes, "time over gtx": None, "memory over gtx": None}
    made = []
    for function in CONTENDERS:
        own = [
            {**record, **{key: record[key].removeprefix(f"{function}, ") for key in ("case", "rival") if key in record}}
            for record in records
            if record["case"].startswith(function)
        ]
        for step in ("forward", BOTH):
            chosen = [record for record in own if record["step"] in (step, "all")]
            labels = ["batch, channels, type", "layer"]
            made.append(rival_table(chosen, f"{function}: {step}", labels, figures, ", "))
    return made


OPTIONS = {
    "--kinds": {"nargs": "+", "default": list(SIZES), "choices": [*SIZES, *GROWTH], "help": "some of the batches"},
    "--channels": {"nargs": "+", "type": int, "default": list(CHANNELS), "help": "of the nodes"},
}
TOPIC = Topic("layer", __doc__, make_case, case_groups, tables, OPTIONS)

if __name__ == "__main__":
    main(TOPIC)
