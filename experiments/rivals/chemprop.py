"""chemprop's D-MPNN (Yang et al. 2019, arXiv:1904.01561) by its own command, with its defaults, on the same rows.

It runs in an environment of its own so that its requirements and those of gtx never meet, made at the first call below
`$XDG_CACHE_HOME/gtx` (or `~/.cache/gtx`), with the torch of `constraints.txt`. `chemprop-rdkit` adds its normalised
RDKit features, unscaled, as its manual advises.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments.runs import Run
from experiments.tables import ROOT
from gtx.base.errors import InputError

FEATURES = ("--molecule-featurizers", "v1_rdkit_2d_normalized", "--no-descriptor-scaling")
DESCRIBE = """
import importlib.metadata, json, sys
from chemprop.models import MPNN
model = MPNN.load_from_file(sys.argv[1], map_location="cpu")
versions = {"chemprop": importlib.metadata.version("chemprop"), "rdkit": importlib.metadata.version("rdkit")}
print(json.dumps([sum(p.numel() for p in model.parameters()), versions]))
"""


def fit_predict(run: Run) -> tuple[np.ndarray, dict[str, Any]]:
    """Train from the run's seed, keep the epoch that is best on the validation rows, predict all rows."""
    python = environment()
    command = python.with_name("chemprop")
    table, out, predicted = (run.folder / name for name in ("data.csv", "chemprop", "predicted.csv"))
    write_table(run, table)
    words = ["--splits-column", "split", "--task-type", run.dataset.task.name]
    column = ["--reaction-columns" if run.data.featuriser.reaction else "--smiles-columns", "smiles"]
    words += [*column, "--target-columns", *run.targets]
    features = FEATURES if run.model == "chemprop-rdkit" else ()
    seed = ["--pytorch-seed", str(run.seed), "--num-workers", "0", "--accelerator", "cpu"]
    output_of([command, "train", "--data-path", table, "--output-dir", out, *words, *seed, *features])
    model = out / "model_0" / "best.pt"
    paths = ["--test-path", table, "--model-paths", model, "--preds-path", predicted, *column]
    output_of([command, "predict", *paths, "--accelerator", "cpu", *features])
    parameters, versions = json.loads(output_of([python, "-c", DESCRIBE, model]))
    settings = {"options": " ".join([*words, *features]), "else": "chemprop's defaults"}
    prediction = read_table(predicted, run.targets)
    if prediction.shape != run.dataset.y.shape:
        raise InputError(f"chemprop: expected predictions {run.dataset.y.shape}, got {prediction.shape}")
    return prediction, {"parameters": parameters, "settings": settings, "versions": versions}


def write_table(run: Run, path: Path) -> None:
    """Write the molecules as the data set has them, blanks as blanks, with the part each belongs to."""
    dataset = run.dataset
    table = pd.DataFrame(dataset.y, columns=run.targets)
    table.insert(0, "smiles", [dataset.files[0].rows[row].text for row in dataset.rows])
    for name, rows in dataset.split.items():
        table.loc[rows, "split"] = name
    table.to_csv(path, index=False)


def read_table(path: Path, names: Sequence[str]) -> np.ndarray:
    """Read the predictions `[m, T]` that chemprop wrote; NaN where it gave no number."""
    return pd.read_csv(path)[list(names)].apply(pd.to_numeric, errors="coerce").to_numpy(float)


def environment() -> Path:
    """Return the Python of the environment that holds chemprop, made at the first call."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gtx" / "chemprop"
    python, done = home / "bin" / "python", home / "installed.txt"
    if not done.is_file():
        pins = (ROOT / "constraints.txt").read_text().splitlines()
        torch = next(line for line in pins if line.startswith("torch=="))
        pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", torch]
        for command in ([sys.executable, "-m", "venv", home], pip, [*pip, "chemprop"]):
            output_of(command)  # torch first, so that the build at hand is taken
        done.touch()
    return python


def output_of(command: Sequence[object]) -> str:
    """Run a command and return what it printed."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "without a word").splitlines()[-1]
        raise InputError(f"chemprop failed or could not be installed: {last}")
    return done.stdout


if __name__ == "__main__":
    print(environment())
