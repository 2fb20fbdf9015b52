"""What an embedding of molecules is worth at most as a third part of the kernel, as a page.

    python -m experiments.foundation.ceiling --write build/foundation/sets.smi
    python -m experiments.foundation.labels build/foundation/sets.smi --out build/foundation/sets
    python -m experiments.foundation.ceiling --models foundation

The kernel of `gtx train` is chosen and solved on training rows as it is, then with a part that compares embeddings: its
share and its length are those that leave-one-out prefers. The scores are those of the kernels alone.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn

import gtx
from experiments import mat, moleculeace, scaffold
from experiments.foundation.labels import OUT, read_corpus, read_labels
from experiments.runs import PublicSet, Run, read_set
from experiments.summary import markdown, mean_log_ratio
from experiments.tables import RESULTS
from gtx.base.errors import InputError
from gtx.base.files import write_text
from gtx.data import MoleculeStore
from gtx.data.public_datasets import load_public_dataset
from gtx.models import kernel_ridge

PAGE = RESULTS / "foundation-ceiling.md"
SETS: dict[str, PublicSet] = {
    each.folder: each for module in (moleculeace, scaffold, mat) for each in module.SETS.values()
}
BATCH = 512
PARTS = {"val": "validation", "test": "test"}
HEAD = """# What the teacher is worth as a third part of the kernel

The kernel of `gtx train` alone, without a network, as it is (substructures and descriptors), and with MiniMol's 512
numbers as a third part: a Matérn kernel of their z-scores, whose share and length leave-one-out on training rows
chooses, as it does for the other parts. Both learn from the training rows alone. A pretrained model that imitates the
teacher can hardly be worth more than this. The *difference* is the mean logarithm of the error with the third part over
that without, with its 95% interval (t, sets). An error is an RMSE, or 1 - ROC-AUC; of several splits the table has the
mean. Tox21 was not run. MiniMol was pretrained on assays of PubChem; whether these hold values of the sets here is not
known.

    python -m experiments.foundation.ceiling --write build/foundation/sets.smi
    python -m experiments.foundation.labels build/foundation/sets.smi --out build/foundation/sets
    python -m experiments.foundation.ceiling --models foundation

