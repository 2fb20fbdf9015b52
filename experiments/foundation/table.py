"""The foundation beside a start from scratch, set by set, as a page: `results/foundation.md`.

    python -m experiments.foundation.table

It reads the runs of `experiments/results`, and the sets for the measured values; `experiments/foundation/README.md` has
the commands that made the runs.
"""

from __future__ import annotations

import math
import statistics

from experiments.results import gather
from experiments.summary import (
    HIGHER,
    TITLES,
    Difference,
    ModelRuns,
    difference_text,
    formatted,
    markdown,
    mean_log_ratio,
    model_difference,
    ranked,
    score_text,
    verdict,
)
from experiments.tables import RESULTS

PAGE = RESULTS / "foundation.md"
AIMS = {
    "scaffold-bace": 0.85,
    "scaffold-bbbp": 0.74,
    "scaffold-tox21": 0.79,
    "scaffold-freesolv": 1.75,
    "scaffold-esol": 0.75,
    "mat-freesolv": 0.225,
    "mat-esol": 0.24,
}
"""Set before the foundation was trained, for one model; by folder of results."""
ACTIVITY, ACTIVITY_AIM = "moleculeace-", 0.63
START, SCRATCH = "gtx-from-foundation", "gtx-default"
"""Models that differ in their start alone; the second is that of `gtx train` by default."""
OWN = {
    "gtx": "network",
    "gtx-mix": "blend",
    SCRATCH: "`gtx train`",
    START: "`gtx train --from foundation`",
}
BASELINES = {"gtx-kernel": "kernel", "gtx-tanimoto": "kernel without descriptors"}
for rows, words in (("", ""), ("-whole", ", of all rows")):
    for kind in ("ridge", "forest"):
        for inputs in ("counts", "descriptors"):
            BASELINES[f"{kind}-{inputs}{rows}"] = f"{kind} on {inputs}{words}"
"""Models that take seconds."""
HEAD = """# The foundation beside a start from scratch

*Network* is `gtx train --blend no`, *blend* averages the network with a kernel that compares substructures and
descriptors. *`gtx train`* is the default, a network from scratch and a kernel that compares the embeddings of the
foundation too; in the last column the network also starts from the foundation. When its share is settled, the kernel
of a blend learns from the validation rows too, which no published model does; of the baselines those *of all rows* do.
A score is that of the test rows, the mean ± the standard deviation over seeds; in brackets that of the validation rows,
by which alone choices are made, and the number of seeds, or of splits, where seeds are averaged first. The *difference*
is the last column minus the one before, on the same test molecules, with its 95% interval
(`experiments/summary.py`). Seeds and sets without a figure were not run.
An aim is reached by `gtx train`, or by the model of these that the validation rows of
the set choose. `python -m experiments.foundation.table` makes this page anew.

"""


Sets = dict[str, dict[str, ModelRuns]]
"""Models by folder of the set, and by name."""


def page(found: dict[str, list[ModelRuns]]) -> str:
    """Write the page in Markdown, of all runs by set."""
    active = sorted(folder for folder in found if folder.startswith(ACTIVITY))
    sets = {folder: {row.model: row for row in found[folder]} for folder in (*AIMS, *active)}
    return HEAD + "\n".join([*starts(sets), "", *deciding(sets), "", *averages(sets), "", *baselines(sets), ""])


def starts(sets: Sets) -> list[str]:
    """Write scratch beside foundation, and the aims."""
    cells = []
    for folder, models in sets.items():
        metric, goal = next(iter(models.values())).metric, AIMS.get(folder)
        row = [folder, f"{TITLES[metric]}, {'higher' if metric in HIGHER else 'lower'} is better"]
        row += [score(models.get(name)) for name in OWN]
        row += [start_difference(models), "" if goal is None else f"{goal:g}", verdict(models.get(SCRATCH), goal)]
        best = chosen(models)
        row.append("" if goal is None or best is None else f"{verdict(best, goal)} ({OWN[best.model]})")
        cells.append(row)
    heads = f"set | score | {' | '.join(OWN.values())} | difference | aim | `gtx train` | chosen set by set"
    return ["## Scores", "", *markdown(heads, "ll" + "r" * len(OWN) + "lrll", cells)]


