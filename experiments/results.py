"""All results as one page, `experiments/RESULTS.md`, and the tables of `docs/results.md` and the README.

    python -m experiments.results

It reads the runs of `experiments/results`. Differences need the measured values of the test rows, so the sets are read,
or downloaded; `--without-data` leaves the differences out.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from experiments.archive import RESULTS, ROOT, predicted_runs
from experiments.goals import AIMS, MUBEN, SOURCES, Published, published
from experiments.learning import SETS, curve
from experiments.models import MODELS, PARTS, WHOLE
from experiments.summary import HIGHER, ModelRuns, difference_text, places, rows

WORDS = {"rmse": "RMSE", "mae": "MAE", "roc_auc": "ROC-AUC", "r2": "R²"}
INTRODUCTION = """# How accurate gtx is

Every row was measured on the same rows of the same splits, by the command beside it, with one thread, unless it is
marked as published. [runs.csv](results/runs.csv) has a line for each run: all its scores, the versions, the machine,
the commit (with a plus if files were not committed yet, mostly other results), and the SHA-256 of the data and of the
split. [predictions.parquet](results/predictions.parquet) has what each run predicted of the test rows. A score is the
mean ± the sample standard deviation over seeds, or over splits if there are several (seeds are averaged first). On
MAT's splits and the scaffold splits gtx is `gtx train --blend no`, the network alone with its defaults; nothing was
tuned for a set. The default of `gtx train` mixes the network with a kernel; where that was measured, it has a row of
its own; when its share is settled, the kernel learns from the validation rows too, as those models do that say so, and
validation scores are of before. For ZINC-12k and the sets in space gtx has models of their own, chosen on validation
rows. The *aims* were set before the runs; in space the aim is 0.8 of the error of SchNet.

*Difference* is the score minus the score of gtx on the same test molecules, with its 95% interval. On one split the
interval comes from 2,000 bootstrap resamples of the molecules, the same for both models; the scatter of seeds is in
the ± alone. Several splits share molecules, so there the interval is that of the corrected resampled t-test (Nadeau &
Bengio 2003). If an interval contains 0, the difference is not significant. Eight configurations of GINE and of GPS
were tried on the validation rows of one set for each task (FreeSolv, BACE); the best one is used on all sets, ZINC-12k
and xtb9 included. The learning rate of SchNet was tuned. chemprop has its defaults. An average of five needs its five
runs first, and its seconds are those of averaging alone. Only the first run computes RDKit's descriptors; later runs
read them. [TRIED.md](TRIED.md) says what was tried for the default model and why it misses some aims.
`python -m experiments.results` makes this page anew.
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
    "`gtx train`": ("gtx-mix",),
    "chemprop": ("chemprop", "chemprop-rdkit"),
    "GPS": ("gps",),
    "random forest": ("forest-counts", "forest-descriptors"),
}


def gather(results: Path) -> dict[str, list[ModelRuns]]:
    """All results by set."""
    found: dict[str, list[ModelRuns]] = {}
    for row in rows(predicted_runs(results)):
        found.setdefault(row.folder, []).append(row)
    return found


def results_page(results: Path, data: bool = True) -> str:
    """The page in Markdown.

    Args:
        results: the folder of all results.
        data: read the sets, for paired differences.
    """
    found = gather(results)
    order = [folder for folder in AIMS if folder in found] + sorted(set(found) - set(AIMS))
    parts = [INTRODUCTION, overview(found)]
    parts += [section(folder, found[folder], results, data) for folder in order]
    return "\n".join(parts)


