"""ZINC-12k (Dwivedi et al. 2020, arXiv:2003.00982): mean absolute error of penalised logP, without descriptors.

    python -m experiments.zinc --sets graphs --seeds 0 --epochs 150
    python -m experiments.zinc --sets smiles --seeds 0 1 2 --epochs 120
    python -m experiments.zinc --sets smiles --rivals mean ridge-counts forest-counts gine gps chemprop

`graphs` are the graphs of the benchmark: 28 atom types and 3 bond types, nothing else; gtx computes common rings and
counts of substructures from them. `smiles` has gtx's own features of atoms and bonds, from the SMILES of the same
molecules. Descriptors are not allowed, because logP is a term of the label. The model has at most 500,000 weights, as
the benchmark demands, is trained on the absolute error, and its batches hold molecules of similar size. The epoch is
chosen on the validation rows; the test rows are scored once, at the end. On a GPU, if there is one, the same commands
train there.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from experiments.models import fit_predict, network_outputs
from experiments.recipe import options_of, print_scores, run_all
from experiments.runs import PublicSet, Run, execute, split_digest
from gtx.base.errors import InputError
from gtx.base.files import atomic_file
from gtx.data import MoleculeStore
from gtx.models import build_model
from gtx.training import TrainSettings, fit
from gtx.training_data import Dataset, DataSettings, hash_file

MOST = 500_000  # weights
PARTS = ("train", "val", "test")
RIVALS = ("mean", "ridge-counts", "forest-counts", "boosting-counts", "gine", "gps", "chemprop")
"""Of `experiments.models`, those that can do without descriptors."""
ARGUMENTS = {"channels": 64, "layers": 8, "heads": 8, "steps": 16, "dropout": 0.0, "attention_dropout": 0.2}
RINGS = {
    "encodings": ["bonds", "path", "walk", "degree", "ring"],
    "substructures": {"folded": 1024, "dropout": 0.5},
}
"""What else the model is shown of graphs: their atoms say nothing of rings."""
SETTINGS = {"jitter": 0.2, "batch_molecules": 32, "ema": 0.999}
ATOM_TYPES, BOND_TYPES = 28, 3
FIELDS = ("num_atom", "atom_type", "y", "num_edge", "src", "dst", "bond_type")


class Graphs(PublicSet):
    """Graphs of the benchmark, 12,000, in the order of the table of their SMILES.

    They lie beside `zinc12k.csv` as `zinc12k_graphs.npz`, flat arrays for each part: `num_atom`, `atom_type` (0 to 27),
    `y`, `num_edge`, `src`, `dst`, `bond_type` (1 to 3). If it is missing it is made of PyG's `ZINC`, downloaded.
    """

    def data(self, split: int) -> DataSettings:
        data = super().data(split)
        return replace(data, data=str(Path(data.data).with_name("zinc12k_graphs.npz")))

    def load(self, data: DataSettings, split: int, cache: Path) -> Dataset:
        file = Path(data.data)
        if not file.exists():
            download(file)
        with np.load(file) as arrays:
            flat = {name: np.concatenate([arrays[f"{part}_{name}"] for part in PARTS]) for name in FIELDS}
            ends = np.cumsum([len(arrays[f"{part}_y"]) for part in PARTS])
        rows = dict(zip(PARTS, np.split(np.arange(ends[-1]), ends[:-1]), strict=True))
        none = {"smiles": [], "smiles_column": "smiles"}
        numbers = np.arange(ends[-1])
        return Dataset(task=data.task, store=store_of(flat), split=rows, split_summary="split", rows=numbers, **none)


SETS = {
    "graphs": Graphs("zinc12k", "mae", ("split",), "zinc12k-graphs", is_table=False),
    "smiles": PublicSet("zinc12k", "mae", ("split",), "zinc12k", featuriser={"descriptors": False}),
}


def main(words: Sequence[str] | None = None) -> int:
    """Make the runs that are requested and not there yet; the exit status is 1 if one failed."""
    parser = options_of(__doc__)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--rivals", nargs="+", default=[], choices=RIVALS, help="in place of gtx; from SMILES alone")
    parser.add_argument("--epochs", type=int, default=120)
    parser.add_argument("--threads", type=int, default=1)
    usual = f"{json.dumps(ARGUMENTS)} and, for graphs, {json.dumps(RINGS)}"
    parser.add_argument("--model-arguments", type=json.loads, default={}, help=f"JSON, beside {usual}")
    options = parser.parse_args(words)
    if options.rivals and options.sets != ["smiles"]:
        parser.error("--rivals read SMILES: expected --sets smiles")
    runs = [
        Run(SETS[name], model, 0, seed, options.runs, command=command_of(name, model, seed, options))
        for seed, name, model in product(options.seeds, options.sets, options.rivals or ["gtx"])
    ]
    how, threads = (fit_predict, 1) if options.rivals else (partial(fit_gtx, options=options), options.threads)
    failed = run_all(runs, partial(execute, fit=how, results=options.out, threads=threads), options)
    print_scores(runs, options.out)
    return int(failed)


def command_of(name: str, model: str, seed: int, options: argparse.Namespace) -> str:
    """Write the command of a run; the seed is last, where the page of results joins them."""
    if options.rivals:
        return f"python -m experiments.zinc --sets {name} --rivals {model} --seeds {seed}"
    words = ["--sets", name, "--epochs", str(options.epochs), "--threads", str(options.threads)]
    if options.model_arguments:
        words += ["--model-arguments", json.dumps(options.model_arguments)]
    return f"python -m experiments.zinc {shlex.join(words)} --seeds {seed}"


def fit_gtx(run: Run, options: argparse.Namespace) -> tuple[np.ndarray, dict[str, Any]]:
    """Train the model that the options describe, and predict all molecules."""
    arguments = {
        "out_channels": 1,
        "atom_sizes": list(run.data.featuriser.atom_sizes),
        "bond_sizes": list(run.data.featuriser.bond_sizes),
        **ARGUMENTS,
    }
    if run.public_set == SETS["graphs"]:  # code 0 means "other"
        arguments |= {"atom_sizes": [ATOM_TYPES + 1], "bond_sizes": [BOND_TYPES + 1], **RINGS}
    arguments |= options.model_arguments
    spec = {"name": "standard", "arguments": arguments}
    weights = sum(p.numel() for p in build_model(spec).parameters())
    if weights > MOST:
        raise InputError(f"expected a model of at most {MOST:,} weights, got {weights:,}")
    chosen = {"epochs": options.epochs, "seed": run.seed, "threads": options.threads, "progress": False}
    settings = TrainSettings(**SETTINGS, **chosen)
    shape = f"channels {arguments['channels']}, layers {arguments['layers']}"
    threads = "1 thread" if options.threads == 1 else f"{options.threads} threads"
    title = f"gtx, standard, {shape}, {options.epochs} epochs, {threads}"
    dataset, processor = run.dataset, time.process_time()
    train, val = (dataset.store.subset(dataset.split[part]) for part in ("train", "val"))
    marks = {"data": hash_file(run.data.data), "split": split_digest(dataset), "model": spec}
    (member,) = fit(partial(build_model, spec), dataset.task, train, val, settings, run.folder, marks=marks)
    training = {name: value for name, value in settings.decisive().items() if name != "seed"}
    return network_outputs(member, dataset.store), {
        "title": title,
        "parameters": weights,
        "settings": {"model": spec, "task": dataset.task.config(), "training": training},
        "seconds": round(sum(row["seconds"] for row in member.history), 1),  # of all epochs, resumed or not
        "cpu_seconds": round(time.process_time() - processor, 1),
        "best_epoch": member.best_epoch,
    }


def store_of(flat: Mapping[str, np.ndarray]) -> MoleculeStore:
    """Flat arrays as a store: one column of codes per atom and per bond, type i as code i + 1 and i."""
    types, bonds = flat["atom_type"].astype(int), flat["bond_type"].astype(int)
    atom_ptr, bond_ptr = (torch.from_numpy(np.cumsum([0, *flat[name]])) for name in ("num_atom", "num_edge"))
    return MoleculeStore(
        atoms=torch.from_numpy(types + 1).to(torch.uint8)[:, None],
        bonds=torch.from_numpy(np.stack([flat["src"], flat["dst"]]).astype(np.int32)),
        bond_codes=torch.from_numpy(bonds).to(torch.uint8)[:, None],
        descriptors=torch.zeros(len(flat["y"]), 0),
        atom_ptr=atom_ptr,
        bond_ptr=bond_ptr,
    ).with_targets(flat["y"].astype(np.float64)[:, None])


def from_pyg(data: Iterable[Data]) -> dict[str, np.ndarray]:
    """Graphs of `torch_geometric.datasets.ZINC` as flat arrays."""
    data = list(data)
    return {
        "num_atom": np.array([one.num_nodes for one in data], np.int16),
        "atom_type": np.concatenate([one.x.numpy().ravel() for one in data]).astype(np.int8),
        "y": np.concatenate([one.y.numpy().ravel() for one in data]).astype(np.float32),
        "num_edge": np.array([one.num_edges for one in data], np.int16),
        "src": np.concatenate([one.edge_index[0].numpy() for one in data]).astype(np.int16),
        "dst": np.concatenate([one.edge_index[1].numpy() for one in data]).astype(np.int16),
        "bond_type": np.concatenate([one.edge_attr.numpy().ravel() for one in data]).astype(np.int8),
    }


def download(file: Path) -> None:
    """Make the file of graphs of PyG's download."""
    from torch_geometric.datasets import ZINC

    made: dict[str, Any] = {}
    try:
        for part in PARTS:
            flat = from_pyg(ZINC(str(file.parent / "pyg"), subset=True, split=part))
            made |= {f"{part}_{name}": array for name, array in flat.items()}
    except Exception as reason:
        raise InputError(f"the graphs of ZINC-12k are not at {file}, and PyG cannot get them: {reason}") from reason
    with atomic_file(file) as opened:
        np.savez_compressed(opened, **made)


if __name__ == "__main__":
    sys.exit(main())
