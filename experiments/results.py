"""All results as one page, `experiments/RESULTS.md`, and the tables of `docs/results.md` and the README.

    python -m experiments.results

It reads the runs of `experiments/results`. Differences need the measured values of the test rows, so the sets are read,
or downloaded.
"""

from __future__ import annotations

import os
import re
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from experiments import reactions
from experiments.models import MODELS, PARTS, WHOLE
from experiments.summary import (
    HIGHER,
    TITLES,
    ModelRuns,
    Models,
    difference_text,
    gather,
    markdown,
    ranked,
    replace_tables,
    score_text,
    verdict,
)
from experiments.tables import RESULTS, ROOT, predicted_runs

BEGIN, FRONT = (f"<!-- {mark}: python -m experiments.results -->" for mark in ("measured", "front"))
END = "<!-- until here -->"
"""Marks around the tables in docs/results.md and in the README."""
FRONT_ROWS = {
    "mat-freesolv": "FreeSolv, random splits",
    "scaffold-esol": "ESOL, scaffold split",
    "scaffold-bbbp": "BBBP, scaffold split",
    "scaffold-bace": "BACE, scaffold split",
    "scaffold-tox21": "Tox21, scaffold split",
}
FRONT_COLUMNS = {
    "`gtx train`": ("gtx-default",),
    "`--folds 5`": ("gtx-folds",),
    "chemprop": ("chemprop", "chemprop-rdkit"),
    "GPS": ("gps",),
    "random forest": ("forest-counts", "forest-descriptors"),
}


# ---------------------------------------------------------------------------------------- aims and published scores


class Aim(NamedTuple):
    """Aim on one set.

    Attributes:
        title: title of the set.
        metric: score that the set is judged by.
        unit: unit of the metric.
        single: aim for one model, the mean of at least three seeds or of the splits; of ZINC-12k one seed.
        folds: aim for `--folds 5`.
        beside: scores of others, measured beforehand or published.
        share: in place of `single`, a share of another model's score, and that model's name.
    """

    title: str
    metric: str
    unit: str = ""
    single: float | None = None
    folds: float | None = None
    beside: str = ""
    share: tuple[float, str] | None = None

    def goal(self, models: Models) -> float | None:
        """Return `single`, or the share of another model's score, None if that was not measured."""
        if self.share is None:
            return self.single
        share, model = self.share
        return share * models[model].mean() if model in models else None

    @property
    def unit_of_metric(self) -> str:
        """Metric and unit."""
        return f"{TITLES[self.metric]}, {self.unit}" if self.unit else TITLES[self.metric]


_CHEMPROP = "chemprop 2.3, {}"
_GRAPHS = "ZINC-12k, the benchmark's own graphs (rings and substructures counted in them), at most 500k parameters"
_SKETCH = "a first sketch of gtx, 0.106 after 30 epochs and 25 minutes on one core"
_SD, _BELOW_SCHNET = "sd of the target", (0.8, "schnet")

AIMS: dict[str, Aim] = {
    "mat-freesolv": Aim("FreeSolv, MAT's six splits", "rmse", _SD, 0.25, 0.235, _CHEMPROP.format("0.3605")),
    "mat-esol": Aim("ESOL, MAT's six splits", "rmse", _SD, 0.245, 0.23, _CHEMPROP.format("0.2815")),
    "scaffold-esol": Aim("ESOL, scaffold split", "rmse", "log mol/L", 0.78, 0.75),
    "scaffold-freesolv": Aim("FreeSolv, scaffold split", "rmse", "kcal/mol", 2.15, 2.0),
    "scaffold-bbbp": Aim("BBBP, scaffold split", "roc_auc", "", 0.73, 0.745),
    "scaffold-bace": Aim("BACE, scaffold split", "roc_auc", "", 0.84, 0.855),
    "scaffold-tox21": Aim("Tox21, scaffold split, mean of 12 tasks", "roc_auc", "", 0.785, 0.805),
    "zinc12k-graphs": Aim(_GRAPHS, "mae", "", 0.09),
    "zinc12k": Aim("ZINC-12k from SMILES, no descriptors", "mae", "", 0.07, None, _SKETCH),
    "qm9-gap": Aim("QM9, 3,000 molecules in space, HOMO-LUMO gap", "mae", "meV", share=_BELOW_SCHNET),
    "qm9-u0": Aim("QM9, 3,000 molecules in space, atomisation energy", "mae", "kcal/mol", share=_BELOW_SCHNET),
    "qm7-energy": Aim("QM7 in space, atomisation energy", "mae", "kcal/mol", share=_BELOW_SCHNET),
    "xtb9-random": Aim("xtb9, random split, mean of its five targets", "r2"),
}
"""By the folder of results; on one page, these come first and in this order."""


