"""A whole training step: molecules per second of gtx, of PyG's GPSConv and of a plain padded transformer.

Epochs of 16 batches of 128, 512 and 2,048 molecules of ZINC-12k and of xtb9; the first of five epochs does not count.
gtx is the default model of `gtx train` at 128 channels, trained by `gtx.training.fit` without validation. The others
have a bare loop (forward, backward, AdamW) over batches that lie ready on the device: GPS of `experiments.rivals`, and
`torch.nn.TransformerEncoder` with a bias per head by path distance, on a GPU a CUDA graph. All have 4 layers and 8
heads, and compute in float32. On a GPU, variants of gtx's step follow for 512 molecules of ZINC-12k.
"""

from __future__ import annotations

import os
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest import mock

import pandas as pd
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from experiments.rivals.pyg import Configuration, Network, with_walks
from experiments.speed.attentions import Padded
from experiments.speed.harness import Record, Work
from experiments.speed.measure import captured, timed
from experiments.speed.pages import molecule_rate
from experiments.speed.samples import default_model, featurised
from gtx.data import MoleculeStore
from gtx.encodings import ShortestPath
from gtx.graph import CompleteGraph
from gtx.molecules import Featuriser
from gtx.training import TrainSettings, fit

SETS, COUNTS, STEPS, EPOCHS = ("zinc12k", "xtb9"), (128, 512, 2048), 16, 5
CHANNELS, LAYERS, HEADS = 128, 4, 8
TABLE = "{}", ["set, model"], {"molecules per second": molecule_rate, "time over gtx": None}


def groups(options: Namespace) -> list[list[str]]:
    """gtx and the others on each set; the variants. What is captured or compiled has a process of its own."""
    gtx, *others = MODELS
    cases = [(set, names) for set in (["xtb9"] if options.quick else SETS) for names in ([gtx], others)]
    names = [*VARIANTS]
    cases += [(SETS[0], part) for part in (names[:3], names[3:5], names[5:])] if options.device == "cuda" else []
    return [[f"{set}, {name}" for name in names] for set, names in cases]


def make(name: str, options: Namespace) -> Work:
    """A case, such as "xtb9, GPSConv": a step for each number of molecules a batch, some of them more than once."""
    set, model = name.split(", ", 1)
    store, most = molecules(set, 64 if options.quick else 4096), 2 if options.quick else STEPS
    counts = (16,) if options.quick else COUNTS[1:2] if model in VARIANTS else COUNTS
    batches = {count: (torch.arange(count * most) % len(store)).split(count) for count in counts}
    train = partial(train_gtx, **VARIANTS[model]) if model in VARIANTS else MODELS[model]
    steps = {f"{n:,} molecules a batch": partial(train, store, index, options.device) for n, index in batches.items()}
    return Work(steps, {"rival": f"{set}, gtx"}, seconds=0.0, once=True)


molecules = cache(featurised)


def train_gtx(store: MoleculeStore, batches: Sequence[Tensor], device: str, **settings: Any) -> Record:
    """By `gtx.training.fit`, where `settings` are fields of `TrainSettings`; or `compiled`, or `kernels` off."""
    count, epoch = len(batches[0]), store.subset(torch.cat(batches))
    pairs = int(1.1 * epoch.sizes.square().double().mean() * count)  # so that the number of molecules is the limit
    settings |= {"epochs": EPOCHS, "batch_molecules": count, "batch_pairs": pairs, "progress": False}
    settings |= {"accelerator": "gpu" if device == "cuda" else "cpu"}
    task, _, _, model = default_model()
    if settings.pop("compiled", False):
        model.compile(dynamic=True)
    environment = {} if settings.pop("kernels", True) else {"GTX_COMPILED": "0"}
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, environment):
        fit(model, task, epoch, epoch.subset(batches[0][:0]), TrainSettings(**settings), folder)
        (log,) = Path(folder).rglob("log.csv")
        return {"wall": pd.read_csv(log)["seconds"].tolist()[1:], "molecules": len(epoch)}