def overview(found: Mapping[str, Sequence[ModelRuns]]) -> str:
    """What was to be reached beside what was, set by set."""
    lines = ["## Aims and results", ""]
    lines += [
        "| set | metric | gtx | aim | | five averaged | aim | | best other model |",
        "|---|---|--:|--:|---|--:|--:|---|---|",
    ]
    for folder, aim in AIMS.items():
        models = {row.model: row for row in found.get(folder, ())}
        cells = [aim.title, f"{WORDS[aim.metric]}{aim.unit and f', {aim.unit}'}"]
        single = aim.goal({name: row.mean() for name, row in models.items()})
        for model, goal in (("gtx", single), ("gtx-ensemble", aim.ensemble)):
            alone = " (1 run)" if model in models and model == "gtx" and models[model].counted == "1 run" else ""
            cells += [
                score_text(models.get(model)) + alone,
                "" if goal is None else f"{goal:.3g}",
                verdict(models.get(model), goal),
            ]
        others = rivals(models)
        cells.append(f"{title(others[0])}: {score_text(others[0])}" if others else "")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def short(found: Mapping[str, Sequence[ModelRuns]], data: bool = True) -> str:
    """A line per set that gtx was run on, for `docs/results.md`; arguments as `results_page`."""
    heads = [
        "set",
        "metric",
        "`gtx train`",
        "its network alone",
        "five of these averaged",
        "best other measured here",
        "difference to the network",
        "best published quoted",
    ]
    lines = [f"| {' | '.join(heads)} |", "|---|---|--:|--:|--:|---|--:|---|"]
    for folder, aim in AIMS.items():
        models = {row.model: row for row in found.get(folder, ())}
        if "gtx" not in models:
            continue
        better = "higher" if aim.metric in HIGHER else "lower"
        others = rivals(models)
        quoted = sorted(published(folder, aim.metric), key=lambda one: one.mean, reverse=better == "higher")
        mixed = models.get("gtx-mix")
        lines.append(
            f"| {aim.title} | {WORDS[aim.metric]}{aim.unit and f', {aim.unit}'}, {better} is better "
            f"| {f'{score_text(mixed)} ({mixed.counted})' if mixed else ''} "
            f"| {score_text(models['gtx'])} ({models['gtx'].counted}) | {score_text(models.get('gtx-ensemble'))} "
            f"| {f'{title(others[0])}: {score_text(others[0])}' if others else ''} "
            f"| {difference_text(others[0], models['gtx']) if others and data else ''} "
            f"| {f'{quoted[0].model}: {quote(quoted[0])}' if quoted else ''} |"
        )
    return "\n".join(lines)


def front(found: Mapping[str, Sequence[ModelRuns]]) -> str:
    """Five rows for the README: `gtx train` beside the better variant of each rival; the best of a row is bold."""
    lines = [f"| set, score | {' | '.join(FRONT_COLUMNS)} |", "|---|" + "--:|" * len(FRONT_COLUMNS)]
    for folder, name in FRONT_ROWS.items():
        models = {row.model: row for row in found.get(folder, ())}
        if "gtx-mix" not in models:
            continue
        best = [ranked([models[n] for n in names if n in models])[:1] for names in FRONT_COLUMNS.values()]
        winner = ranked([rows[0] for rows in best if rows])[0]
        cells = [score_text(rows[0]) if rows else "" for rows in best]
        cells = [f"**{cell}**" if rows and rows[0] is winner else cell for rows, cell in zip(best, cells, strict=True)]
        metric = models["gtx-mix"].metric
        sign = "↑" if metric in HIGHER else "↓"
        lines.append(f"| {name}, {WORDS[metric]} {sign} | {' | '.join(cells)} |")
    return "\n".join(lines)


def into(page: str, begin: str, table: str) -> str:
    """Replace the table behind the mark `begin`."""
    return re.sub(
        rf"(?s)({re.escape(begin)}\n).*?({re.escape(END)})", lambda found: found[1] + table + "\n" + found[2], page
    )


