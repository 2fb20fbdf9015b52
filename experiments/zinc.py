"""ZINC-12k (Dwivedi et al. 2020, arXiv:2003.00982): mean absolute error of penalised logP, without descriptors.

    python -m experiments.zinc --sets graphs --seeds 0 --hours 3
    python -m experiments.zinc --sets graphs --seeds 0 --hours 0.5 --settings '{"batch_molecules": 128}'    # on a GPU
    python -m experiments.zinc --sets smiles --seeds 0 1 2 --epochs 300
    python -m experiments.zinc --sets smiles --rivals mean ridge-counts forest-counts gine gps chemprop

`graphs` are the graphs of the benchmark: 28 atom types and 3 bond types, nothing else; gtx computes common rings and
counts of substructures from them. `smiles` has gtx's own features of atoms and bonds, from the SMILES of the same
molecules. Descriptors are not allowed, because logP is a term of the label. The model has at most 500,000 weights, as
the benchmark demands, is trained on the absolute error, and its batches hold molecules of similar size. The epoch is
chosen on the validation rows; the test rows are scored once, at the end.

On a GPU, if there is one, the same commands train there. `--hours` trains on a few batches to find the number of
epochs for this time, with the given number of threads. A run that was stopped continues with the same command, a
finished one is not repeated. The losses and validation scores of all epochs so far are in
`runs/<set>/<run>/members/0/log.csv`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import nn
from torch_geometric.data import Data

from experiments.models import fit_network, fit_predict
from experiments.public_sets import FitResult, LoadedRun, PublicSet, Run
from experiments.recipe import Job, options_of, print_scores, run_jobs
from experiments.record import execute
from gtx.data import Duplicates, MoleculeStore, Split
from gtx.dataset import Dataset, DataSettings
from gtx.errors import InputError
from gtx.models import build_model
from gtx.tasks import Regression
from gtx.training import TrainSettings, fit

SETS = {
    "graphs": PublicSet("zinc12k", "mae", ("split",), "zinc12k-graphs"),
    "smiles": PublicSet("zinc12k", "mae", ("split",), "zinc12k", featuriser={"descriptors": False}),
}
MOST = 500_000  # weights
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
TRIED, OVERHEAD = 12, 1.1
"""Batches by which the time of an epoch is measured; and what validation, averages and checkpoints add to it."""


def main(words: Sequence[str] | None = None) -> int:
    """Make the runs that are requested and not there yet; the exit status is 1 if one failed."""
    parser = options_of(__doc__)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--rivals", nargs="+", default=[], choices=RIVALS, help="in place of gtx; from SMILES alone")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--hours", type=float, default=3.0, help="of wall time a run; default 3")
    length.add_argument("--epochs", type=int, help="in place of hours")
    parser.add_argument("--threads", type=int, default=2)
    beside = f"{json.dumps(ARGUMENTS)} and, for graphs, {json.dumps(RINGS)}"
    parser.add_argument("--model-arguments", type=json.loads, default={}, help=f"JSON, beside {beside}")
    parser.add_argument("--settings", type=json.loads, default={}, help=f"JSON, beside {json.dumps(SETTINGS)}")
    parser.add_argument("--no-progress", dest="progress", action="store_false", help="show no bar")
    options = parser.parse_args(words)
    options.here |= options.jobs == 1  # so that the bar is seen
    if options.rivals and options.sets != ["smiles"]:
        parser.error("--rivals read SMILES: expected --sets smiles")
    each = product(options.seeds, options.sets, options.rivals or ["gtx"])
    jobs = [_job(*one, options) for one in each]
    failed = run_jobs(jobs, options, more=["--no-progress"])
    print_scores({job.key for job in jobs}, options.out)
    return int(failed)


def _job(seed: int, name: str, model: str, options: argparse.Namespace) -> Job:
    run, command = Run(SETS[name], model, 0, seed), _command(name, model, seed, options)

    def work() -> None:
        if options.rivals:
            execute(LoadedRun.of(run, options.runs), fit_predict, command, options.out)
        else:
            train = partial(fit_gtx, options=options)
            execute(load(run, options.runs), train, command, options.out, threads=options.threads, measured=True)

    return Job(run.key, command, work)


def load(run: Run, runs: Path) -> LoadedRun:
    """The molecules of a run and its task: the mean absolute error."""
    loaded = LoadedRun.of(run, runs) if run.public_set is SETS["smiles"] else graphs(run, runs)
    return loaded._replace(dataset=replace(loaded.dataset, task=Regression(loaded.names, loss="mae")))


def fit_gtx(loaded: LoadedRun, options: argparse.Namespace) -> FitResult:
    """Train the model that the options describe, and predict all molecules.

    Raises:
        InputError: the model has more weights than the benchmark allows.
    """
    ours, of_graphs = loaded.data.featuriser, loaded.run.public_set is SETS["graphs"]
    sizes = {"atom_sizes": list(ours.atom_sizes), "bond_sizes": list(ours.bond_sizes)}
    if of_graphs:  # code 0 means "other"
        sizes = {"atom_sizes": [ATOM_TYPES + 1], "bond_sizes": [BOND_TYPES + 1]}
    arguments = ARGUMENTS | (RINGS if of_graphs else {}) | options.model_arguments
    spec = {"name": "standard", "arguments": {"out_channels": 1, **sizes, **arguments}}
    make = partial(build_model, spec)
    if (weights := sum(p.numel() for p in make().parameters())) > MOST:
        raise InputError(f"expected a model of at most {MOST:,} weights, got {weights:,}")
    given = {"seed": loaded.run.seed, "threads": options.threads, "progress": options.progress}
    settings = TrainSettings(**{**SETTINGS, **options.settings, **given})
    epochs = options.epochs or epochs_for(options.hours, loaded, make, settings)
    shape = ", ".join(f"{k} {v}" for k, v in arguments.items() if k in ("layers", "channels"))
    threads = f"{options.threads} thread" + ("s" if options.threads > 1 else "")
    title = f"gtx, standard, {shape}, {epochs} epochs, {threads}"
    return fit_network(loaded, replace(settings, epochs=epochs), spec, make, title)


def epochs_for(hours: float, loaded: LoadedRun, make: Callable[[], nn.Module], settings: TrainSettings) -> int:
    """The epochs of a run of so many hours, by the second epoch on a few batches' molecules; kept in its folder."""
    file = loaded.folder / "pace.json"
    if file.exists() and (found := json.loads(file.read_text()))["hours"] == hours:
        return found["epochs"]
    store = loaded.dataset.store.subset(loaded.dataset.split["train"])
    most = settings.molecules_per_batch(len(store))
    some = store.subset(torch.randperm(len(store), generator=torch.Generator().manual_seed(0))[: TRIED * most])
    tried = replace(settings, epochs=2, batch_molecules=most, progress=False)
    with TemporaryDirectory() as folder:
        none = some.subset(torch.zeros(0, dtype=torch.long))
        (member,) = fit(make, loaded.dataset.task, some, none, tried, folder)
    seconds = OVERHEAD * member.history[-1]["seconds"] * len(store) / len(some)
    epochs = max(1, int(3600 * hours / seconds))
    file.write_text(json.dumps({"hours": hours, "epoch_seconds": seconds, "epochs": epochs}) + "\n")
    return epochs


