"""The foundation beside a start from scratch, set by set, as a page: `results/foundation.md`.

    python -m experiments.foundation.table

It reads the runs of `experiments/results`, and the sets for the measured values; `experiments/foundation/README.md` has
the commands that made the runs.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence

from scipy.stats import t

from experiments.archive import RESULTS
from experiments.results import WORDS, gather, ranked, score_text
from experiments.summary import HIGHER, Difference, ModelRuns, formatted, shared_splits, split_difference

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
DEFAULT = "gtx-mix"
"""What `gtx train` does without being told."""
START = {DEFAULT, "gtx-foundation-mix"}
"""Models that differ in their start alone."""
OWN = {
    "gtx": "network, scratch",
    "gtx-foundation": "network, foundation",
    "gtx-mix": "default, scratch",
    "gtx-foundation-mix": "default, foundation",
    "gtx-adapted-mix": "default, adapted",
}
BASELINES = {
    "gtx-kernel": "kernel",
    "gtx-tanimoto": "kernel without descriptors",
    **{
        f"{kind}-{inputs}{rows}": f"{words} on {inputs}{', of all rows' * bool(rows)}"
        for rows in ("", "-whole")
        for kind, words in (("ridge", "ridge"), ("forest", "forest"))
        for inputs in ("counts", "descriptors")
    },
}
"""Models that take seconds, by name in the archive."""
HEAD = """# The foundation beside a start from scratch

*Network* is `gtx train --blend no`, *default* mixes it with a kernel as `gtx train` does, *foundation* starts from
the pretrained model in the package, and *adapted* from that model after `gtx adapt` on the set's own molecules but
those of the test rows. When its share is settled, the kernel of a default model learns from the validation rows
too, which no published model does; of the baselines those *of all rows* do. A score is that of the test rows, the
mean ± the standard deviation over seeds; in brackets that of the validation rows, by which alone choices are made,
and the number of seeds, or of splits, where seeds are averaged first. The *difference* is foundation minus scratch,
of the default models where both were run, of the networks otherwise, on the same test molecules, with its 95%
interval (`experiments/summary.py`). Seeds and sets without a figure were not run.
An aim is reached by `gtx train`, which starts from scratch, or by the model of these five that the validation rows of
the set choose. `python -m experiments.foundation.table` makes this page anew.