def score(row: ModelRuns | None) -> str:
    """Write test, then validation and over how many runs."""
    return "" if row is None else f"{score_text(row)} ({row.mean('val'):.3f}; {len(row.scores())})"


def start_difference(models: dict[str, ModelRuns]) -> str:
    """Write foundation minus scratch."""
    return difference_text(models[START], models[SCRATCH]) if {START, SCRATCH} <= set(models) else ""


def chosen(models: dict[str, ModelRuns]) -> ModelRuns | None:
    """Choose one of gtx's models by the validation rows of the set."""
    rows = ranked((models[name] for name in OWN if name in models), "val")
    return rows[0] if rows else None


def deciding(sets: Sets) -> list[str]:
    """Write how much smaller errors are with a pretrained start, over all sets, which chooses the default."""
    cells = []
    both = [(models[START], models[SCRATCH]) for models in sets.values() if {START, SCRATCH} <= set(models)]
    if len(both) > 1:
        for part, words in (("val", "validation, which decide"), ("test", "test")):
            ratios = [math.log(error(one, part) / error(other, part)) for one, other in both]
            cells.append([words, mean_log_ratio(ratios)])
    explained = """\
The mean logarithm of the error with a network that starts from the foundation over that of the same model with a
network from scratch, over the sets on which both were run, with its 95% interval (t, sets). An error is an RMSE, or
1 - ROC-AUC. The network starts from the foundation by default when its errors of validation rows are smaller by
more than the interval.
"""
    table = markdown("rows | difference | sets on which it is ahead", "llr", cells)
    return ["## Which start is the default", "", explained, *table]


def error(row: ModelRuns, part: str) -> float:
    """Turn a score into what is to be small."""
    return 1 - row.mean(part) if row.metric in HIGHER else row.mean(part)


def averages(sets: Sets) -> list[str]:
    """Write means over the sets of activities on which all of some models were run."""
    active = {folder: models for folder, models in sets.items() if folder.startswith(ACTIVITY)}
    folders = [folder for folder, models in active.items() if {START, SCRATCH} <= set(models)]
    cells = []
    for name, words in (OWN | BASELINES).items():
        if folders and all(name in active[folder] for folder in folders):
            mean = statistics.mean(active[folder][name].mean() for folder in folders)
            cells.append([str(len(folders)), words, f"{mean:.3f}"])
    table = markdown("sets | model | RMSE", "rlr", cells)
    title = f"## Mean RMSE over sets of MoleculeACE (aim {ACTIVITY_AIM:g} over fifteen)"
    return [title, "", *table, "", "[The published models on the same sets](moleculeace.md)."]


def baselines(sets: Sets) -> list[str]:
    """Write the difference of the model that validation rows choose to the best baseline on the test rows."""
    cells = []
    for folder, models in sets.items():
        best, others = chosen(models), ranked(row for row in models.values() if row.model in BASELINES)
        if best is None or not others:
            continue
        other, gap = others[0], model_difference(best, others[0])
        row = [folder, f"{OWN[best.model]}: {score_text(best)}", f"{BASELINES[other.model]}: {score_text(other)}"]
        cells.append([*row, formatted(gap, other), standing(gap, best.metric)])
    return [
        "## Beside the best of the baselines that take seconds",
        "",
        "The baseline is the best on the test rows, which favours it; gtx's model is chosen by validation rows.",
        "",
        *markdown("set | gtx | baseline | gtx minus baseline |", "lllll", cells),
    ]


def standing(gap: Difference, metric: str) -> str:
    """Write a difference in words."""
    low, high = (-gap.high, -gap.low) if metric in HIGHER else (gap.low, gap.high)
    return "ahead" if high < 0 else "behind" if low > 0 else "no difference that seeds and rows show"


if __name__ == "__main__":
    PAGE.write_text(page(gather(RESULTS)))
    print(PAGE)