class Published(NamedTuple):
    """A published score: mean, and standard deviation over seeds where it was given."""

    model: str
    mean: float
    sd: float | None = None

    def __str__(self) -> str:
        return f"{self.mean:.3f}" if self.sd is None else f"{self.mean:.3f} ± {self.sd:.3f}"


MUBEN = "MUBen (Li et al. 2023, arXiv:2306.10060; Yinghao-Li/MUBen at f0ec556), the same rows"
METHODS = {"none": "", "DeepEnsembles": ", ensemble"}
"""Of which every model's score is quoted; of others (SWAG, SGLD, ...) the best one, if it beats these."""
_MAT = "Maziarka et al. 2020 (arXiv:2002.08264), the same splits, approximate scores"
QUOTED = {
    "zinc12k-graphs": [
        Published("GRIT", 0.059),
        Published("GINE, tuned", 0.065),
        Published("GPS", 0.070),
        Published("Graphormer-slim", 0.122),
    ],
    "mat-freesolv": [Published("MAT, after hundreds of trials", 0.27)],
    "mat-esol": [Published("MAT, after hundreds of trials", 0.28)],
}
SOURCES = dict.fromkeys(("mat-freesolv", "mat-esol"), _MAT) | {
    "zinc12k-graphs": "Ma et al. 2023 (arXiv:2305.17589), Luo et al. 2025 (arXiv:2502.09263), Rampášek et al. 2022 "
    "(arXiv:2205.12454) and Ying et al. 2021 (arXiv:2106.05234), the same graphs, days on GPUs",
}
"""Of the published scores; those of the scaffold splits are MUBen's."""


def published(folder: str, metric: str, root: Path | None = None) -> list[Published]:
    """List the published scores of a set; none for other sets, or if the table of MUBen is not there."""
    if folder in QUOTED:
        return QUOTED[folder]
    file = (root or Path(os.environ.get("GTX_DATA", "."))) / "published" / "scaffold_published.csv"
    kind, _, name = folder.partition("-")
    if kind != "scaffold" or not file.is_file():
        return []
    mean, sd = (f"{metric.replace('_', '-')}-{word}" for word in ("mean", "std"))
    table = pd.read_csv(file, keep_default_na=False, na_values=[""])
    rows = table[(table["dataset"] == name) & table[mean].notna()]
    best = rows.sort_values(mean, ascending=metric not in HIGHER, kind="stable").index[:1]
    return [
        Published(
            row["model"] + METHODS.get(row["method"], f", {row['method']}"),
            float(row[mean]),
            None if pd.isna(row[sd]) else float(row[sd]),
        )
        for at, row in rows.iterrows()
        if row["method"] in METHODS or at in best
    ]


# ---------------------------------------------------------------------------------------------------------- pages


def results_page(found: Mapping[str, Models], data: bool = True) -> str:
    """Write the tables of the page in Markdown; `data`: read the sets, for paired differences."""
    order = [folder for folder in AIMS if folder in found] + sorted(set(found) - set(AIMS))
    return "\n".join([overview(found), *(section(folder, found[folder], data) for folder in order)])


