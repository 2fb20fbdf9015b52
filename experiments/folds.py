"""The page of `gtx train --folds 5`: its scores beside the default of one network, and the coverage of its intervals.

    python -m experiments.scaffold --sets freesolv esol --models gtx-folds --seeds 0       # makes the runs
    python -m experiments.folds                                                            # writes results/folds.md

The page has the runs in `results/runs.csv`. Rows that a split calls train and val are cut into folds at random, all
rows of a molecule together. `--coverage` also draws 50, 200 and 1,000 rows at random, fits the kernel on substructures
and descriptors by five folds, and counts how many of up to 300 other molecules are in their 90 % interval: minutes.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import pandas as pd

import gtx
from experiments import mat, moleculeace, scaffold, tables
from experiments.runs import read_set
from experiments.summary import TITLES, ModelRuns, markdown
from experiments.tables import RESULTS

PAGE, COVERED = RESULTS / "folds.md", RESULTS / "folds.csv"
SETS = [each.folder for recipe in (scaffold, mat, moleculeace) for each in recipe.SETS.values()]
COVERAGE = {"xtb9": "gap", "scaffold/esol": "y", "moleculeace/CHEMBL204_Ki": "y"}
DRAWS = {50: 16, 200: 8, 1000: 2}
HEADS = "set | metric | default | runs | `--folds 5` | runs | its network | its kernel | validation | kernel's weight"


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


def scores() -> list[list[str]]:
    """Write a line for each set that was run with folds: mean scores over its runs."""
    lines = []
    for folder in SETS:
        runs = tables.runs(RESULTS, folder=folder)
        folds = [run for run in runs if run["model"] == "gtx-folds"]
        if not folds:
            continue
        usual = ModelRuns(folder, "gtx-default", [run for run in runs if run["model"] == "gtx-default"])
        ours = ModelRuns(folder, "gtx-folds", folds)
        alone = [
            np.mean([run["alone"][name] for run in folds if "alone" in run] or [np.nan])
            for name in ("network", "kernel")
        ]
        share = np.mean([np.mean([*run.get("kernel_share", {"": 0.0}).values()]) for run in folds])
        values = [usual.mean() if usual.results else None, ours.mean(), *alone, ours.mean("val")]
        default, mean, *rest = ["" if value is None or np.isnan(value) else f"{value:.3f}" for value in values]
        counts = [str(len(usual.results)), str(len(folds))]
        lines.append([folder, TITLES[ours.metric], default, counts[0], mean, counts[1], *rest, f"{share:.0%}"])
    return lines


def page() -> str:
    """Write both tables."""
    lines, every = scores(), {run["folder"] for run in tables.runs(RESULTS) if run["model"] == "gtx-default"}
    parts = ["# Folds", "", str(__doc__).split("\n\n")[0], ""]
    parts += [
        f"Test scores on {len(lines)} of {len(every & set(SETS))} sets; on the others `--folds 5` was not run. The "
        "predictions of its validation rows are out-of-fold.",
        "",
    ]
    parts += [*markdown(HEADS, "llrrrrrrrr", lines), ""] if lines else []
    covered = pd.read_csv(COVERED)
    cells = [
        [row["set"], str(row["rows"]), str(DRAWS[row["rows"]]), f"{row['coverage']:.3f}"]
        for _, row in covered.iterrows()
    ]
    words = "Share of molecules in their 90 % interval, from five folds of so many rows, the kernel alone."
    return "\n".join([*parts, words, "", *markdown("set | rows | draws | coverage", "lrrr", cells), ""])


def main() -> None:
    """Measure what is asked for, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--coverage", action="store_true", help="measure the coverage again")
    if parser.parse_args().coverage:
        warnings.simplefilter("ignore")
        found = [(name, rows, round(coverage(name, rows), 3)) for name in COVERAGE for rows in DRAWS]
        pd.DataFrame(found, columns=["set", "rows", "coverage"]).to_csv(COVERED, index=False)
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
