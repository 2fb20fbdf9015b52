"""`gtx train --folds 5` beside the default of one network, and the coverage of its intervals.

    python -m experiments.folds train --sets scaffold-freesolv scaffold-esol --seeds 0     # at full length: hours
    python -m experiments.folds train --sets CHEMBL2034_Ki --epochs 15
    python -m experiments.folds coverage                                                   # minutes, the kernel alone

`train` trains both on the split of a set, of MAT's six splits on the first. Rows that the split calls train and val are
cut into folds at random, all rows of a molecule together. `coverage` draws 50, 200 and 1,000 rows at random, and counts
how many of up to 300 others are in their 90 % interval by the kernel on substructures and descriptors. Finished lines
are not made again, and a training that was stopped goes on. The lines are in `results/folds.csv`; `results/folds.md` is
made of them.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import gtx
from experiments import mat, moleculeace, scaffold
from experiments.runs import PublicSet, read_set
from experiments.summary import TITLES, markdown
from experiments.tables import RESULTS, ROOT
from gtx.base.files import whole_file
from gtx.training import TrainSettings
from gtx.workflow import train_model

SETS: dict[str, PublicSet] = {
    each.folder.removeprefix("moleculeace-"): each
    for each in (*scaffold.SETS.values(), *mat.SETS.values(), *moleculeace.SETS.values())
}
WAYS = {"default": 1, "--folds 5": 5}
SCORES = ("default", "--folds 5", "its network", "its kernel", "out-of-fold")
COVERAGE = {"xtb9": "gap", "scaffold/esol": "y", "moleculeace/CHEMBL204_Ki": "y"}
DRAWS = {50: 16, 200: 8, 1000: 2}
KEYS = ["what", "set", "way", "seed", "epochs"]


def scores_of(public_set: PublicSet, way: str, seed: int, epochs: int | None, runs: Path) -> dict[str, Any]:
    """Train one way, or read the finished run, and return its scores."""
    settings = TrainSettings(seed=seed, epochs=epochs, folds=WAYS[way], threads=1, progress=False, accelerator="cpu")
    out = runs / "folds" / public_set.folder / f"{way.strip('-').replace(' ', '-')}-{seed}-{epochs or 'all'}"
    data = replace(public_set.data(0), workers=0)
    found = train_model(data, settings, out, baselines=False, report=False).metrics
    metric = public_set.metric
    alone = {name: scores["test"][metric] for name, scores in found["alone"].items()}
    share = np.mean([*found.get("kernel_share", {}).values()] or [0.0])
    return {"metric": metric, "test": found["test"][metric], "val": found["val"][metric], "share": share, **alone}


def coverage(name: str, rows: int) -> float:
    """Return the share of other molecules within their interval, mean over draws."""
    table, inside = read_set(name)[["smiles", COVERAGE[name]]].set_axis(["smiles", "y"], axis=1), []
    for seed in range(DRAWS[rows]):
        some = table.sample(rows + min(300, len(table) - rows), random_state=seed)
        settings = {"kernel_parts": ["substructures", "descriptors"]}
        model = gtx.MoleculeRegressor(model="kernel", folds=5, workers=0, settings=settings, random_state=seed)
        model.fit(some.smiles[:rows], some.y[:rows])
        low, high = model.predict_interval(some.smiles[rows:]).T
        inside.append(((low <= some.y[rows:]) & (some.y[rows:] <= high)).mean())
    return float(np.mean(inside))


def page(lines: pd.DataFrame) -> str:
    """Write both tables."""
    trained, parts = lines[lines["what"] == "train"], ["# Folds", "", str(__doc__).split("\n\n")[0], ""]
    if len(trained):
        cells = []
        for (name, seed, epochs), each in trained.groupby(["set", "seed", "epochs"], sort=False):
            of = each.set_index("way")
            folds: Mapping[str, Any] = of.loc["--folds 5"] if "--folds 5" in of.index else {}
            scores = [of["test"].get("default"), *(folds.get(key) for key in ("test", "network", "kernel", "val"))]
            share = f"{folds['share']:.0%}" if len(folds) else ""
            row = ["" if pd.isna(score) else f"{score:.3f}" for score in scores]
            cells.append([name, TITLES[each["metric"].iloc[0]], str(seed), str(epochs), *row, share])
        heads = " | ".join(["set", "metric", "seed", "epochs", *SCORES, "kernel's weight"])
        named = f"Test scores on {trained['set'].nunique()} of {len(SETS)} sets; the others were not run."
        parts += [named, "", *markdown(heads, "llrrrrrrrr", cells), ""]
    covered = lines[lines["what"] == "coverage"]
    if len(covered):
        cells = [
            [row["set"], str(row["way"]), str(DRAWS[int(row["way"])]), f"{row['test']:.3f}"]
            for _, row in covered.iterrows()
        ]
        words = "Share of molecules in their 90 % interval, from five folds of so many rows, the kernel alone."
        parts += [words, "", *markdown("set | rows | draws | coverage", "lrrr", cells), ""]
    return "\n".join(parts)


def record(file: Path, line: dict[str, Any]) -> None:
    """Add a line to the table, and write the page."""
    lines = pd.DataFrame([line])
    if file.exists():
        lines = pd.concat([pd.read_csv(file, dtype={"way": str}), lines])
    with whole_file(file, "w") as out:
        lines.to_csv(out, index=False)
    with whole_file(file.with_suffix(".md"), "w") as out:
        out.write(page(lines))
    print({name: value for name, value in line.items() if name != "what"}, flush=True)


def main() -> int:
    """Make the missing lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["train", "coverage"])
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS), metavar="SET")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--epochs", type=int, help="of each network; default: those of gtx train")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the results")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs", help="folder of the trainings")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    file = options.out / "folds.csv"
    done = set()
    if file.exists():
        done = set(pd.read_csv(file, dtype=str)[KEYS].fillna("").itertuples(index=False, name=None))
    if options.what == "coverage":
        for name in COVERAGE:
            for rows in DRAWS:
                line = {"what": "coverage", "set": name, "way": str(rows), "seed": "", "epochs": ""}
                if tuple(map(str, line.values())) not in done:
                    record(file, line | {"metric": "coverage", "test": round(coverage(name, rows), 3)})
        return 0
    for seed in options.seeds:
        for name in options.sets:
            for way in WAYS:
                line = {"what": "train", "set": name, "way": way, "seed": seed, "epochs": options.epochs or "default"}
                if tuple(map(str, line.values())) not in done:
                    record(file, line | scores_of(SETS[name], way, seed, options.epochs, options.runs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
