"""Encodings, batches, featurising and prediction of molecules, against PyG and RDKit."""

from __future__ import annotations

import copy
import random
import resource
import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterable
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from joblib.externals.loky import get_reusable_executor
from rdkit import Chem, RDLogger
from torch_geometric.data import Batch
from torch_geometric.loader import DataLoader
from torch_geometric.transforms import AddLaplacianEigenvectorPE, AddRandomWalkPE
from torch_geometric.utils import from_smiles

from experiments.speed.measure import (
    Case,
    Result,
    default_model,
    featurised,
    figure_rows,
    high_water,
    megabytes,
    molecule_rate,
    quotient,
    relative,
    sampled,
    table,
    timed,
)
from gtx import encodings
from gtx.data import PairBudgetSampler, featurise
from gtx.data.named_sets import load_set
from gtx.graph import CompleteGraph
from gtx.molecules import Featuriser, featurise_texts
from gtx.prediction import ModelHeader, load, predict_table, save_model

# ---------------------------------------------------------------------------------------------------------- encodings

BATCH = 128
TRANSFORMS = {
    "PyG: AddRandomWalkPE(20)": lambda: AddRandomWalkPE(20),
    "PyG: AddLaplacianEigenvectorPE(8)": lambda: AddLaplacianEigenvectorPE(8, is_undirected=True),
}
WITH_GRAPH: dict[str, Callable[[], list[Any]]] = {
    "gtx: RandomWalk(20) + ShortestPath()": lambda: [encodings.RandomWalk(20), encodings.ShortestPath()],
    "gtx: LaplacianEigenvectors(8)": lambda: [encodings.LaplacianEigenvectors(8)],
    "gtx: CompleteGraph": list,
}
NAMES = "ShortestPath Degree HopMasks SameRing GaussianDistance BesselDistance ExpNormDistance FourierDistance"
ALONE = {f"gtx: {name}()": getattr(encodings, name) for name in NAMES.split()} | {
    "gtx: RandomWalk(20)": lambda: encodings.RandomWalk(20),
    "gtx: Bonds": lambda: encodings.Bonds(Featuriser().bond_sizes),
    "gtx: EdgePath": lambda: encodings.EdgePath(Featuriser().bond_sizes[0]),
    "gtx: Moments": lambda: encodings.Moments(encodings.GaussianDistance(64, pair_types=128), 128),
}


def encoding_cases(options: Namespace) -> list[Case]:
    """Encodings of 128 molecules of ZINC-12k, against PyG's transforms, which take one molecule at a time.

    The first comparison is random walks of 20 steps (of atoms and of pairs) and shortest paths by gtx, with PyG's
    `AddRandomWalkPE(20)`, which yields the atoms' part alone. The other encodings of gtx follow by themselves, with the
    graph at hand. Positions are random.
    """
    (walk, eigen, graph), (walk_pe, eigen_pe) = WITH_GRAPH, TRANSFORMS
    others = [graph, *ALONE][: 3 if options.quick else None]
    groups = [("walks", [walk, walk_pe]), ("eigenvectors", [eigen, eigen_pe]), *((name, [name]) for name in others)]
    prepare = partial(_prepare_encoding, device=options.device)
    return [Case(group, name, partial(prepare, name), BATCH, 0.1) for group, names in groups for name in names]


def _prepare_encoding(name: str, device: str) -> Callable[[], Any]:
    batch = featurised("zinc12k", BATCH).batch().to(device)
    batch.pos = torch.randn(batch.num_nodes, 3, device=device) * 3
    molecules, graph = batch.to_data_list(), CompleteGraph.from_batch(batch.batch, pack=False)
    made = (TRANSFORMS | WITH_GRAPH | ALONE)[name]()

    @torch.no_grad()
    def step() -> object:
        if name in TRANSFORMS:
            return [made(copy.copy(molecule)) for molecule in molecules]
        if name in ALONE:
            return made(batch, graph)
        own = CompleteGraph.from_batch(batch.batch, batch.num_graphs, pack=False)  # as models make it
        return [encoding(batch, own) for encoding in made]

    if name in ALONE:
        made.to(device)
    return step


def encoding_tables(results: list[Result]) -> list[str]:
    """Make the table of times per molecule."""
    micro = {"per molecule": lambda result: f"{result['seconds'] / result['count'] * 1e6:.3g} µs"}
    figures = micro | {"peak memory": megabytes, "time over gtx": relative(results)}
    return [table("Encodings", figure_rows(results, ["encoding"], figures))]


