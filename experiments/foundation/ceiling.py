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
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from scipy.stats import t
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn

import gtx
from experiments import mat, moleculeace, scaffold
from experiments.archive import RESULTS, ROOT
from experiments.foundation.corpus import read_corpus
from experiments.foundation.labels import OUT, read_labels
from experiments.public_sets import LoadedRun, PublicSet, Run
from gtx.data import MoleculeStore
from gtx.data.named_sets import load_set
from gtx.errors import InputError
from gtx.files import whole_file
from gtx.kernel import DescriptorKernel, solve
from gtx.kernel.regression import CHOOSING
from gtx.kernel.ridge import draw, fewer
from gtx.models.kernel import kernel

PAGE = RESULTS / "foundation-ceiling.md"
SETS: dict[str, PublicSet] = {
    each.folder: each for module in (moleculeace, scaffold, mat) for each in module.SETS.values()
}
SHARES, LENGTHS = (0.25, 0.5, 0.75, 0.9), (1.0, 2.0, 4.0)
"""Of the third part."""
TOGETHER = 512
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


def of_split(loaded: LoadedRun, embeddings: dict[str, Tensor]) -> dict[str, object]:
    """Errors of the kernel as it is, and with each embedding `[m, K]` as a third part, by name; and what was chosen."""
    store, split, u = loaded.dataset.store, loaded.dataset.split, loaded.dataset.store.descriptors
    y = torch.from_numpy(loaded.dataset.y).double()
    train = torch.from_numpy(split["train"])
    train = train[~y[train].isnan().all(1)]
    learned = store.subset(train.numpy())
    model = kernel(y.shape[1], num_descriptors=u.shape[1])
    model.descriptors.scaler.observe(u[train])
    model._choose(learned, torch.arange(len(train)), y[train], u[train])
    model._keep(model._count(learned, torch.arange(len(train))), torch.arange(len(train)))
    if model.descriptors is not None:
        model.descriptors.hold(u[train])
    parts = torch.arange(len(store)).split(TOGETHER)
    whole = torch.cat([model.kernel(store.batch(rows)) for rows in parts])
    few = draw(len(train), fewer(CHOOSING, y[train]))
    base, measured = whole[train[few]][:, few], y[train[few]]
    measured = measured[:, (~measured.isnan()).sum(0) > 1]

    def left_out(mixed: Tensor) -> float:
        off = solve(mixed, torch.arange(len(few)), measured).left_out - measured
        return float(off.square().nanmean(0).mean())

    def errors(mixed: Tensor) -> dict[str, float]:
        found = solve(mixed[train], torch.arange(len(train)), y[train])
        said = (found.centre + mixed @ found.dual).numpy()
        return {part: error(loaded.dataset.y[split[part]], said[split[part]], loaded) for part in ("val", "test")}

    found = {"today": errors(whole) | {"left_out": left_out(base), "kernel": repr(model)}}
    for name, vectors in embeddings.items():
        third = DescriptorKernel(vectors.shape[1])
        third.scaler.observe(vectors[train])
        third.hold(vectors[train[few]])
        near = {length: third.among(length) for length in LENGTHS}
        tried = {(s, each): left_out(base.lerp(near[each], s)) for s, each in product(SHARES, LENGTHS)}
        share, length = min(tried, key=tried.__getitem__)
        chosen = {"left_out": tried[share, length], "share": share, "length": length}
        mixed = whole
        if chosen["left_out"] < found["today"]["left_out"]:
            third.hold(vectors[train])
            third.length.fill_(length)
            mixed = torch.cat([whole[rows].lerp(third(vectors[rows]), share) for rows in parts])
        found[name] = errors(mixed) | chosen
    return found


def error(y: np.ndarray, said: np.ndarray, loaded: LoadedRun) -> float:
    """RMSE, or 1 - ROC-AUC, mean over targets."""
    known = ~np.isnan(y)
    pairs = [(y[k, i], said[k, i]) for i, k in enumerate(known.T)]
    if loaded.run.public_set.metric == "rmse":
        return float(np.mean([np.sqrt(np.mean((a - b) ** 2)) for a, b in pairs]))
    return float(np.mean([1 - roc_auc_score(a, b) for a, b in pairs if 0 < a.mean() < 1]))


def texts() -> list[str]:
    """All molecules of the sets, as their tables write them."""
    found = set()
    for folder in at_hand():
        entry = load_set(SETS[folder].name)
        found |= set(pd.read_csv(entry.path)[entry.smiles_column])
    return sorted(found)


