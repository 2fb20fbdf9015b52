"""The ragged kernel on a GPU: right or wrong, how fast, and with which strips and warps.

    python -m experiments.speed.kernel                      # check, then time: tables, and JSON
    python -m experiments.speed.kernel --parts tune         # rows of a strip and warps, by size of the tile
    TRITON_INTERPRET=1 python -m experiments.speed.kernel   # no GPU: the check alone, on small batches

"check" compares output and gradients with the edge-list definition in float64 on the same numbers, by the norm of the
difference over the norm, and fails the run above 1e-5 (float32), 1e-2 (bfloat16) or 2e-3 (float16).
"core" goes from flat queries, keys, values and bias to the flat result: the kernel, the same in size buckets
(`gtx.attention.attend`), and padded `scaled_dot_product_attention`. "layer" adds the projections: `EdgeAttention` by
way of the kernel and of the buckets, the padded layer written by hand, PyG's `TransformerConv` on the written-out
complete graph (with its own use of pair features). Times are medians of forward + backward between CUDA events; "graph"
is the same step captured and replayed as a CUDA graph, without the gaps between launches. Memory is the peak during a
step above what was held before. What indices need is made once per batch and not counted.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import statistics
import sys
from collections.abc import Callable, Iterator
from datetime import date
from importlib.metadata import version
from pathlib import Path
from unittest import mock

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.utils import scatter, softmax

from experiments.speed import attentions
from experiments.speed.attentions import HEADS, Batch, Call
from gtx.attention import EdgeFeatures, ScaledDot, Softmax, attend
from gtx.attention import size_classes as classes
from gtx.attention.fast import ragged
from gtx.graph import CompleteGraph

SIZES = {"drug-like": (128, 9, 38), "tiny": (512, 4, 9), "peptide-like": (16, 80, 300)}  # graphs, least, most nodes
CHANNELS = (64, 128, 256)
DTYPES = {"float32": (torch.float32, 1e-5), "bfloat16": (torch.bfloat16, 1e-2), "float16": (torch.float16, 2e-3)}
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cpu" if INTERPRETED else "cuda"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", default=["check"] if INTERPRETED else ["check", "core", "layer"],
                        choices=["check", "core", "layer", "tune"])  # fmt: skip
    parser.add_argument("--sizes", nargs="+", default=list(SIZES), choices=list(SIZES))
    parser.add_argument("--channels", nargs="+", type=int, default=[16] if INTERPRETED else CHANNELS)
    parser.add_argument("--dtypes", nargs="+", default=list(DTYPES)[:2], choices=list(DTYPES))
    parser.add_argument("--repeats", type=int, default=50)
    parser.add_argument("--out", default="runs/speed/kernel.json")
    options = parser.parse_args()
    if not ragged.available():
        sys.exit("expected triton and a CUDA device (or TRITON_INTERPRET=1 for the check alone)")
    result = {"machine": machine(), "versions": versions(), "date": date.today().isoformat(), "command": sys.argv[1:]}
    print(json.dumps(result), flush=True)
    file = Path(options.out)
    file.parent.mkdir(parents=True, exist_ok=True)
    wrong = 0
    for part in options.parts:
        result[part] = []
        for row in {"check": check, "core": core, "layer": layer, "tune": tune}[part](options):
            print(f"{part:5}  " + "  ".join(f"{key} {_cell(value)}" for key, value in row.items()), flush=True)
            result[part].append(row)
            wrong += not row.get("right", True)
            file.write_text(json.dumps(result, indent=1) + "\n")  # after every row: nothing is lost if time runs out
    sys.exit(f"{wrong} checks failed" if wrong else 0)


def machine() -> dict[str, str]:
    found = {"system": f"{platform.system()} {platform.machine()}"}
    return found if INTERPRETED else found | {"device": torch.cuda.get_device_name()}


def versions() -> dict[str, str]:
    libraries = {name: version(name) for name in ("triton", "torch-geometric", "numpy")}
    return {"python": platform.python_version(), "torch": torch.__version__, **libraries}


def sizes(kind: str) -> Tensor:
    count, least, most = (4, *SIZES[kind][1:]) if INTERPRETED else SIZES[kind]
    return torch.randint(least, most + 1, (count,), generator=torch.Generator().manual_seed(0))


def inputs(graph: CompleteGraph, channels: int, dtype: torch.dtype, heads: int = HEADS) -> list[Tensor]:
    """Query, key, value, bias; and the gradient of the result."""
    generator = torch.Generator().manual_seed(2)
    C = channels // heads
    shapes = [(graph.num_nodes, heads, C)] * 3 + [(graph.num_pairs, heads), (graph.num_nodes, heads, C)]
    drawn = [torch.randn(shape, generator=generator).to(DEVICE, dtype) for shape in shapes]
    return [x.requires_grad_() for x in drawn[:4]] + drawn[4:]


def definition(graph: CompleteGraph, q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> Tensor:
    """The edge list, edge by edge."""
    sender, receiver = graph.edge_index
    score = (q[receiver] * k[sender]).sum(-1) * q.shape[-1] ** -0.5 + bias
    weight = softmax(score, receiver, num_nodes=graph.num_nodes)
    return scatter(weight.unsqueeze(-1) * v[sender], receiver, 0, graph.num_nodes)


def check(options: argparse.Namespace) -> Iterator[dict]:
    """Output and the four gradients against the definition; and dropout: its share, and the same draw twice."""
    for kind in options.sizes:
        graph = CompleteGraph.from_ptr(F.pad(sizes(kind).cumsum(0), (1, 0)).to(DEVICE))
        for channels in options.channels:
            for name in options.dtypes:
                dtype, tolerance = DTYPES[name]
                *leaves, upstream = inputs(graph, channels, dtype, 1 if INTERPRETED else HEADS)
                exact = [x.detach().double().requires_grad_() for x in leaves]
                wanted = definition(graph, *exact)
                wanted = [wanted, *torch.autograd.grad(wanted, exact, upstream.double())]
                found = ragged.ragged_attention(graph, *leaves)
                found = [found, *torch.autograd.grad(found, leaves, upstream)]
                errors = [(a - b).norm().div(b.norm()).item() for a, b in zip(found, wanted, strict=True)]
                drawn = []
                for _ in range(2):
                    torch.manual_seed(0)
                    out = ragged.ragged_attention(graph, *leaves, dropout=0.1)
                    drawn += [out, *torch.autograd.grad(out, leaves, upstream)]
                half = len(drawn) // 2
                same = all(a.equal(b) for a, b in zip(drawn[:half], drawn[half:], strict=True))
                right = max(errors) < tolerance and same
                parts = dict(zip(("out", "dq", "dk", "dv", "db"), errors, strict=True))
                yield {"sizes": kind, "channels": channels, "dtype": name, **parts, "repeats": same, "right": right}


def core(options: argparse.Namespace) -> Iterator[dict]:
    """From flat to flat, with and without dropout."""
    for kind, channels, name in _cases(options):
        batch = Batch(sizes(kind), channels, DTYPES[name][0], DEVICE)
        graph, dense = batch.graph, batch.dense
        *leaves, upstream = inputs(graph, channels, DTYPES[name][0])

        def padded(q: Tensor, k: Tensor, v: Tensor, b: Tensor, p: float, dense=dense, channels=channels) -> Tensor:
            count, size, node, pair, real = dense
            flat = torch.stack([q, k, v], 1).flatten(1)
            slots = flat.new_zeros(count * size, flat.shape[1]).index_copy(0, node, flat)
            q, k, v = slots.view(count, size, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
            b = b.new_zeros(count * size * size, HEADS).index_copy(0, pair, b).view(count, size, size, HEADS)
            b = b.permute(0, 3, 1, 2).masked_fill(~real[:, None, None], -torch.inf)
            out = F.scaled_dot_product_attention(q, k, v, b, p)
            return out.transpose(1, 2).reshape(count * size, HEADS, -1)[node]

        def buckets(q: Tensor, k: Tensor, v: Tensor, b: Tensor, p: float, graph=graph) -> Tensor:
            return attend(graph, q, k, v, ScaledDot(), Softmax(), EdgeFeatures(bias=b), p).out

        def kernel(q: Tensor, k: Tensor, v: Tensor, b: Tensor, p: float, graph=graph) -> Tensor:
            return ragged.ragged_attention(graph, q, k, v, b, dropout=p)

        for dropout in (0.0, 0.1):
            row = {"sizes": kind, "channels": channels, "dtype": name, "dropout": dropout}
            for label, function in (("kernel", kernel), ("buckets", buckets), ("padded SDPA", padded)):

                def step(function=function, dropout=dropout, leaves=leaves, upstream=upstream) -> None:
                    torch.autograd.grad(function(*leaves, dropout), leaves, upstream)

                with without_kernel() if label == "buckets" else contextlib.nullcontext():
                    row |= {f"{label}: {key}": x for key, x in measure(step, options.repeats).items()}
            yield row


def layer(options: argparse.Namespace) -> Iterator[dict]:
    """A whole layer; every contender's gradients of weights, nodes and pair features."""
    for kind, channels, name in _cases(options):
        batch = Batch(sizes(kind), channels, DTYPES[name][0], DEVICE)
        row = {"sizes": kind, "channels": channels, "dtype": name}

        contenders = {
            "kernel": through_kernel,
            "buckets": attentions.gtx_bias,
            "padded SDPA": attentions.padded_sdpa,
            "TransformerConv": attentions.transformer_conv,
        }
        for label, build in contenders.items():
            module, call = build(batch)
            module.to(DEVICE, DTYPES[name][0])
            used = [batch.x, batch.edge_attr, *module.parameters()]
            upstream = torch.randn_like(call(batch.x, batch.edge_attr).detach())

            def step(call=call, used=used, upstream=upstream, batch=batch) -> None:
                torch.autograd.grad(call(batch.x, batch.edge_attr), used, upstream, allow_unused=True)

            with without_kernel() if label == "buckets" else contextlib.nullcontext():
                row |= {f"{label}: {key}": x for key, x in measure(step, options.repeats).items()}
        yield row


