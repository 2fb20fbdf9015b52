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

from experiments.models import MODELS, PARTS, WHOLE
from experiments.summary import HIGHER, TITLES, ModelRuns, difference_text, markdown, ranked, rows, score_text, verdict
from experiments.tables import RESULTS, ROOT, predicted_runs

INTRODUCTION = """# How accurate gtx is

All models in a table were measured on the same rows of the same splits, with one thread, by the command at the end of
the line; lines marked as published are quoted. [runs.csv](results/runs.csv) has a line for each run: scores, versions,
machine, commit (with a plus if some files, mostly other results, were not committed yet), and the SHA-256 of the data
and of the split. [predictions.parquet](results/predictions.parquet) has the predictions of each run for the test rows.
A score is the mean ± the sample standard deviation over seeds. For data sets with several splits, a score is the mean
over splits, after averaging the seeds of each split.

On MAT's splits and the scaffold splits, *gtx* is `gtx train --blend no`: the network alone with default settings. No
setting was tuned for a single data set. The default of `gtx train` averages the network with a kernel model, and has a
line of its own if it was measured. Once the weights of the average are chosen, the kernel model is refitted on training
and validation rows; validation scores are from before the refit. Other models that were refitted on validation rows are
marked. For ZINC-12k and the data sets in space, the networks of gtx were chosen on validation rows. The networks of
gtx were trained before they read the embedding of the foundation model. The *aims* were set before the runs; for data
sets in space, the aim is 0.8 of the error of SchNet.

*Difference* is the score of a model minus the score of gtx on the same test molecules, with a 95% interval. If the
interval contains 0, the difference is not significant. For one split, the interval comes from 2,000 bootstrap resamples
of the molecules, the same resamples for both models; only the ± shows the scatter between seeds. Several splits share
molecules, so their interval comes from the corrected resampled t-test (Nadeau & Bengio 2003).

GINE and GPS were tuned: eight configurations of each were tried on the validation rows of one data set for each task
(FreeSolv, BACE), and the best configuration is used on all data sets, including ZINC-12k and xtb9. For SchNet, the
learning rate was tuned. chemprop has its default settings. An average of five models needs the five runs first; the
seconds shown are those of averaging alone. Only the first run on a data set computes RDKit's descriptors; later runs
read the stored descriptors. The script of the data sets in space, `experiments/qm.py`, stands at commit 85c25a14.
[TRIED.md](TRIED.md) lists the changes that were tried for the default model, and reasons for the missed aims. The
command `python -m experiments.results` writes this page.
"""
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
    "without embeddings": ("gtx-mix",),
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

    def goal(self, scores: Mapping[str, float | None]) -> float | None:
        """Return `single`, or the share of another model's score, None if that was not measured."""
        if self.share is None:
            return self.single
        share, model = self.share
        return None if scores.get(model) is None else share * scores[model]


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
    """List the published scores of a set; none for other sets, or if the table of MUBen is not there.

    Args:
        folder: of the set's results, such as `scaffold-esol`.
        metric: `rmse`, `mae` or `roc_auc`.
        root: the folder of data sets, by default `$GTX_DATA`.
    """
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


def gather(results: Path) -> dict[str, list[ModelRuns]]:
    """Read all results by set."""
    found: dict[str, list[ModelRuns]] = {}
    for row in rows(predicted_runs(results)):
        found.setdefault(row.folder, []).append(row)
    return found


def results_page(results: Path, data: bool = True) -> str:
    """Write the page in Markdown.

    Args:
        results: folder of all results.
        data: read the sets, for paired differences.
    """
    found = gather(results)
    order = [folder for folder in AIMS if folder in found] + sorted(set(found) - set(AIMS))
    parts = [INTRODUCTION, overview(found)]
    parts += [section(folder, found[folder], data) for folder in order]
    return "\n".join(parts)


def by_name(found: Mapping[str, Sequence[ModelRuns]], folder: str) -> dict[str, ModelRuns]:
    """Collect the models of a set by name."""
    return {row.model: row for row in found.get(folder, ())}