def _command(name: str, model: str, seed: int, options: argparse.Namespace) -> str:
    if options.rivals:
        return f"python -m experiments.zinc --sets {name} --rivals {model} --seeds {seed}"
    length = f"--hours {options.hours:g}" if options.epochs is None else f"--epochs {options.epochs}"
    words = [f"python -m experiments.zinc --sets {name} {length} --threads {options.threads}"]
    given = {"model-arguments": options.model_arguments, "settings": options.settings}
    words += [f"--{word} '{json.dumps(value)}'" for word, value in given.items() if value]
    return " ".join([*words, f"--seeds {seed}"])  # last, where the page of results replaces it


def graphs(run: Run, runs: Path) -> LoadedRun:
    """The 12,000 graphs of the benchmark, in the order of the table of their SMILES.

    They lie beside `zinc12k.csv` as `zinc12k_graphs.npz`, flat arrays for each part: `num_atom`, `atom_type` (0 to 27),
    `y`, `num_edge`, `src`, `dst`, `bond_type` (1 to 3). Where it is missing it is made of PyG's `ZINC`, downloaded.

    Raises:
        InputError: the graphs are neither there nor to be had.
    """
    data = run.public_set.data(0)
    file, parts = Path(data.data).with_name("zinc12k_graphs.npz"), ("train", "val", "test")
    if not file.exists():
        _download(file, parts)
    with np.load(file) as arrays:
        flat = {name: np.concatenate([arrays[f"{part}_{name}"] for part in parts]) for name in FIELDS}
        ends = np.cumsum([len(arrays[f"{part}_y"]) for part in parts])
    split = dict(zip(parts, np.split(np.arange(ends[-1]), ends[:-1]), strict=True))
    return on_store(run, store_of(flat), split, replace(data, data=str(file)), runs)