# ------------------------------------------------------------------------------------------------------------ batches

STORE, SAMPLER, LIST = "gtx: MoleculeStore.batch", "gtx: with its PairBudgetSampler", "PyG: Batch.from_data_list"
LOADERS = {f"PyG: DataLoader, {workers} workers": workers for workers in (0, 1, 2)}


def batch_cases(options: Namespace) -> list[Case]:
    """Cutting batches of 128 out of a store, against PyG's `Batch.from_data_list` and its `DataLoader` with workers.

    A shuffled epoch over 10,000 molecules of ZINC-12k, in the store's flat tensors or as a list of `Data`. The epoch in
    which workers start does not count.
    """
    count = 1000 if options.quick else 10_000
    names = [STORE, SAMPLER, LIST, *LOADERS]
    return [Case("batches", name, partial(_prepare_batches, name, count), count) for name in names]


def _prepare_batches(name: str, count: int) -> Callable[[], int]:
    whole = featurised("zinc12k", count)
    molecules = []
    if name not in (STORE, SAMPLER):
        for start in torch.arange(len(whole)).split(500):
            molecules += whole.batch(start).to_data_list()
    workers = LOADERS.get(name, 0)
    loader = DataLoader(molecules or [0], BATCH, shuffle=True, num_workers=workers, persistent_workers=workers > 0)
    sampler = PairBudgetSampler(whole.sizes, 1 << 60, max_molecules=BATCH, jitter=10.0)

    def epoch() -> Iterable[Batch]:
        if name == SAMPLER:
            return map(whole.batch, sampler)
        if name in LOADERS:
            return loader
        order = torch.randperm(len(whole)).split(BATCH)
        if name == STORE:
            return map(whole.batch, order)
        return (Batch.from_data_list([molecules[i] for i in rows.tolist()]) for rows in order)

    return lambda: sum(batch.num_graphs for batch in epoch())


def batch_tables(results: list[Result]) -> list[str]:
    """Make the table of times per batch."""
    each = {
        f"per batch of {BATCH}": lambda r: f"{r['seconds'] / -(-r['count'] // BATCH) * 1e3:.3g} ms",
        "molecules per second": molecule_rate,
        "peak memory": megabytes,
        "time over gtx": relative(results),
    }
    return [table("Batches", figure_rows(results, ["how"], each))]


# -------------------------------------------------------------------------------------------------------- featurising

TABLES = {"ESOL": "esol", "BBBP": "bbbp", "ZINC-12k": "zinc12k"}
FLOOR = "RDKit: MolFromSmiles"
FULL, BARE = Featuriser(), Featuriser(descriptors=False)
WAYS = {
    FLOOR: lambda texts: [Chem.MolFromSmiles(text) for text in texts],
    "gtx: no descriptors, no SMILES": lambda texts: featurise_texts(BARE, texts, smiles=False),
    "gtx: no descriptors": lambda texts: featurise_texts(BARE, texts),
    "gtx: descriptors, no SMILES": lambda texts: featurise_texts(FULL, texts, smiles=False),
    "gtx: descriptors (the default)": lambda texts: featurise_texts(FULL, texts),
    "PyG: from_smiles": lambda texts: [from_smiles(text) for text in texts],
}
"""Texts to molecules, by the name in the table."""


def featurising_cases(options: Namespace) -> list[Case]:
    """Molecules read and featurised per second in one thread, beside the floor: RDKit's bare `MolFromSmiles`.

    Training needs canonical SMILES and descriptors, which take time of their own, so it is measured with and without.
    """
    RDLogger.DisableLog("rdApp.*")
    cases = []
    for title, name in TABLES.items():
        entry = load_set(name)
        texts = pd.read_csv(entry.path)[entry.smiles_column].tolist()
        texts = random.Random(0).sample(texts, min(200 if options.quick else 2000, len(texts)))
        texts = [text for text in texts if Chem.MolFromSmiles(text)]
        cases += [Case(title, way, lambda way=way, texts=texts: lambda: WAYS[way](texts), len(texts)) for way in WAYS]
    return cases


def featurising_tables(results: list[Result]) -> list[str]:
    """Make the table of rates and their share of the floor's, a column per set."""
    floors = {result["group"]: result for result in results if result["name"] == FLOOR}
    rows: dict[str, dict[str, str]] = {}
    for result in results:
        share = quotient(floors.get(result["group"]), result)
        cell = result.get("failed") or f"{molecule_rate(result)} /s" + ("" if share is None else f" ({share:.0%})")
        rows.setdefault(result["name"], {"way": result["name"]})[result["group"]] = cell
    return [table("Featurising, molecules per second and the share of the floor's rate", [*rows.values()])]


