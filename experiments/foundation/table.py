"""The foundation beside a start from scratch, set by set, as a page: `results/foundation.md`.

    python -m experiments.foundation.table

It reads the runs of `experiments/results`, and the sets for the measured values; `experiments/foundation/README.md` has
the commands that made the runs.
"""

from __future__ import annotations

import math

from experiments.summary import (
    HIGHER,
    TITLES,
    ModelRuns,
    Models,
    difference_text,
    gather,
    markdown,
    mean_log_ratio,
    ranked,
    replace_tables,
    score_text,
    verdict,
)
from experiments.tables import RESULTS, predicted_runs

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
START, SCRATCH = "gtx-from-foundation", "gtx-default"
"""Models that differ in their start alone; the second is that of `gtx train` by default."""
OWN = {
    "gtx": "network",
    "gtx-mix": "blend",
    SCRATCH: "`gtx train`",
    START: "`gtx train --from foundation`",
}
DECIDING = """\
The mean logarithm of the error with a network that starts from the foundation over that of the same model with a
network from scratch, over the sets on which both were run, with its 95% interval (t, sets). An error is an RMSE, or
1 - ROC-AUC. The network starts from the foundation by default when its errors of validation rows are smaller by
more than the interval.
"""


def page(found: dict[str, Models]) -> str:
    """Write the tables in Markdown, of all runs by set."""
    sets = {folder: found[folder] for folder in (*AIMS, *sorted(f for f in found if f.startswith("moleculeace-")))}
    return "\n".join([*starts(sets), "", *deciding(sets), ""])


def starts(sets: dict[str, Models]) -> list[str]:
    """Write scratch beside foundation, and the aims."""
    cells = []
    for folder, models in sets.items():
        metric, goal = next(iter(models.values())).metric, AIMS.get(folder)
        row = [folder, f"{TITLES[metric]}, {'higher' if metric in HIGHER else 'lower'} is better"]
        row += [score(models.get(name)) for name in OWN]
        row.append(difference_text(models[START], models[SCRATCH]) if {START, SCRATCH} <= set(models) else "")
        row += ["" if goal is None else f"{goal:g}", verdict(models.get(SCRATCH), goal)]
        best = ranked((models[name] for name in OWN if name in models), "val")[:1]  # chosen by validation rows
        row.append(f"{verdict(best[0], goal)} ({OWN[best[0].model]})" if best and goal is not None else "")
        cells.append(row)
    heads = f"set | score | {' | '.join(OWN.values())} | difference | aim | `gtx train` | chosen set by set"
    return ["## Scores", "", *markdown(heads, "ll" + "r" * len(OWN) + "lrll", cells)]


def score(row: ModelRuns | None) -> str:
    """Write test, then validation and over how many runs."""
    return "" if row is None else f"{score_text(row)} ({row.mean('val'):.3f}; {len(row.scores())})"


def deciding(sets: dict[str, Models]) -> list[str]:
    """Write how much smaller errors are with a pretrained start, over all sets, which chooses the default."""
    cells = []
    both = [(models[START], models[SCRATCH]) for models in sets.values() if {START, SCRATCH} <= set(models)]
    if len(both) > 1:
        for part, words in (("val", "validation, which decide"), ("test", "test")):
            ratios = [math.log(one.error(part) / other.error(part)) for one, other in both]
            cells.append([words, mean_log_ratio(ratios)])
    table = markdown("rows | difference | sets on which it is ahead", "llr", cells)
    return ["## Which start is the default", "", DECIDING, *table]


if __name__ == "__main__":
    replace_tables(PAGE, page(gather(predicted_runs(RESULTS))))
    print(PAGE)