def section(folder: str, models: Sequence[ModelRuns], results: Path, data: bool) -> str:
    """One set: its table, its learning curves, and what each part is worth."""
    aim, metric = AIMS.get(folder), models[0].metric
    quoted = published(folder, metric)
    ours = next((row for row in models if row.model == "gtx"), None)
    parts = [row for row in models if row.model in PARTS]
    every = models
    models = [row for row in models if row not in parts]
    shown = sorted(ranked(models), key=lambda row: not row.ours)
    unit = f" ({aim.unit})" if aim and aim.unit else ""
    axis = f"test {WORDS[metric]}{unit}, {'higher' if metric in HIGHER else 'lower'} is better"
    lines = [f"## {aim.title if aim else folder}", "", about(every), ""]
    if aim and aim.beside:
        lines += [f"Known before: {aim.beside}.", ""]
    lines += [
        "| model | " + axis + " | over | validation | difference to gtx | parameters | CPU seconds a run | command |"
    ]
    lines += ["|---|--:|---|--:|--:|--:|--:|---|"]
    for row in shown:
        gap = difference_text(row, ours) if data and ours and row is not ours else ""
        cells = [title(row), score_text(row), row.counted, score_text(row, "val"), gap, parameters(row), seconds(row)]
        cells.append(f"`{command(row)}`" if command(row) else "")
        lines.append(f"| {' | '.join(cells)} |")
    lines += [f"| {one.model} | {quote(one)} | published | | | | | |" for one in quoted]
    lines += ["", f"Published rows: {SOURCES.get(folder, MUBEN)}; not measured here.\n"] if quoted else [""]
    lines += learnt(folder, metric, results)
    if parts and ours:
        lines += ablation(parts, ours, data)
    return "\n".join(lines)


def learnt(folder: str, metric: str, results: Path) -> list[str]:
    """The learning curves of a set, in numbers."""
    points = curve(folder, results) if folder in SETS else []
    if not points:
        return []
    titles = {model: MODELS[model].title for model in dict.fromkeys(point.model for point in points)}
    lines = ["The score on validation rows by the number of training rows, for three samples of each size:", ""]
    lines += ["| training molecules | " + " | ".join(titles.values()) + " |", "|--:|" + "--:|" * len(titles)]
    for size in sorted({point.rows for point in points}):
        at = {
            p.model: f"{statistics.mean(p.scores):.3f} ± {statistics.stdev(p.scores):.3f}"
            for p in points
            if p.rows == size
        }
        lines.append(f"| {size:,} | {' | '.join(at.get(model, '') for model in titles)} |")
    command = f"python -m experiments.learning --sets {folder} --models {' '.join(titles)}"
    return [*lines, "", f"`{command}`", ""]


def ablation(parts: Sequence[ModelRuns], ours: ModelRuns, data: bool) -> list[str]:
    """The default model less a part at a time, each beside the same splits and seeds of the whole."""
    rows = []
    for row in sorted(parts, key=lambda row: list(MODELS).index(row.model)):
        runs = {(result["split"], result["seed"]) for result in row.results}
        whole = ours._replace(results=[r for r in ours.results if (r["split"], r["seed"]) in runs])
        if len(whole.results) != len(runs):
            continue  # until the whole was run there too
        gap = difference_text(row, whole) if data else ""
        cells = [
            title(row).removeprefix("gtx "),
            score_text(row),
            row.counted,
            score_text(row, "val"),
            score_text(whole),
        ]
        rows.append(f"| {' | '.join([*cells, score_text(whole, 'val'), gap, f'`{command(row)}`'])} |")
    lines = ["gtx with one change at a time, and gtx as it is on the same splits and seeds.", ""]
    lines += ["| gtx | test | over | validation | as it is | its validation | difference | command |"]
    lines += ["|---|--:|---|--:|--:|--:|--:|---|"]
    return [*lines, *rows, ""] if rows else []


def about(models: Sequence[ModelRuns]) -> str:
    """Rows, and how often the test rows were scored."""
    first = next((row.results[0] for row in models if "rows" in row.results[0]), None)
    counts = ", ".join(f"{n:,} {part}" for part, n in first["rows"].items()) + " rows. " if first else ""
    looks = [(row.ours, sum(run.get("evaluations", 1) for run in row.results)) for row in models]
    ours = sum(count for own, count in looks if own)
    settings = {str(run.get("settings")) for row in models if row.model == "gtx" for run in row.results}
    warning = " **The runs of gtx were not all made with the same settings.**" if len(settings) > 1 else ""
    return f"{counts}Test rows were scored {sum(count for _, count in looks)} times, {ours} of them for gtx.{warning}"


