"""What models should read of a whole molecule: descriptors, the embedding of the foundation, or its states of atoms.

    python -m experiments.molecule_inputs kernel
    python -m experiments.molecule_inputs network --sets scaffold-freesolv moleculeace-CHEMBL2835_Ki
    python -m experiments.molecule_inputs --table

The test rows of a set are left out. Of the other rows (at most 1,500, drawn at random) a quarter judges, at random or
by whole scaffolds; a tenth chooses the epoch of a network. The seed draws these parts, the weights and the batches.
Each run adds a line as it ends, and is not made again.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import torch
from torch import Tensor

import gtx
from experiments.all_sets import SETS, available, error
from experiments.models import network_outputs
from experiments.runs import Run
from experiments.summary import markdown, mean_log_ratio
from experiments.tables import ROOT
from gtx.data import MoleculeStore
from gtx.data.splits import random_split
from gtx.models import build_model, kernel_ridge
from gtx.molecules import murcko_scaffold
from gtx.prediction.foundation_embedding import foundation_spec, with_embeddings
from gtx.tasks.closed_form import outputs_of, over_batches
from gtx.training import TrainSettings, fit
from gtx.workflow.specs import make_model_spec

OUT = ROOT / "build" / "molecule_inputs"
MOST, SIZES = 1500, (0.65, 0.1, 0.25)
VARIANTS = ("descriptors", "descriptors+embedding", "embedding", "whitened", "atoms", "nothing")
"""Inputs, joined by a plus: descriptors; embedding, 384 z-scores; whitened, 64 components of it; atoms, the last states
of the atoms in the foundation, added to the embedding of the atoms."""


def parts_of(run: Run, how: str) -> dict[str, np.ndarray]:
    """Divide the rows of a set that are not test rows."""
    dataset = run.dataset
    rows = np.sort(np.concatenate([dataset.split["train"], dataset.split["val"]]))
    if len(rows) > MOST:
        rows = np.sort(np.random.default_rng(run.seed).permutation(rows)[:MOST])
    smiles = [dataset.smiles[i] for i in rows]
    groups = smiles if how == "random" else [murcko_scaffold(text) for text in smiles]
    split = random_split(len(rows), SIZES, run.seed, groups)
    return {part: rows[index] for part, index in split.items()}


def whitened(values: Tensor, train: np.ndarray, components: int = 64) -> Tensor:
    """Compute the first principal components of z-scores, each of variance 1 on the training rows."""
    values = values.double()
    mean, deviation = values[train].mean(0), values[train].std(0).clamp(min=1e-6)
    scores = (values - mean) / deviation
    _, sizes, axes = torch.linalg.svd(scores[train], full_matrices=False)
    return (scores @ axes[:components].T / sizes[:components] * len(train) ** 0.5).float()


def with_inputs(store: MoleculeStore, variant: str, train: np.ndarray) -> MoleculeStore:
    """Give molecules the features of a variant."""
    names, embedded = variant.split("+"), with_embeddings(store, foundation_spec()).embeddings
    u = [store.descriptors] if "descriptors" in names else [store.descriptors[:, :0]]
    u += [embedded] if "embedding" in names else [whitened(embedded, train)] if "whitened" in names else []
    changes = {}
    if "atoms" in names:
        network = gtx.load("foundation", device="cpu").members[0]
        with torch.inference_mode():
            states = [network.nodes(store.batch(rows)) for rows in torch.arange(len(store)).split(128)]
        changes["atom_features"] = torch.cat(states).clone()
    return replace(store, descriptors=torch.cat(u, 1), **changes)


def of_network(run: Run, split: dict[str, np.ndarray], variant: str) -> np.ndarray:
    """Train the default network with the inputs of a variant, and predict all molecules."""
    store = with_inputs(run.dataset.store, variant, split["train"])
    train, val = (store.subset(split[part]) for part in ("train", "val"))
    task = run.dataset.task.fit(train)
    settings = TrainSettings(seed=run.seed, threads=1, progress=False, accelerator="cpu").resolve(task.epochs)
    spec = make_model_spec(settings, run.data.featuriser, task, len(train))
    spec["arguments"] |= {"num_descriptors": store.descriptors.shape[1], "foundation": None}
    if store.atom_features is not None:
        spec["arguments"]["atom_features"] = store.atom_features.shape[1]
    (member,) = fit(partial(build_model, spec), task, train, val, settings, run.folder, overwrite=True)
    return network_outputs(member, store)


def of_kernel(run: Run, split: dict[str, np.ndarray], variant: str) -> np.ndarray:
    """Solve the kernel with the inputs of a variant for the training and validation rows, and predict all molecules."""
    names, store, y = variant.split("+"), run.dataset.store, torch.from_numpy(run.dataset.y).double()
    rows = torch.from_numpy(np.sort(np.concatenate([split["train"], split["val"]])))
    rows = rows[~y[rows].isnan().all(1)]
    store = store if "descriptors" in names else replace(store, descriptors=store.descriptors[:, :0])
    store = with_embeddings(store, foundation_spec()) if "embedding" in names else store
    third = {"sha256": "0" * 64, "width": store.embeddings.shape[1]} if "embedding" in names else None
    model = kernel_ridge(y.shape[1], num_descriptors=store.descriptors.shape[1], foundation=third)
    model.embed = lambda batch: batch.embeddings
    used = store.subset(rows)
    model.solve(used, y[rows], over_batches(model.embed, used) if third else None)
    return outputs_of(model, store).numpy()


def make(kind: str, folder: str, how: str, seed: int, variant: str) -> None:
    """Make a run, unless its line is there."""
    file = OUT / "runs.jsonl"
    key = {"kind": kind, "set": folder, "how": how, "seed": seed, "variant": variant}
    lines = file.read_text().splitlines() if file.exists() else ()
    if any(key.items() <= json.loads(line).items() for line in lines):
        return
    run = Run(SETS[folder], f"{kind}-{variant}-{how}", 0, seed, OUT)
    split, begin = parts_of(run, how), time.process_time()
    predicted = (of_network if kind == "network" else of_kernel)(run, split, variant)
    judge = split["test"]
    line = key | {"error": error(run.dataset.y[judge], predicted[judge], run), "rows": len(split["train"])}
    with file.open("a") as opened:
        opened.write(json.dumps(line | {"cpu_seconds": round(time.process_time() - begin, 1)}) + "\n")
    print(line, flush=True)


def table() -> str:
    """Write the mean logarithm of errors over those with descriptors (the kernel: and embedding), and all errors."""
    frame, lines = pd.read_json(OUT / "runs.jsonl", lines=True), []
    for kind, first in (("network", "descriptors"), ("kernel", "descriptors+embedding")):
        for how in ("random", "scaffold"):
            some = frame[(frame["kind"] == kind) & (frame["how"] == how)]
            errors, cells = some.pivot_table(index=["set", "seed"], columns="variant", values="error"), []
            for name in errors.columns.drop(first, errors="ignore"):
                ratios = np.log(errors[name] / errors[first]).dropna().groupby("set").mean()
                if len(ratios) > 1:
                    cells.append([name, *mean_log_ratio(ratios.tolist()).split(" | ")])
            lines += [f"{kind}, {how}", "", *markdown("inputs | difference | ahead", "lll", cells), ""]
            lines += [errors.round(4).to_string(), ""]
    return "\n".join(lines)


def main() -> None:
    """Make what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", nargs="?", choices=["network", "kernel"])
    parser.add_argument("--sets", nargs="+", default=available(), choices=list(SETS))
    parser.add_argument("--how", nargs="+", default=["random", "scaffold"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--variants", nargs="+", default=VARIANTS, help="of these, joined by plus")
    parser.add_argument("--table", action="store_true")
    args = parser.parse_args()
    if args.table:
        print(table())
        return
    OUT.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    for seed, folder, how, variant in product(args.seeds, args.sets, args.how, args.variants):
        make(args.kind, folder, how, seed, variant)


if __name__ == "__main__":
    main()
