"""Encodings, batches, featurising and prediction of molecules, against PyG and RDKit."""

from __future__ import annotations

import copy
import random
import resource
import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from itertools import cycle, islice
from pathlib import Path

import pandas as pd
import torch
from loky import ProcessPoolExecutor
from rdkit import Chem, RDLogger
from torch import Tensor
from torch_geometric.data import Batch
from torch_geometric.transforms import AddRandomWalkPE
from torch_geometric.utils import from_smiles

from experiments.speed.measure import Case, default_model, featurised, high_water, sampled
from gtx.data import featurise
from gtx.data.public_datasets import load_public_dataset
from gtx.encodings import RandomWalkProbabilities, ShortestPathLength
from gtx.graph import CompleteGraph
from gtx.molecules import Featuriser
from gtx.molecules.perception import featurise_texts
from gtx.prediction import ModelFileHeader, load_predictor, predict_table, save_model
from gtx.prediction.foundation_embedding import FoundationEmbedding, foundation_spec

# ---------------------------------------------------------------------------------------------------------- encodings

BATCH = 128
GTX, PYG = "gtx: RandomWalkProbabilities(20) + ShortestPathLength()", "PyG: AddRandomWalkPE(20)"


def encodings_of_a_batch(options: Namespace) -> list[Case]:
    """Compute encodings of 128 molecules of ZINC-12k, against PyG's transforms, which take one molecule at a time.

    Random walks of 20 steps (of atoms and of pairs) and shortest paths by gtx are compared with PyG's
    `AddRandomWalkPE(20)`, which yields the atoms' part alone.
    """
    return [Case("walks", name, partial(_encode, name, options.device), BATCH) for name in (GTX, PYG)]


def _encode(name: str, device: str) -> Callable[[], object]:
    batch = featurised("zinc12k", BATCH).batch().to(device)
    molecules, transform = batch.to_data_list(), AddRandomWalkPE(20)
    both = RandomWalkProbabilities(20), ShortestPathLength()

    @torch.no_grad()
    def step() -> object:
        if name == PYG:
            return [transform(copy.copy(molecule)) for molecule in molecules]
        graph = CompleteGraph.from_batch(batch.batch, batch.num_graphs, pack=False)  # as models make it
        return [encoding(batch, graph) for encoding in both]

    return step


# ------------------------------------------------------------------------------------------------------------ batches

STORE, LIST = "gtx: MoleculeStore.batch", "PyG: Batch.from_data_list"


def batches(options: Namespace) -> list[Case]:
    """Cutting batches of 128 out of a store, against PyG's `Batch.from_data_list`.

    A shuffled epoch over 10,000 molecules of ZINC-12k, in the store's flat tensors or as a list of `Data`.
    """
    count = 1000 if options.quick else 10_000
    return [Case("batches", name, partial(_epoch, name, count), count) for name in (STORE, LIST)]


def _epoch(name: str, count: int) -> Callable[[], int]:
    store, molecules = featurised("zinc12k", count), []
    if name == LIST:
        for start in torch.arange(count).split(500):
            molecules += store.batch(start).to_data_list()

    def cut(rows: Tensor) -> Batch:
        return Batch.from_data_list([molecules[i] for i in rows.tolist()]) if molecules else store.batch(rows)

    return lambda: sum(cut(rows).num_graphs for rows in torch.randperm(count).split(BATCH))


# -------------------------------------------------------------------------------------------------------- featurising

TABLES = {"ESOL": "esol", "BBBP": "bbbp", "ZINC-12k": "zinc12k"}
FULL, BARE = Featuriser(), Featuriser(descriptors=False)
WAYS = {
    "RDKit: MolFromSmiles": lambda texts: [Chem.MolFromSmiles(text) for text in texts],
    "gtx: no descriptors, no SMILES": lambda texts: featurise_texts(BARE, texts, smiles=False),
    "gtx: no descriptors": lambda texts: featurise_texts(BARE, texts),
    "gtx: descriptors, no SMILES": lambda texts: featurise_texts(FULL, texts, smiles=False),
    "gtx: descriptors (the default)": lambda texts: featurise_texts(FULL, texts),
    "PyG: from_smiles": lambda texts: [from_smiles(text) for text in texts],
}
"""Texts to molecules, by the name in the table."""


def featurising(options: Namespace) -> list[Case]:
    """Molecules read and featurised per second in one thread, beside the floor: RDKit's bare `MolFromSmiles`.

    Training needs canonical SMILES and descriptors, which take time of their own, so it is measured with and without.
    """
    RDLogger.DisableLog("rdApp.*")
    made = []
    for title, name in TABLES.items():
        entry = load_public_dataset(name)
        texts = pd.read_csv(entry.path)[entry.smiles_column].tolist()
        texts = random.Random(0).sample(texts, min(200 if options.quick else 2000, len(texts)))
        texts = [text for text in texts if Chem.MolFromSmiles(text)]
        made += [Case(title, way, lambda way=way, texts=texts: lambda: WAYS[way](texts), len(texts)) for way in WAYS]
    return made