def metric_text(aim: Aim) -> str:
    """Write metric and unit."""
    return f"{TITLES[aim.metric]}, {aim.unit}" if aim.unit else TITLES[aim.metric]


def overview(found: Mapping[str, Sequence[ModelRuns]]) -> str:
    """Write aims beside results, set by set."""
    cells = []
    for folder, aim in AIMS.items():
        models = by_name(found, folder)
        single = aim.goal({name: row.mean() for name, row in models.items()})
        cells.append([aim.title, metric_text(aim)])
        for model, goal in (("gtx", single), ("gtx-folds", aim.folds)):
            row = models.get(model)
            score = score_text(row)
            if row is not None and model == "gtx" and row.counted == "1 run":
                score += " (1 run)"
            cells[-1] += [score, "" if goal is None else f"{goal:.3g}", verdict(row, goal)]
        cells[-1].append(best_text(rivals(models)))
    heads = "set | metric | gtx | aim | | `--folds 5` | aim | | best other model"
    return "\n".join(["## Aims and results", "", *markdown(heads, "llrrlrrll", cells), ""])


def short(found: Mapping[str, Sequence[ModelRuns]], data: bool = True) -> str:
    """Write a line per set that gtx was run on, for `docs/results.md`; arguments as `results_page`."""
    cells = []
    for folder, aim in AIMS.items():
        models = by_name(found, folder)
        if "gtx" not in models:
            continue
        ours, mixed, others = models["gtx"], models.get("gtx-default"), rivals(models)
        higher = aim.metric in HIGHER
        quoted = sorted(published(folder, aim.metric), key=lambda one: one.mean, reverse=higher)
        row = [aim.title, f"{metric_text(aim)} {'↑' if higher else '↓'}"]
        row.append("" if mixed is None else f"{score_text(mixed)} ({mixed.counted})")
        row += [f"{score_text(ours)} ({ours.counted})", score_text(models.get("gtx-folds")), best_text(others)]
        row.append(difference_text(others[0], ours) if others and data else "")
        row.append(f"{quoted[0].model}: {quote(quoted[0])}" if quoted else "")
        cells.append(row)
    heads = "set | metric | `gtx train` | its network alone | `--folds 5` | best other measured here"
    return "\n".join(markdown(f"{heads} | difference to the network | best published quoted", "llrrrlrl", cells))


def front(found: Mapping[str, Sequence[ModelRuns]]) -> str:
    """Write five rows for the README: `gtx train` beside the better variant of each rival; the best is bold."""
    cells = []
    for folder, name in FRONT_ROWS.items():
        models = by_name(found, folder)
        if "gtx-default" not in models:
            continue
        best = [ranked(models[n] for n in names if n in models)[:1] for names in FRONT_COLUMNS.values()]
        winner = ranked(row for rows in best for row in rows)[0]
        scores = [score_text(rows[0]) if rows else "" for rows in best]
        scores = [f"**{s}**" if rows and rows[0] is winner else s for rows, s in zip(best, scores, strict=True)]
        metric = winner.metric
        cells.append([f"{name}, {TITLES[metric]} {'↑' if metric in HIGHER else '↓'}", *scores])
    return "\n".join(markdown(f"set, score | {' | '.join(FRONT_COLUMNS)}", "l" + "r" * len(FRONT_COLUMNS), cells))


def into(page: str, begin: str, table: str) -> str:
    """Replace the table behind the mark `begin`."""
    return re.sub(
        rf"(?s)({re.escape(begin)}\n).*?({re.escape(END)})", lambda found: found[1] + table + "\n" + found[2], page
    )