def overview(found: Mapping[str, Models]) -> str:
    """Write aims beside results, set by set."""
    cells = []
    for folder, aim in AIMS.items():
        models = found.get(folder, {})
        cells.append([aim.title, aim.unit_of_metric])
        for model, goal in (("gtx", aim.goal(models)), ("gtx-folds", aim.folds)):
            row = models.get(model)
            single = " (1 run)" if row is not None and model == "gtx" and row.counted == "1 run" else ""
            cells[-1] += [score_text(row) + single, "" if goal is None else f"{goal:.3g}", verdict(row, goal)]
        cells[-1].append(best_text(rivals(models)))
    heads = "set | metric | gtx | aim | | `--folds 5` | aim | | best other model"
    return "\n".join(["## Aims and results", "", *markdown(heads, "llrrlrrll", cells), ""])


def short(found: Mapping[str, Models]) -> str:
    """Write a line per set that gtx was run on, for `docs/results.md`."""
    cells = []
    for folder, aim in AIMS.items():
        models = found.get(folder, {})
        if "gtx" not in models:
            continue
        ours, mixed, others = models["gtx"], models.get("gtx-default"), rivals(models)
        higher = aim.metric in HIGHER
        quoted = sorted(published(folder, aim.metric), key=lambda one: one.mean, reverse=higher)
        row = [aim.title, f"{aim.unit_of_metric} {'↑' if higher else '↓'}"]
        row.append("" if mixed is None else f"{score_text(mixed)} ({mixed.counted})")
        row += [f"{score_text(ours)} ({ours.counted})", score_text(models.get("gtx-folds")), best_text(others)]
        row += [difference_text(others[0], ours) if others else "", f"{quoted[0].model}: {quoted[0]}" if quoted else ""]
        cells.append(row)
    heads = "set | metric | `gtx train` | its network alone | `--folds 5` | best other measured here"
    return "\n".join(markdown(f"{heads} | difference to the network | best published quoted", "llrrrlrl", cells))


def front(found: Mapping[str, Models]) -> str:
    """Write five rows for the README: `gtx train` beside the better variant of each rival; the best is bold."""
    cells = []
    for folder, name in FRONT_ROWS.items():
        models = found.get(folder, {})
        if "gtx-default" not in models:
            continue
        best = [ranked(models[n] for n in names if n in models)[:1] for names in FRONT_COLUMNS.values()]
        winner = ranked(row for rows in best for row in rows)[0]
        scores = [score_text(rows[0]) if rows else "" for rows in best]
        scores = [f"**{s}**" if rows and rows[0] is winner else s for rows, s in zip(best, scores, strict=True)]
        cells.append([f"{name}, {TITLES[winner.metric]} {'↑' if winner.metric in HIGHER else '↓'}", *scores])
    return "\n".join(markdown(f"set, score | {' | '.join(FRONT_COLUMNS)}", "l" + "r" * len(FRONT_COLUMNS), cells))


def section(folder: str, models: Models, data: bool) -> str:
    """Write a set: its table, and what each part is worth."""
    aim, metric, ours = AIMS.get(folder), next(iter(models.values())).metric, models.get("gtx")
    quoted = published(folder, metric)
    lines = [f"## {aim.title if aim else folder}", "", about(models), ""]
    if aim and aim.beside:
        lines += [f"A score known before the runs: {aim.beside}.", ""]
    cells = []
    whole = ranked(row for row in models.values() if row.model not in PARTS)
    for row in sorted(whole, key=lambda row: not row.ours):
        gap = difference_text(row, ours) if data and ours and row is not ours else ""
        first = row.results[0]
        seconds = [result["cpu_seconds"] for result in row.results if not result.get("resumed", True)]
        cells.append([title(row), score_text(row), row.counted, score_text(row, "val"), gap])
        cells[-1].append("" if first.get("parameters") is None else f"{first['parameters']:,}")
        cells[-1].append(f"{statistics.median(seconds):,.0f}" if seconds else "")
        cells[-1].append(f"`{command(row)}`" if command(row) else "")
    unit = f" ({aim.unit})" if aim and aim.unit else ""
    axis = f"test {TITLES[metric]}{unit}, {'higher' if metric in HIGHER else 'lower'} is better"
    heads = f"model | {axis} | over | validation | difference to gtx | parameters | CPU seconds a run | command"
    lines += markdown(heads, "lrlrrrrl", cells)
    lines += [*(f"| {one.model} | {one} | published | | | | | |" for one in quoted), ""]
    if quoted:
        lines.append(f"Source of the published scores: {SOURCES.get(folder, MUBEN)}; not measured here.\n")
    return "\n".join([*lines, *(ablation(models, ours, data) if ours else ())])


