"""What an embedding of molecules is worth at most as a third part of the kernel, as a page.

    python -m experiments.foundation.ceiling --write build/foundation/sets.smi
    python -m experiments.foundation.labels minimol build/foundation/sets.smi --out build/foundation/sets
    python -m experiments.foundation.ceiling --models foundation build/foundation/student.gtx

The kernel of `gtx train` is chosen and solved on training rows as it is, then with a part that compares embeddings: its
share and its length are those that leave-one-out prefers. The scores are those of the kernels alone.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
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
from experiments.runs import PublicSet, Run
from experiments.summary import markdown, mean_log_ratio
from experiments.tables import RESULTS
from gtx.data import MoleculeStore
from gtx.data.public_datasets import load_public_dataset
from gtx.errors import InputError
from gtx.files import whole_file
from gtx.models import kernel

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
    python -m experiments.foundation.labels minimol build/foundation/sets.smi --out build/foundation/sets
    python -m experiments.foundation.ceiling --models foundation build/foundation/student.gtx

*Foundation* and *student* are the embeddings of pretrained models in the same place: of the one in the package, which
learned RDKit's descriptors, and of one that imitates MiniMol.
"""


def of_split(run: Run, embeddings: dict[str, Tensor]) -> dict[str, dict]:
    """Compute errors of the kernel as it is, and with each embedding `[m, K]` as a third part, and what was chosen."""
    return {name: of_kernel(run, vectors) for name, vectors in {"today": None, **embeddings}.items()}


def of_kernel(run: Run, vectors: Tensor | None) -> dict[str, float | str]:
    """Solve a kernel on the training rows, and compute its errors."""
    dataset = run.dataset
    store, y = dataset.store, torch.from_numpy(dataset.y).double()
    train = torch.from_numpy(dataset.split["train"])
    train = train[~y[train].isnan().all(1)]
    third = None if vectors is None else {"sha256": "0" * 64, "width": vectors.shape[1]}
    model = kernel(y.shape[1], num_descriptors=store.descriptors.shape[1], foundation=third)
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


def smiles_of_sets() -> list[str]:
    """Collect all molecules of the sets, as their tables write them."""
    found = set()
    for folder in available():
        entry = load_public_dataset(SETS[folder].name)
        found |= set(pd.read_csv(entry.path)[entry.smiles_column])
    return sorted(found)


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
    sets: dict[str, list[dict]] = {}
    for key, scores in found.items():
        sets.setdefault(key.split()[0], []).append(scores)
    names = [name for name in dict.fromkeys(name for one in found.values() for name in one) if name != "today"]
    names = [name for name in names if all(name in one for one in found.values())]
    differences = [[name, words, difference(sets, name, part)] for name in names for part, words in PARTS.items()]
    errors = []
    for folder, splits in sets.items():
        for part, words in PARTS.items():
            means = (statistics.mean(each[name][part] for each in splits) for name in ("today", *names))
            errors.append([folder, words, *(f"{mean:.3f}" for mean in means)])
    lines = [HEAD, *markdown("third part | rows | difference | sets on which it is ahead", "lllr", differences), ""]
    heads = f"set | rows | as it is | {' | '.join(names)}"
    return "\n".join([*lines, *markdown(heads, "llr" + "r" * len(names), errors), ""])


def difference(sets: dict[str, list[dict]], name: str, part: str) -> str:
    """Write how much smaller errors are over all sets."""
    logs = [[math.log(each[name][part] / each["today"][part]) for each in splits] for splits in sets.values()]
    return mean_log_ratio([statistics.mean(each) for each in logs])


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
    parser.add_argument("--labels", type=Path, default=OUT / "sets" / "minimol", help="what was labelled of them")
    parser.add_argument("--models", nargs="*", default=[], help="pretrained models whose embeddings are compared too")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=available())
    parser.add_argument("--out", type=Path, default=OUT / "ceiling.json", help="scores, as they are found")
    args = parser.parse_args()
    if args.write:
        with whole_file(args.write, "w") as file:
            file.write("\n".join(smiles_of_sets()) + "\n")
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
                found[key] = found.get(key, {}) | of_split(run, vectors)
                with whole_file(args.out, "w") as file:
                    json.dump(found, file, indent=1)
                print(key, json.dumps(found[key]), flush=True)
    PAGE.write_text(page(found))
    print(PAGE)


if __name__ == "__main__":
    main()
