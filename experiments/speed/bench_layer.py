"""One attention layer, forward and forward + backward, against other ways to attend over all pairs of every molecule.

Batches: drug-like (128 molecules of 9 to 38 atoms), tiny (512 of 4 to 9), peptide-like (16 of 80 to 300), one graph of
2,000 nodes; 64, 128 and 256 channels (on a GPU 128), 8 heads, 32 pair features. Three functions: "key and value",
exactly PyG's `TransformerConv` (pair features in key and value, no W_o), "bias", one number per pair and head added to
the score (and W_o), and "bias and value", where pair features enter the value too, as in the default model.
`MultiheadAttention` and `GPSConv` take no pair features and padded SDPA takes them as a bias alone, so they do less;
`TransformerConv` does its own function everywhere. "forward" is inference; "forward + backward" yields the gradients of
weights, nodes and pair features. What depends on neither weights nor features is made once per batch and not counted;
features are random. float32 on a CPU; bfloat16 and float32 on a GPU, where gtx and padded SDPA are also CUDA graphs.

Memory is the peak during a step above what the process held before it: inputs, weights and indices do not count.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Sequence
from itertools import product

import torch
from torch import Tensor

from experiments.speed.attentions import CAPTURED, CONTENDERS, Batch, contender
from experiments.speed.harness import Record, Work
from experiments.speed.measure import captured
from experiments.speed.pages import megabytes, milliseconds, rival_tables

BOTH = "forward + backward"
SIZES = {"drug-like": (128, 9, 38), "tiny": (512, 4, 9), "peptide-like": (16, 80, 300), "2000 nodes": (1, 2000, 2000)}
CHANNELS = (64, 128, 256)
LABELS = ["batch, channels, type", "layer"]
FIGURES = {"time": milliseconds, "peak memory": megabytes, "time over gtx": None, "memory over gtx": None}


def groups(options: Namespace) -> list[list[str]]:
    """Every function on every batch."""
    gpu, functions, kinds, channels = options.device == "cuda", [*CONTENDERS], SIZES, CHANNELS
    if options.quick:
        kinds, channels = ["drug-like"], [64]
    elif gpu:
        functions, kinds, channels = ["bias and value", "bias"], ["drug-like", "peptide-like"], [128]
    return [
        [f"{function}, {kind}, {c}, {d}, {name}" for name in CONTENDERS[function] if gpu or name not in CAPTURED]
        for function, kind, c, d in product(functions, kinds, channels, ["float32", "bfloat16"] if gpu else ["float32"])
    ]


def sizes(kind: str) -> Tensor:
    """Nodes of each graph of a batch."""
    count, least, most = SIZES[kind]
    return torch.randint(least, most + 1, (count,), generator=torch.Generator().manual_seed(0))


def make(name: str, options: Namespace) -> Work:
    """A case, such as "bias, drug-like, 64, float32, gtx"."""
    function, kind, width, dtype, who = name.split(", ")
    nodes, how = sizes(kind), (int(width), getattr(torch, dtype), options.device)
    for step in _steps(function, who, Batch(nodes[:1].clamp(max=9), *how)).values():
        step()  # libraries load parts of themselves at first use: that is nobody's memory
    batch = Batch(nodes, *how)
    steps = _steps(function, who, batch)
    if who in CAPTURED:
        steps = {step: captured(run) for step, run in steps.items()}
    facts = {"nodes": batch.graph.num_nodes, "pairs": batch.graph.num_pairs, "channels": batch.channels}
    return Work(steps, facts | {"rival": f"{name.rpartition(', ')[0]}, gtx"})


def _steps(function: str, who: str, batch: Batch) -> dict[str, Callable[[], None]]:
    torch.manual_seed(0)
    module, call = contender(function, who, batch)
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


def tables(records: Sequence[Record]) -> list[str]:
    """One per function and step."""
    return [
        made
        for function in CONTENDERS
        for made in rival_tables(records, f"{function}: {{}}", LABELS, FIGURES, ", ", f"{function}, ")
    ]