def ablation(models: Models, ours: ModelRuns, data: bool) -> list[str]:
    """Write the default model without a part at a time, each beside the same splits and seeds of the whole."""
    cells = []
    for row in (models[name] for name in PARTS if name in models):
        runs = {(result["split"], result["seed"]) for result in row.results}
        whole = ours._replace(results=[r for r in ours.results if (r["split"], r["seed"]) in runs])
        if len(whole.results) != len(runs):
            continue  # until the whole was run there too
        gap = difference_text(row, whole) if data else ""
        cells.append([title(row).removeprefix("gtx "), score_text(row), row.counted, score_text(row, "val")])
        cells[-1] += [score_text(whole), score_text(whole, "val"), gap, f"`{command(row)}`"]
    if not cells:
        return []
    heads = "gtx | test | over | validation | as it is | its validation | difference | command"
    explained = "Each line compares gtx with one change with unchanged gtx (*as it is*), on the same splits and seeds."
    return [explained, "", *markdown(heads, "lrlrrrrl", cells), ""]


def about(models: Models) -> str:
    """Write the numbers of rows, and how often the test rows were scored."""
    first = next((row.results[0] for row in models.values() if "rows" in row.results[0]), None)
    counts = ", ".join(f"{n:,} {part}" for part, n in first["rows"].items()) + " rows. " if first else ""
    looks = [(row.ours, sum(run.get("evaluations", 1) for run in row.results)) for row in models.values()]
    ours = sum(count for own, count in looks if own)
    settings = {str(run.get("settings")) for run in models["gtx"].results} if "gtx" in models else ()
    warning = " **Not all runs of gtx have the same settings.**" if len(settings) > 1 else ""
    return f"{counts}Test rows were scored {sum(count for _, count in looks)} times, {ours} of them for gtx.{warning}"


def rivals(models: Models) -> list[ModelRuns]:
    """Rank the models that are not gtx's; those alone that were run on every split that gtx was.

    Those that learn from validation rows too stand aside, since gtx's network does not.
    """
    needed = models["gtx"].splits if "gtx" in models else set()
    others = [row for row in models.values() if not row.ours and not row.model.endswith(WHOLE)]
    return ranked(row for row in others if row.splits >= needed)


def best_text(others: Sequence[ModelRuns]) -> str:
    """Write title and score of the first."""
    return f"{title(others[0])}: {score_text(others[0])}" if others else ""


def title(row: ModelRuns) -> str:
    """Write what a reader calls a model."""
    first = row.results[0]
    if "title" in first:  # of a recipe with settings of its own
        return first["title"]
    tuned_on = first.get("settings", {}).get("tuned_on")
    return MODELS[row.model].title + (f" on {tuned_on}" if tuned_on else "")


def command(row: ModelRuns) -> str:
    """Write the line that makes all runs of a row, and no others, unless some splits have fewer seeds so far."""
    each = [result.get("command", "") for result in row.results]
    whole = re.sub(r" --(splits|seeds)( \d+)+", "", each[0])
    for word in ("--splits", "--seeds"):
        numbers = {int(n) for one in each for n in re.findall(rf"{word} (\d+)", one)}
        if numbers:
            whole += f" {word} {' '.join(map(str, sorted(numbers)))}"
    return whole


def main() -> None:
    """Write the page and the tables."""
    if not published("scaffold-esol", "rmse"):
        print("published/scaffold_published.csv is not below $GTX_DATA: the page goes without it", file=sys.stderr)
    runs = predicted_runs(RESULTS)
    found = gather(run for run in runs if not reactions.is_run(run))
    replace_tables(RESULTS.parent / "RESULTS.md", results_page(found) + "\n" + reactions.page(runs))
    for page, begin, table in ((ROOT / "docs/results.md", BEGIN, short), (ROOT / "README.md", FRONT, front)):
        before, _, rest = page.read_text().partition(f"{begin}\n")
        page.write_text(f"{before}{begin}\n{table(found)}\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