# --------------------------------------------------------------------------------------------------------- prediction

CHUNK = 500
PROCESSES = {"in this process": 0, "1 worker process": 1, "2 worker processes": 2, "8 worker processes": 8}
PARSE, WHOLE, READ, MODEL, COMMAND = "MolFromSmiles", "gtx", "gtx: reading alone", "gtx: the model alone", "gtx predict"
EMBED = "gtx: the embedding of a kernel of the foundation alone"


def prediction(options: Namespace) -> list[Case]:
    """Prediction, from a file of SMILES to a file of numbers, against RDKit's bare `MolFromSmiles`.

    The molecules are those of ZINC-12k, repeated. The model is the default of `gtx train`, untrained. `MolFromSmiles`
    runs over the same texts in the same processes. The memory of `gtx predict` is the peak of its largest process.
    """
    ways = ["in this process", "8 worker processes"] if options.device == "cuda" else [*PROCESSES][:3]
    count = 1000 if options.quick else 20_000
    prepare = partial(_predict, device=options.device, count=count)
    made = []
    for where in ways:
        names = (PARSE, WHOLE) if PROCESSES[where] else (PARSE, WHOLE, READ, MODEL, EMBED)
        made += [Case(where, name, partial(prepare, name, PROCESSES[where]), count) for name in names]
    return [*made, Case(COMMAND, f"{count:,} rows", partial(prepare, COMMAND, 0), count, once=True, own=True)]


def _predict(name: str, workers: int, count: int, device: str) -> Callable[[], object]:
    smiles = list(dict.fromkeys(sampled("zinc12k")["smiles"]))  # rows repeat as little as they can
    texts = list(islice(cycle(smiles), count))
    if name == PARSE:
        chunks = [texts[i : i + CHUNK] for i in range(0, count, CHUNK)]
        each = ProcessPoolExecutor(workers).map if workers else map  # not the shared pool, which gtx replaces
        return lambda: sum(each(parse, chunks))
    folder = tempfile.TemporaryDirectory()
    file, saved, out = (Path(folder.name, file) for file in ("molecules.csv", "model.gtx", "predictions.csv"))
    file.write_text("\n".join(["smiles", *texts, ""]))
    task, featuriser, spec, model = default_model()
    save_model(saved, [model.eval()], ModelFileHeader(task, featuriser, spec))
    predictor = load_predictor(saved, device)
    if name == READ:
        return lambda: featurise(featuriser, texts, workers=0, smiles=False)
    if name == EMBED:
        store = featurise(featuriser, texts, workers=0, smiles=False).store
        embed = FoundationEmbedding(foundation_spec()["sha256"])
        return lambda: [embed(store.batch(rows)) for rows in torch.arange(len(store)).split(256)]
    if name == MODEL:
        store = featurise(featuriser, texts, workers=0, smiles=False).store
        return lambda: predictor.predict_store(store)
    if name == WHOLE:
        return lambda: (predict_table(predictor, file, out, workers=workers), folder)  # which lives as long
    command = [sys.executable, "-m", "gtx", "predict", saved, file, "--out", out, "--device", device]

    def run_command() -> dict[str, int]:
        subprocess.run([*map(str, command)], check=True, capture_output=True)
        return {"peak": high_water(resource.RUSAGE_CHILDREN)} if folder.name else {}

    return run_command


def start(options: Namespace) -> list[Case]:
    """Commands of gtx in processes of their own, from start to end, against the imports of torch and PyG alone.

    The model is the default of `gtx train`, untrained; the ten molecules are from ZINC-12k. Machine code is stored
    before the measurement.
    """
    folder = tempfile.TemporaryDirectory()
    saved = Path(folder.name, "model.gtx")
    task, featuriser, spec, model = default_model()
    save_model(saved, [model.eval()], ModelFileHeader(task, featuriser, spec))
    smiles = sampled("zinc12k")["smiles"][:10].tolist()
    commands = {
        "import torch": ["-c", "import torch"],
        "import torch, torch_geometric, rdkit.Chem": ["-c", "import torch, torch_geometric, rdkit.Chem"],
        "gtx --help": ["-m", "gtx", "--help"],
        "gtx predict, ten molecules": ["-m", "gtx", "predict", str(saved), *smiles],
        "gtx info": ["-m", "gtx", "info", str(saved)],
    }

    def step(words: list[str]) -> None:
        if folder.name:  # lives as long as the cases
            subprocess.run([sys.executable, *words], check=True, capture_output=True)

    return [Case("start", name, lambda words=words: partial(step, words)) for name, words in commands.items()]


def parse(smiles: list[str]) -> int:
    """Count the texts that RDKit can read."""
    RDLogger.DisableLog("rdApp.*")
    return sum(Chem.MolFromSmiles(text) is not None for text in smiles)
