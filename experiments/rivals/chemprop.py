"""chemprop's D-MPNN (Yang et al. 2019, arXiv:1904.01561) by its own command, with its defaults, on the same rows.

It runs in an environment of its own, made at the first call (`experiments.rivals.chemprop_env`). `chemprop-rdkit` adds
its normalised RDKit features, unscaled, as its manual advises.
"""

from __future__ import annotations

import csv
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from experiments.public_sets import FitResult, LoadedRun
from experiments.rivals import chemprop_env
from gtx.errors import InputError

FEATURES = ("--molecule-featurizers", "v1_rdkit_2d_normalized", "--no-descriptor-scaling")
TELL = """
import importlib.metadata, json, sys
from chemprop.models import MPNN
model = MPNN.load_from_file(sys.argv[1], map_location="cpu")
versions = {"chemprop": importlib.metadata.version("chemprop"), "rdkit": importlib.metadata.version("rdkit")}
print(json.dumps([sum(p.numel() for p in model.parameters()), versions]))
"""


def fit_predict(loaded: LoadedRun) -> FitResult:
    """Train from the run's seed, keep the epoch that is best on the validation rows, predict all rows.

    Raises:
        InputError: chemprop cannot be installed or fails; the message ends with its last line.
    """
    try:
        python = chemprop_env.python()
    except chemprop_env.Unavailable as reason:
        raise InputError(str(reason)) from None
    command = python.with_name("chemprop")
    table, out, predicted = (loaded.folder / name for name in ("data.csv", "chemprop", "predicted.csv"))
    write_table(loaded, table)
    words = ["--splits-column", "split", "--task-type", loaded.dataset.task.name]
    words += ["--smiles-columns", "smiles", "--target-columns", *loaded.names]
    features = FEATURES if loaded.run.model == "chemprop-rdkit" else ()
    seed = ["--pytorch-seed", str(loaded.run.seed), "--num-workers", "0", "--accelerator", "cpu"]
    _run([command, "train", "--data-path", table, "--output-dir", out, *words, *seed, *features])
    model = out / "model_0" / "best.pt"
    paths = ["--test-path", table, "--model-paths", model, "--preds-path", predicted, "--smiles-columns", "smiles"]
    _run([command, "predict", *paths, "--accelerator", "cpu", *features])
    parameters, versions = json.loads(_run([python, "-c", TELL, model]))
    settings = {"options": " ".join([*words, *features]), "else": "chemprop's defaults"}
    prediction = read_table(predicted, loaded.names)
    if prediction.shape != loaded.dataset.y.shape:
        raise InputError(f"chemprop: expected predictions {loaded.dataset.y.shape}, got {prediction.shape}")
    return FitResult(prediction, parameters, settings, versions)


def write_table(loaded: LoadedRun, path: Path) -> None:
    """The molecules as the data set writes them, blanks as blanks, with the part each belongs to."""
    dataset = loaded.dataset
    part = np.full(len(dataset.y), "", dtype=object)
    for name, rows in dataset.split.items():
        part[rows] = name
    if (part == "").any():
        raise InputError("chemprop: expected every molecule to belong to a part of the split")
    texts = [dataset.files[0].rows[row].text for row in dataset.rows]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["smiles", *loaded.names, "split"])
        for text, values, name in zip(texts, dataset.y, part, strict=True):
            writer.writerow([text, *("" if np.isnan(value) else repr(float(value)) for value in values), name])


def read_table(path: Path, names: Sequence[str]) -> np.ndarray:
    """The predictions `[m, T]` that chemprop wrote; NaN where it gave no number."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return np.array([[_number(row[name]) for name in names] for row in rows])


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return np.nan


def _run(command: Sequence[object]) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "without a word").splitlines()[-1]
        raise InputError(f"chemprop failed: {last}")
    return done.stdout