*Foundation* is the embedding of the pretrained model of the package in the same place, which imitates MiniMol: three
passes over 218,000 molecules. (After two passes, of another run, it was -1.6% [-3.5%, +0.3%] and -1.7% [-3.1%, -0.3%].)
"""


def of_kernel(run: Run, vectors: Tensor | None) -> dict[str, float | str]:
    """Compute errors of a kernel, perhaps with embeddings `[m, K]` as a third part, solved on the training rows."""
    dataset = run.dataset
    store, y = dataset.store, torch.from_numpy(dataset.y).double()
    train = torch.from_numpy(dataset.split["train"])
    train = train[~y[train].isnan().all(1)]
    third = None if vectors is None else {"sha256": "0" * 64, "width": vectors.shape[1]}
    model = kernel_ridge(y.shape[1], num_descriptors=store.descriptors.shape[1], foundation=third)
    model.solve(store.subset(train.numpy()), y[train], None if vectors is None else vectors[train])
    outputs = []
    for rows in torch.arange(len(store)).split(BATCH):
        model.embed = None if vectors is None else lambda batch, rows=rows: vectors[rows]
        outputs.append(model(store.batch(rows)))
    predicted = torch.cat(outputs).double().numpy()
    errors = {
        part: error(dataset.y[rows], predicted[rows], run) for part, rows in dataset.split.items() if part in PARTS
    }
    return errors | {"kernel": repr(model)}


def error(y: np.ndarray, predicted: np.ndarray, run: Run) -> float:
    """Compute the RMSE, or 1 - ROC-AUC, mean over targets."""
    pairs = [(y[known, i], predicted[known, i]) for i, known in enumerate(~np.isnan(y).T)]
    if run.public_set.metric == "rmse":
        return float(np.mean([np.sqrt(np.mean((a - b) ** 2)) for a, b in pairs]))
    return float(np.mean([1 - roc_auc_score(a, b) for a, b in pairs if 0 < a.mean() < 1]))


def available() -> list[str]:
    """List the sets whose file is there, without Tox21, whose twelve patterns of blanks take an hour."""
    found = []
    for folder, each in SETS.items():
        try:
            there = load_public_dataset(each.name, download=False).path.exists()
        except InputError:
            there = False
        if there and each.name != "scaffold/tox21":
            found.append(folder)
    return found


def page(found: dict[str, dict[str, dict]]) -> str:
    """Write the scores in Markdown; of several splits the mean."""
    runs = pd.DataFrame({key: {(n, p): each[n][p] for n in each for p in PARTS} for key, each in found.items()}).T
    runs = runs.dropna(axis=1)
    names = list(runs.columns.unique(0))
    folders = runs.index.str.partition(" ").get_level_values(0)
    differences = []
    for name in names[1:]:
        ratios = np.log(runs[name] / runs["today"]).groupby(folders, sort=False).mean()
        differences += [[name, words, mean_log_ratio(ratios[part].tolist())] for part, words in PARTS.items()]
    errors = []
    for folder, means in runs.groupby(folders, sort=False).mean().iterrows():
        for part, words in PARTS.items():
            errors.append([folder, words, *(f"{means[name, part]:.3f}" for name in names)])
    lines = [HEAD, *markdown("third part | rows | difference | sets on which it is ahead", "lllr", differences), ""]
    heads = f"set | rows | {' | '.join(['as it is', *names[1:]])}"
    return "\n".join([*lines, *markdown(heads, "ll" + "r" * len(names), errors), ""])


@torch.inference_mode()
def embedded(model: nn.Module, store: MoleculeStore) -> Tensor:
    """Compute the input of the head of a pretrained network that knows no descriptors, `[m, width]`."""
    alone = replace(store, descriptors=store.descriptors[:, :0])
    return torch.cat([model.embed(alone.batch(rows)) for rows in torch.arange(len(store)).split(128)]).clone()


def main() -> None:
    """Compute the scores that are missing, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, help="write the molecules of the sets to this file, and stop")
    parser.add_argument("--molecules", type=Path, default=OUT / "sets.smi", help="that file")
    parser.add_argument("--labels", type=Path, default=OUT / "sets" / "labels", help="what was labelled of them")
    parser.add_argument("--models", nargs="*", default=[], help="pretrained models whose embeddings are compared too")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=available())
    parser.add_argument("--out", type=Path, default=OUT / "ceiling.json", help="scores, as they are found")
    args = parser.parse_args()
    if args.write:
        names = [SETS[folder].name for folder in available()]
        found = set().union(*(read_set(name)[load_public_dataset(name).smiles_column] for name in names))
        write_text(args.write, "\n".join(sorted(found)) + "\n")
        return
    molecules = read_corpus(args.molecules)
    known = dict(zip(molecules, torch.from_numpy(read_labels(args.labels, len(molecules)).molecule), strict=True))
    models = {Path(file).stem: gtx.load(file, device="cpu").members[0] for file in args.models}
    found = json.loads(args.out.read_text()) if args.out.exists() else {}
    for folder in args.sets:
        for split in range(len(SETS[folder].splits)):
            key = f"{folder} {split}"
            if missing := [name for name in ("teacher", *models) if name not in found.get(key, {})]:
                run = Run(SETS[folder], "kernel", split)
                table = pd.read_csv(run.data.data, dtype=str)[run.data.smiles_column]
                vectors = {name: embedded(models[name], run.dataset.store) for name in missing if name in models}
                if "teacher" in missing:
                    vectors["teacher"] = torch.stack([known[text] for text in table.iloc[run.dataset.rows]])
                scores = {name: of_kernel(run, of_rows) for name, of_rows in {"today": None, **vectors}.items()}
                found[key] = found.get(key, {}) | scores
                write_text(args.out, json.dumps(found, indent=1))
                print(key, json.dumps(found[key]), flush=True)
    PAGE.write_text(page(found))
    print(PAGE)


if __name__ == "__main__":
    main()