def train_gps(store: MoleculeStore, batches: Sequence[Tensor], device: str) -> Record:
    """Batches of PyG."""
    sizes, how = Featuriser(), Configuration(LAYERS, 0.1, False, CHANNELS, HEADS)
    molecules = with_walks(store.batch().to_data_list())
    made = [Batch.from_data_list([molecules[i] for i in index.tolist()]).to(device) for index in batches]
    network = Network("gps", how, sizes.atom_sizes, sizes.bond_sizes, 0, 1)
    return _loop(network, [(batch, batch.y) for batch in made], device)


def train_padded(store: MoleculeStore, batches: Sequence[Tensor], device: str) -> Record:
    """Padded batches."""
    path, made = ShortestPath(), []
    for batch in (store.batch(index).to(device) for index in batches):
        graph = CompleteGraph.from_batch(batch.batch, batch.num_graphs, pack=False)
        to = Padded(graph, int(store.sizes.max()))
        made.append((to.nodes(batch.x), to.pairs(path(batch, graph)[1][:, 0]), to.real, batch.y))
    return _loop(PaddedTransformer(Featuriser().atom_sizes, path.pair.sizes[0]), made, device, device == "cuda")


class PaddedTransformer(nn.Module):
    """Atom codes `[B, n, A]`, path distances `[B, n, n]` and which atoms are real `[B, n]` to one number a molecule."""

    def __init__(self, atom_sizes: Sequence[int], distances: int) -> None:
        super().__init__()
        self.atoms = nn.ModuleList(nn.Embedding(size, CHANNELS) for size in atom_sizes)
        self.bias = nn.Embedding(distances, HEADS)
        how = {"activation": "gelu", "batch_first": True, "norm_first": True}
        layer = nn.TransformerEncoderLayer(CHANNELS, HEADS, 2 * CHANNELS, **how)
        self.layers = nn.TransformerEncoder(layer, LAYERS, nn.LayerNorm(CHANNELS), enable_nested_tensor=False)
        self.head = nn.Sequential(nn.Linear(CHANNELS, CHANNELS), nn.GELU(), nn.Linear(CHANNELS, 1))

    def forward(self, codes: Tensor, distance: Tensor, real: Tensor) -> Tensor:
        x = sum(table(codes[..., i]) for i, table in enumerate(self.atoms))
        bias = self.bias(distance).permute(0, 3, 1, 2).masked_fill(~real[:, None, None], -torch.inf)
        x = self.layers(x, bias.flatten(0, 1), is_causal=False)  # [B, n, C]
        return self.head((x * real[..., None]).sum(1))


def _loop(network: nn.Module, batches: Sequence[tuple], device: str, capture: bool = False) -> Record:
    """Forward, backward and AdamW over batches that end with their target."""
    network.to(device).train()
    optimiser = torch.optim.AdamW(network.parameters(), 1e-3, fused=True, capturable=capture)

    def step(*inputs: object) -> None:
        optimiser.zero_grad()
        nn.functional.mse_loss(network(*inputs[:-1]), inputs[-1]).backward()
        optimiser.step()

    if capture:
        held = [tensor.clone() for tensor in batches[0]]
        replay = captured(lambda: step(*held))

    def epoch() -> None:
        for batch in batches:
            if not capture:
                step(*batch)
                continue
            for old, new in zip(held, batch, strict=True):
                old.copy_(new)
            replay()

    walls = [timed(epoch, device)[0] for _ in range(EPOCHS)]
    return {"wall": walls[1:], "molecules": sum(len(batch[-1]) for batch in batches)}


MODELS = {"gtx": train_gtx, "GPSConv": train_gps, "padded transformer": train_padded}
VARIANTS = {
    "gtx, plain": {"capture": False},
    "gtx, plain, bfloat16": {"capture": False, "precision": "bf16-mixed"},
    "gtx, plain, no Triton kernels": {"capture": False, "kernels": False},
    "gtx, captured": {"capture": True},
    "gtx, captured, bfloat16": {"capture": True, "precision": "bf16-mixed"},
    "gtx, plain, torch.compile": {"capture": False, "compiled": True},
}
"""Of gtx's step: fields of `TrainSettings`, or arguments of `train_gtx`."""
