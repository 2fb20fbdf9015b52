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

PAGE, COVERED, BEFORE = RESULTS / "folds.md", RESULTS / "folds.csv", RESULTS / "before.csv"
SETS = [each.folder for recipe in (scaffold, mat, moleculeace) for each in recipe.SETS.values()]
COVERAGE = {"xtb9": "gap", "scaffold/esol": "y", "moleculeace/CHEMBL204_Ki": "y"}
DRAWS = {50: 16, 200: 8, 1000: 2}
HEADS = (
    "set | metric | default before | runs | default | its network | its kernel | runs | `--folds 5` | its network | "
    "its kernel | runs | out-of-fold | kernel's weight"
)


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
    lines, before = [], pd.read_csv(BEFORE, index_col="set")
    for folder in SETS:
        runs = tables.runs(RESULTS, folder=folder)
        usual, folds = ([run for run in runs if run["model"] == f"gtx-{name}"] for name in ("default", "folds"))
        if not folds:
            continue
        metric = ModelRuns(folder, "gtx-folds", folds).metric
        columns = [
            f"{before['score'][folder]:.3f}",
            str(before["runs"][folder]),
            *_beside_parts(usual, metric),
            *_beside_parts(folds, metric),
            f"{np.mean([run['val'][metric] for run in folds]):.3f}",
            f"{np.mean([np.mean([*run.get('kernel_share', {'': 0.0}).values()]) for run in folds]):.0%}",
        ]
        lines.append([folder, TITLES[metric], *columns])
    return lines


def _beside_parts(runs: list[tables.Record], metric: str) -> list[str]:
    """Write the mean test score of runs, of their networks and their kernels alone, and the number of runs."""
    if not runs:
        return ["", "", "", "0"]
    alone = [
        np.mean([run["alone"][name] for run in runs if "alone" in run] or [np.nan]) for name in ("network", "kernel")
    ]
    means = [np.mean([run["test"][metric] for run in runs]), *alone]
    return [*("" if np.isnan(mean) else f"{mean:.3f}" for mean in means), str(len(runs))]


def page() -> str:
    """Write both tables."""
    lines = scores()
    parts = ["# Folds", "", str(__doc__).split("\n\n")[0], ""]
    parts += [
        f"Test scores on {len(lines)} of {len(pd.read_csv(BEFORE))} sets. "
        "*Before* is the default whose network read no embedding and whose kernel had no prior (commit 10af63ae). "
        "*Out-of-fold* is the score of the split's validation rows, each by the network and the kernel that did not "
        "learn it.",
        "",
        "On two idle cores of an AMD EPYC `--folds 5` took 2.5 and 2.8 times as long as one network: 118 and 48 s for "
        "scaffold-freesolv, 216 and 78 s for scaffold-esol, start and report included (`gtx train`, commit c325a44e).",
        "",
    ]
    parts += [*markdown(HEADS, "ll" + "r" * 12, lines), ""] if lines else []
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