# --------------------------------------------------------------------------------------------------------- prediction

CHUNK = 500
GTX, PARSE, MEMORY = "gtx", "MolFromSmiles", "memory of gtx predict"
PROCESSES = {"in this process": 0, "1 worker process": 1, "2 worker processes": 2, "8 worker processes": 8}


def prediction_cases(options: Namespace) -> list[Case]:
    """Prediction, from a file of SMILES to a file of numbers, against RDKit's bare `MolFromSmiles`.

    The molecules are those of ZINC-12k, repeated. The model is the default of `gtx train`, untrained. `MolFromSmiles`
    runs over the same texts in the same processes. Memory is the peak of the largest process of `gtx predict`.
    """
    ways = ["in this process", "8 worker processes"] if options.device == "cuda" else [*PROCESSES][:3]
    count, rows = (1000, 1000) if options.quick else (20_000, 10_000)
    prepare = partial(_prepare_prediction, device=options.device)
    cases = [Case(how, what, partial(prepare, what, how, count), count) for how in ways for what in (PARSE, GTX)]
    return [*cases, Case(MEMORY, f"{rows:,}", partial(prepare, MEMORY, "", rows), rows, once=True)]


def _prepare_prediction(what: str, how: str, count: int, device: str) -> Callable[[], Any]:
    smiles = list(dict.fromkeys(sampled("zinc12k")["smiles"]))  # rows repeat as little as they can
    texts = list(islice(cycle(smiles), count))
    if what == PARSE:
        chunks = [texts[i : i + CHUNK] for i in range(0, count, CHUNK)]
        each = get_reusable_executor(PROCESSES[how]).map if PROCESSES[how] else map
        return lambda: sum(each(parse, chunks))
    folder = tempfile.TemporaryDirectory()
    file, saved, out = (Path(folder.name, file) for file in ("molecules.csv", "model.gtx", "predictions.csv"))
    file.write_text("\n".join(["smiles", *texts, ""]))
    task, featuriser, spec, model = default_model()
    save_model(saved, [model.eval()], ModelHeader(task, featuriser, spec))
    command = [sys.executable, "-m", "gtx", "predict", saved, file, "--out", out, "--device", device]
    predictor = load(saved, device)

    def memory() -> Result:
        wall, _ = timed(lambda: subprocess.run([*map(str, command)], check=True, capture_output=True), "cpu")
        return {"wall": [wall], "peak": high_water(resource.RUSAGE_CHILDREN)}

    def step() -> Result:
        wall, _ = timed(lambda: predict_table(predictor, file, out, workers=PROCESSES[how]), device)
        if PROCESSES[how] or not folder.name:
            return {}
        read, done = timed(lambda: featurise(featuriser, texts, workers=0, smiles=False), device)
        forward, _ = timed(lambda: predictor.predict_store(done.store), device)
        shares = {"reading and featurising": read, "the model": forward, "all else": wall - read - forward}
        return {"wall": [wall], "shares": shares}

    return memory if what == MEMORY else step


def parse(smiles: list[str]) -> int:
    """Count the texts that RDKit can read."""
    RDLogger.DisableLog("rdApp.*")
    return sum(Chem.MolFromSmiles(text) is not None for text in smiles)


def prediction_tables(results: list[Result]) -> list[str]:
    """Make tables of rates, of where the time goes, and of memory."""
    rates = [result for result in results if result["group"] != MEMORY]
    floors = {result["group"]: result for result in rates if result["name"] == PARSE}

    def share(result: Result) -> str:
        return f"{quotient(floors.get(result['group']), result) or float('nan'):.0%}"

    figures = {"molecules per second": molecule_rate, "of MolFromSmiles there": share}
    made = [table("SMILES file to predictions", figure_rows(rates, ["where", "what"], figures))]
    for result in rates:
        if "shares" in result:
            micro = {what: f"{own / result['count'] * 1e6:.0f} µs" for what, own in result["shares"].items()}
            rows = [{"what": what, "per molecule": cell} for what, cell in micro.items()]
            made.append(table(f"Where it goes, {result['group']}", rows))
    peaks = [result for result in results if result["group"] == MEMORY]
    peak = {"largest process": megabytes, "seconds, start included": lambda r: f"{r['seconds']:.1f} s"}
    return [*made, table("Memory of gtx predict", figure_rows(peaks, ["rows"], peak))]