def at_hand() -> list[str]:
    """Sets whose file is there, without Tox21, whose twelve patterns of blanks take an hour."""

    def there(name: str) -> bool:
        try:
            return load_set(name, download=False).path.exists()
        except InputError:
            return False

    return [folder for folder, each in SETS.items() if each.name != "scaffold/tox21" and there(each.name)]


def page(found: dict[str, dict[str, dict]]) -> str:
    """The scores in Markdown; of several splits the mean."""
    sets: dict[str, list[dict]] = {}
    for key, scores in found.items():
        sets.setdefault(key.split()[0], []).append(scores)
    names = [name for name in dict.fromkeys(name for one in found.values() for name in one) if name != "today"]
    names = [name for name in names if all(name in one for one in found.values())]
    lines = [HEAD, "| third part | rows | difference | sets on which it is ahead |", "|---|---|---|--:|"]
    for name in names:
        lines += [f"| {name} | {words} | {over_all(sets, name, part)} |" for part, words in PARTS.items()]
    lines += ["", f"| set | rows | as it is | {' | '.join(names)} |", "|---|---|--:|" + "--:|" * len(names)]
    for folder, splits in sets.items():
        for part, words in PARTS.items():
            means = (statistics.mean(each[name][part] for each in splits) for name in ("today", *names))
            lines.append(f"| {folder} | {words} | {' | '.join(f'{mean:.3f}' for mean in means)} |")
    return "\n".join([*lines, ""])


def over_all(sets: dict[str, list[dict]], name: str, part: str) -> str:
    """How much smaller errors are, with a t interval over sets, and on how many they are."""
    ratios = [
        statistics.mean(math.log(each[name][part] / each["today"][part]) for each in splits) for splits in sets.values()
    ]
    mean = statistics.mean(ratios)
    half = t.ppf(0.975, len(ratios) - 1) * statistics.stdev(ratios) / math.sqrt(len(ratios))
    ahead = sum(ratio < 0 for ratio in ratios)
    return f"{mean:+.1%} [{mean - half:+.1%}, {mean + half:+.1%}] | {ahead} of {len(ratios)}"


@torch.inference_mode()
def embedded(model: nn.Module, store: MoleculeStore) -> Tensor:
    """What the head of a pretrained network that knows no descriptors sees of all molecules, `[m, width]`."""
    alone = replace(store, descriptors=store.descriptors[:, :0])
    return torch.cat([model.embed(alone.batch(rows)) for rows in torch.arange(len(store)).split(128)]).clone()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, help="write the molecules of the sets to this file, and stop")
    parser.add_argument("--molecules", type=Path, default=OUT / "sets.smi", help="that file")
    parser.add_argument("--labels", type=Path, default=OUT / "sets" / "minimol", help="what was labelled of them")
    parser.add_argument("--models", nargs="*", default=[], help="pretrained models whose embeddings are compared too")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=at_hand())
    parser.add_argument("--out", type=Path, default=OUT / "ceiling.json", help="scores, as they are found")
    args = parser.parse_args()
    if args.write:
        with whole_file(args.write, "w") as file:
            file.write("\n".join(texts()) + "\n")
        return
    molecules = read_corpus(args.molecules)
    known = dict(zip(molecules, torch.from_numpy(read_labels(args.labels, len(molecules)).molecule), strict=True))
    models = {Path(file).stem: gtx.load(file, device="cpu").members[0] for file in args.models}
    found = json.loads(args.out.read_text()) if args.out.exists() else {}
    for folder in args.sets:
        for split in range(len(SETS[folder].splits)):
            key = f"{folder} {split}"
            if missing := [name for name in ("teacher", *models) if name not in found.get(key, {})]:
                loaded = LoadedRun.of(Run(SETS[folder], "kernel", split, 0), ROOT / "runs")
                table = pd.read_csv(loaded.data.data, dtype=str)[loaded.data.smiles_column]
                vectors = {name: embedded(models[name], loaded.dataset.store) for name in missing if name in models}
                if "teacher" in missing:
                    vectors["teacher"] = torch.stack([known[text] for text in table.iloc[loaded.dataset.rows]])
                found[key] = found.get(key, {}) | of_split(loaded, vectors)
                with whole_file(args.out, "w") as file:
                    json.dump(found, file, indent=1)
                print(key, json.dumps(found[key]), flush=True)
    PAGE.write_text(page(found))
    print(PAGE)


if __name__ == "__main__":
    main()