"""


def page(found: dict[str, list[ModelRuns]]) -> str:
    """The page in Markdown.

    Args:
        found: all runs by set.
    """
    sets = {folder: {row.model: row for row in found[folder]} for folder in (*AIMS, *activity_sets(found))}
    return HEAD + "\n".join([*starts(sets), "", *deciding(sets), "", *averages(sets), "", *baselines(sets), ""])


def activity_sets(found: Iterable[str]) -> list[str]:
    """The folders of MoleculeACE."""
    return sorted(folder for folder in found if folder.startswith(ACTIVITY))


def starts(sets: dict[str, dict[str, ModelRuns]]) -> list[str]:
    """Scratch beside foundation, and what was to be reached."""
    lines = ["## Scores", ""]
    lines += [f"| set | score | {' | '.join(OWN.values())} | difference | aim | `gtx train` | chosen set by set |"]
    lines += ["|---|---|" + "--:|" * len(OWN) + "---|--:|---|---|"]
    for folder, models in sets.items():
        metric = next(iter(models.values())).metric
        own = [models.get(name) for name in OWN]
        goal = AIMS.get(folder)
        cells = [folder, f"{WORDS[metric]}, {'higher' if metric in HIGHER else 'lower'} is better"]
        cells += [score(row) for row in own]
        cells += [start_difference(models), "" if goal is None else f"{goal:g}"]
        cells += [verdict(models.get(DEFAULT), goal), choice(own, goal)]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def score(row: ModelRuns | None) -> str:
    """Test, then validation and over how many runs."""
    return "" if row is None else f"{score_text(row)} ({row.mean('val'):.3f}; {len(row.scores())})"


def start_difference(models: dict[str, ModelRuns]) -> str:
    """Foundation minus scratch, of the default models, or of the networks."""
    for one, other in (("gtx-foundation-mix", "gtx-mix"), ("gtx-foundation", "gtx")):
        if one in models and other in models and (splits := shared_splits(models[one], models[other])):
            return formatted(split_difference(splits, models[one]), models[other])
    return ""


def verdict(row: ModelRuns | None, goal: float | None) -> str:
    """Whether a model reached the aim."""
    if goal is None or row is None:
        return ""
    return "reached" if (row.mean() >= goal if row.metric in HIGHER else row.mean() <= goal) else "missed"


def choice(own: Sequence[ModelRuns | None], goal: float | None) -> str:
    """Whether the model that the validation rows of this set choose reached the aim, and which it is."""
    rows = [row for row in own if row is not None]
    if goal is None or not rows:
        return ""
    chosen = best(rows, lambda row: row.mean("val"))
    return f"{verdict(chosen, goal)} ({OWN[chosen.model]})"


def best(rows: Sequence[ModelRuns], value: Callable[[ModelRuns], float]) -> ModelRuns:
    """By a score."""
    return (max if rows[0].metric in HIGHER else min)(rows, key=value)


def deciding(sets: dict[str, dict[str, ModelRuns]]) -> list[str]:
    """How much smaller errors from the foundation are, over all sets, with a t interval: what chooses the default."""
    both = [(models["gtx-foundation-mix"], models[DEFAULT]) for models in sets.values() if set(models) >= START]
    if len(both) < 2:
        return []
    lines = ["## Which start is the default", ""]
    lines += [
        f"Of the default models, over the {len(both)} sets on which both were run: the mean logarithm of the error",
        "from the foundation over that from scratch, in per cent, with its 95% interval (t, sets). An error is an",
        "RMSE, or 1 - ROC-AUC. The foundation becomes the default when its errors of validation rows are smaller by",
        "more than the interval.",
        "",
        "| rows | difference | sets on which the foundation is ahead |",
        "|---|---|--:|",
    ]
    for part, words in (("val", "validation, which decide"), ("test", "test")):
        ratios = [math.log(error(one, part) / error(other, part)) for one, other in both]
        half = t.ppf(0.975, len(ratios) - 1) * statistics.stdev(ratios) / math.sqrt(len(ratios))
        mean = statistics.mean(ratios)
        ahead = sum(ratio < 0 for ratio in ratios)
        lines.append(f"| {words} | {mean:+.1%} [{mean - half:+.1%}, {mean + half:+.1%}] | {ahead} of {len(ratios)} |")
    return lines


def error(row: ModelRuns, part: str) -> float:
    """What is to be small."""
    return 1 - row.mean(part) if row.metric in HIGHER else row.mean(part)


def averages(sets: dict[str, dict[str, ModelRuns]]) -> list[str]:
    """Means over the sets of activities on which all of some models were run."""
    lines = [f"## Mean RMSE over sets of MoleculeACE (aim {ACTIVITY_AIM:g} over fifteen)", ""]
    lines += ["| sets | model | RMSE |", "|--:|---|--:|"]
    active = {folder: models for folder, models in sets.items() if folder.startswith(ACTIVITY)}
    groups = ({"gtx-foundation-mix"}, START)
    for shared in unique([folder for folder, models in active.items() if group <= set(models)] for group in groups):
        for name in (*OWN, *BASELINES):
            if shared and all(name in active[folder] for folder in shared):
                mean = statistics.mean(active[folder][name].mean() for folder in shared)
                lines.append(f"| {len(shared)} | {(OWN | BASELINES)[name]} | {mean:.3f} |")
    return [*lines, "", "[The published models on the same sets](moleculeace.md)."]


def unique(lists: Iterable[list[str]]) -> list[list[str]]:
    """Each list once."""
    return [list(one) for one in dict.fromkeys(map(tuple, lists))]


def baselines(sets: dict[str, dict[str, ModelRuns]]) -> list[str]:
    """What validation rows choose, minus the best baseline on the test rows: is it behind by more than luck?"""
    lines = ["## Beside the best of the baselines that take seconds", ""]
    lines += [
        "The baseline is the best on the test rows, which favours it; gtx's model is chosen by validation rows.",
        "",
    ]
    lines += ["| set | gtx | baseline | gtx minus baseline | |", "|---|---|---|---|---|"]
    for folder, models in sets.items():
        own = [models[name] for name in OWN if name in models]
        others = [row for row in ranked(list(models.values())) if row.model in BASELINES]
        if not own or not others:
            continue
        chosen, other = best(own, lambda row: row.mean("val")), others[0]
        gap = split_difference(shared_splits(chosen, other), chosen)
        cells = [folder, f"{OWN[chosen.model]}: {score_text(chosen)}", f"{BASELINES[other.model]}: {score_text(other)}"]
        lines.append(f"| {' | '.join([*cells, formatted(gap, other), standing(gap, chosen.metric)])} |")
    return lines


def standing(gap: Difference, metric: str) -> str:
    """In words."""
    low, high = (-gap.high, -gap.low) if metric in HIGHER else (gap.low, gap.high)
    return "ahead" if high < 0 else "behind" if low > 0 else "no difference that seeds and rows show"


if __name__ == "__main__":
    PAGE.write_text(page(gather(RESULTS)))
    print(PAGE)
    sys.exit(0)