def section(folder: str, models: Sequence[ModelRuns], data: bool) -> str:
    """Write a set: its table, and what each part is worth."""
    aim, metric = AIMS.get(folder), models[0].metric
    quoted = published(folder, metric)
    ours = next((row for row in models if row.model == "gtx"), None)
    parts = [row for row in models if row.model in PARTS]
    lines = [f"## {aim.title if aim else folder}", "", about(models), ""]
    if aim and aim.beside:
        lines += [f"A score known before the runs: {aim.beside}.", ""]
    cells = []
    for row in sorted(ranked(row for row in models if row.model not in PARTS), key=lambda row: not row.ours):
        gap = difference_text(row, ours) if data and ours and row is not ours else ""
        cells.append([title(row), score_text(row), row.counted, score_text(row, "val"), gap, parameters(row)])
        cells[-1] += [seconds(row), f"`{command(row)}`" if command(row) else ""]
    unit = f" ({aim.unit})" if aim and aim.unit else ""
    axis = f"test {TITLES[metric]}{unit}, {'higher' if metric in HIGHER else 'lower'} is better"
    heads = f"model | {axis} | over | validation | difference to gtx | parameters | CPU seconds a run | command"
    lines += markdown(heads, "lrlrrrrl", cells)
    lines += [f"| {one.model} | {quote(one)} | published | | | | | |" for one in quoted]
    lines.append("")
    if quoted:
        lines.append(f"Source of the published scores: {SOURCES.get(folder, MUBEN)}; not measured here.\n")
    if parts and ours:
        lines += ablation(parts, ours, data)
    return "\n".join(lines)


def ablation(parts: Sequence[ModelRuns], ours: ModelRuns, data: bool) -> list[str]:
    """Write the default model without a part at a time, each beside the same splits and seeds of the whole."""
    cells = []
    for row in sorted(parts, key=lambda row: list(PARTS).index(row.model)):
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


def about(models: Sequence[ModelRuns]) -> str:
    """Write the numbers of rows, and how often the test rows were scored."""
    first = next((row.results[0] for row in models if "rows" in row.results[0]), None)
    counts = ", ".join(f"{n:,} {part}" for part, n in first["rows"].items()) + " rows. " if first else ""
    looks = [(row.ours, sum(run.get("evaluations", 1) for run in row.results)) for row in models]
    ours = sum(count for own, count in looks if own)
    settings = {str(run.get("settings")) for row in models if row.model == "gtx" for run in row.results}
    warning = " **Not all runs of gtx have the same settings.**" if len(settings) > 1 else ""
    return f"{counts}Test rows were scored {sum(count for _, count in looks)} times, {ours} of them for gtx.{warning}"


def rivals(models: Mapping[str, ModelRuns]) -> list[ModelRuns]:
    """Rank the models that are not gtx's; those alone that were run on every split that gtx was.

    Those that learn from validation rows too stand aside, since gtx's network does not.
    """

    def splits(row: ModelRuns) -> set[str]:
        return {result["split"] for result in row.results}

    needed = splits(models["gtx"]) if "gtx" in models else set()
    others = [row for row in models.values() if not row.ours and not row.model.endswith(WHOLE)]
    return ranked(row for row in others if splits(row) >= needed)


def best_text(others: Sequence[ModelRuns]) -> str:
    """Write title and score of the first."""
    return f"{title(others[0])}: {score_text(others[0])}" if others else ""


def quote(one: Published) -> str:
    """Write a published score."""
    return f"{one.mean:.3f}" if one.sd is None else f"{one.mean:.3f} ± {one.sd:.3f}"


def title(row: ModelRuns) -> str:
    """Write what a reader calls a model."""
    first = row.results[0]
    if "title" in first:  # of a recipe with settings of its own
        return first["title"]
    tuned_on = first.get("settings", {}).get("tuned_on")
    return MODELS[row.model].title + (f" on {tuned_on}" if tuned_on else "")


def parameters(row: ModelRuns) -> str:
    """Write how many parameters a model has, if that is known."""
    count = row.results[0].get("parameters")
    return "" if count is None else f"{count:,}"


def seconds(row: ModelRuns) -> str:
    """Write the median over runs made in one go."""
    found = [result["cpu_seconds"] for result in row.results if not result.get("resumed", True)]
    return f"{statistics.median(found):,.0f}" if found else ""


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
    (RESULTS.parent / "RESULTS.md").write_text(results_page(RESULTS))
    found = gather(RESULTS)
    for page, begin, table in (
        (ROOT / "docs/results.md", BEGIN, short(found)),
        (ROOT / "README.md", FRONT, front(found)),
    ):
        page.write_text(into(page.read_text(), begin, table))


if __name__ == "__main__":
    main()