def on_store(run: Run, store: MoleculeStore, split: Split, data: DataSettings, runs: Path) -> LoadedRun:
    """A run on molecules that come from no table."""
    task, rows = Regression(data.target_columns), np.arange(len(store))
    molecules = {"task": task, "store": store, "smiles": [], "split": split, "smiles_column": "smiles"}
    nothing = {"files": [], "duplicates": Duplicates(0, 0), "leaked": {}}
    dataset = Dataset(**molecules, split_summary=run.public_set.splits[0], rows=rows, **nothing)
    return LoadedRun(run, data, dataset, runs)


def store_of(flat: Mapping[str, np.ndarray]) -> MoleculeStore:
    """Flat arrays as a store: one column of codes per atom and per bond, type i as code i + 1 and i."""
    types, bonds = flat["atom_type"].astype(int), flat["bond_type"].astype(int)
    if types.min() < 0 or types.max() >= ATOM_TYPES or bonds.min() < 1 or bonds.max() > BOND_TYPES:
        raise ValueError(
            f"expected atom types 0 to {ATOM_TYPES - 1} and bond types 1 to {BOND_TYPES}, "
            f"got {types.min()} to {types.max()} and {bonds.min()} to {bonds.max()}"
        )
    return MoleculeStore(
        atoms=torch.from_numpy(types + 1).to(torch.uint8)[:, None],
        bonds=torch.from_numpy(np.stack([flat["src"], flat["dst"]]).astype(np.int32)),
        bond_codes=torch.from_numpy(bonds).to(torch.uint8)[:, None],
        descriptors=torch.zeros(len(flat["y"]), 0),
        atom_ptr=offsets(flat["num_atom"]),
        bond_ptr=offsets(flat["num_edge"]),
    ).with_targets(flat["y"].astype(np.float64)[:, None])


def offsets(counts: np.ndarray) -> torch.Tensor:
    """Where each of so many begins, and the end, `[m + 1]`."""
    return torch.from_numpy(np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]))


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


def _download(file: Path, parts: Sequence[str]) -> None:
    from torch_geometric.datasets import ZINC

    made: dict[str, Any] = {}
    try:
        for part in parts:
            flat = from_pyg(ZINC(str(file.parent / "pyg"), subset=True, split=part))
            made |= {f"{part}_{name}": array for name, array in flat.items()}
    except Exception as reason:
        raise InputError(f"the graphs of ZINC-12k are not at {file}, and PyG cannot get them: {reason}") from reason
    partial_file = file.with_suffix(".partial.npz")
    np.savez_compressed(partial_file, **made)
    partial_file.replace(file)


if __name__ == "__main__":
    sys.exit(main())