def rivals(models: Mapping[str, ModelRuns]) -> list[ModelRuns]:
    """Models that are not gtx's, the best first; those alone that were run on every split that gtx was.

    Those that learn from validation rows too stand aside, since gtx's network does not.
    """

    def splits(row: ModelRuns) -> set[str]:
        return {result["split"] for result in row.results}

    needed = splits(models["gtx"]) if "gtx" in models else set()
    others = [row for row in models.values() if not row.ours and not row.model.endswith(WHOLE)]
    return ranked([row for row in others if splits(row) >= needed])


def ranked(models: Sequence[ModelRuns]) -> list[ModelRuns]:
    """The best first; a score that is undefined last."""

    def key(row: ModelRuns) -> tuple[bool, float]:
        mean = row.mean()
        return mean is None, 0.0 if mean is None else -mean if row.metric in HIGHER else mean

    return sorted(models, key=key)


def verdict(row: ModelRuns | None, goal: float | None) -> str:
    """Whether a goal was reached."""
    if row is None or goal is None or row.mean() is None:
        return ""
    return "reached" if (row.mean() >= goal if row.metric in HIGHER else row.mean() <= goal) else "missed"


def score_text(row: ModelRuns | None, part: str = "test") -> str:
    """Mean ± sd."""
    if row is None:
        return ""
    mean, sd = row.mean(part), row.sd(part)
    if mean is None:
        return "undefined"
    digits = places(mean)
    return f"{mean:.{digits}f}" + (f" ± {sd:.{digits}f}" if sd is not None else "")


def quote(one: Published) -> str:
    """A published score."""
    return f"{one.mean:.3f}" + (f" ± {one.sd:.3f}" if one.sd is not None else "")


def title(row: ModelRuns) -> str:
    """What a reader calls a model."""
    if "title" in row.results[0]:  # of a recipe with settings of its own
        return row.results[0]["title"]
    tuned_on = row.results[0].get("settings", {}).get("tuned_on")
    return MODELS[row.model].title + (f" on {tuned_on}" if tuned_on else "")


def parameters(row: ModelRuns) -> str:
    """How many, where that can be said."""
    found = row.results[0].get("parameters")
    return "" if found is None else f"{found:,}"


def seconds(row: ModelRuns) -> str:
    """The median over runs made in one go."""
    found = [result["cpu_seconds"] for result in row.results if not result.get("resumed", True)]
    return f"{statistics.median(found):,.0f}" if found else ""


def command(row: ModelRuns) -> str:
    """The line that makes all runs of a row, and no others, unless some splits have fewer seeds so far."""
    each = [result.get("command", "") for result in row.results]
    whole = re.sub(r" --(splits|seeds)( \d+)+", "", each[0])
    for word in ("--splits", "--seeds"):
        numbers = {int(n) for one in each for n in re.findall(rf"{word} (\d+)", one)}
        whole += f" {word} {' '.join(map(str, sorted(numbers)))}" if numbers else ""
    return whole


def main(words: Sequence[str] | None = None) -> int:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--results", type=Path, default=RESULTS, help="the folder of results; the page stands beside it"
    )
    parser.add_argument("--without-data", action="store_true", help="leave out paired differences")
    options = parser.parse_args(words)
    if not options.without_data and not published("scaffold-esol", "rmse"):
        print("published/scaffold_published.csv is not below $GTX_DATA: the page goes without it", file=sys.stderr)
    (options.results.parent / "RESULTS.md").write_text(results_page(options.results, not options.without_data))
    if options.results.resolve() == RESULTS:
        found = gather(options.results)
        short_table = short(found, not options.without_data)
        for page, begin, table in (
            (ROOT / "docs/results.md", BEGIN, short_table),
            (ROOT / "README.md", FRONT, front(found)),
        ):
            page.write_text(into(page.read_text(), begin, table))
    return 0


if __name__ == "__main__":
    sys.exit(main())