def through_kernel(batch: Batch) -> tuple[nn.Module, Call]:
    """`EdgeAttention` with the kernel in the middle."""
    layer, _ = attentions.gtx_bias(batch)

    def call(x: Tensor, e: Tensor) -> Tensor:
        q, k, v = layer.queries(x), *layer.keys_and_values(x)
        return layer.lin_out(ragged.ragged_attention(batch.graph, q, k, v, layer.lin_edge_bias(e)).flatten(1))

    return layer, call


def tune(options: argparse.Namespace) -> Iterator[dict]:
    """Strips and warps, by tile, type and channels per head: forward and backward apart."""
    from gtx.attention import triton_kernels as kernels

    for tile in (16, 32, 64, 128, 256):
        count = 2**18 // tile**2
        nodes = torch.randint(tile // 2 + 1, tile + 1, (count,), generator=torch.Generator().manual_seed(0))
        graph = CompleteGraph.from_ptr(F.pad(nodes.cumsum(0), (1, 0)).to(DEVICE), max_buckets=1)
        for channels in options.channels:
            for name in options.dtypes:
                if classes.limit(channels // HEADS, DTYPES[name][0]) < tile:
                    continue
                *leaves, upstream = inputs(graph, channels, DTYPES[name][0])
                for rows in (16, 32, 64):
                    for warps in (1, 2, 4, 8, 16):
                        if rows > tile or not 128 <= rows * tile / warps <= 2048:
                            continue
                        row = {"tile": tile, "channels": channels, "dtype": name, "rows": rows, "warps": warps}
                        with mock.patch.dict(kernels.SHAPES, {tile: (rows, warps)}):
                            for dropout in (0.0, 0.1):

                                def forward(leaves=leaves, graph=graph, dropout=dropout) -> Tensor:
                                    return ragged.ragged_attention(graph, *leaves, dropout=dropout)

                                def both(forward=forward, leaves=leaves, upstream=upstream) -> None:
                                    torch.autograd.grad(forward(), leaves, upstream)

                                for label, step in (("forward", forward), ("both", both)):
                                    times = measure(step, options.repeats)
                                    row[f"{label} {dropout}"] = times.get("graph ms") or times.get("failed")
                        yield row


@contextlib.contextmanager
def without_kernel() -> Iterator[None]:
    """`attend` by size buckets, also where it would take the kernel."""
    with mock.patch.object(ragged, "available", lambda: False):
        yield


def measure(step: Callable[[], object], repeats: int) -> dict[str, float | str]:
    """Medians in ms, run and replayed, and the peak memory in MiB."""
    try:
        side = torch.cuda.Stream()  # warm up where the capture will be
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(5):
                step()
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        held = torch.cuda.memory_allocated()
        step()
        torch.cuda.synchronize()
        found = {"ms": _median(step, repeats), "MiB": (torch.cuda.max_memory_allocated() - held) / 2**20}
    except Exception as error:  # out of memory, or of shared memory, is a result
        torch.cuda.empty_cache()
        return {"failed": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
    try:
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured):
            step()
        found["graph ms"] = _median(captured.replay, repeats)
    except Exception as error:
        torch.cuda.synchronize()
        found["graph"] = f"{type(error).__name__}: {error}".splitlines()[0][:200]
    return found


def _median(step: Callable[[], object], repeats: int) -> float:
    events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(repeats)]
    for begin, end in events:
        begin.record()
        step()
        end.record()
    torch.cuda.synchronize()
    return statistics.median(begin.elapsed_time(end) for begin, end in events)


def _cases(options: argparse.Namespace) -> Iterator[tuple[str, int, str]]:
    return ((k, c, d) for k in options.sizes for c in options.channels for d in options.dtypes)


def _cell(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
