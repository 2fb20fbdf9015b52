"""Scores, as a table on the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import wrap
from typing import Any

from rich.console import Console
from rich.table import Table

from gtx.cli.printing import cell
from gtx.tasks import Metric

METHODS = {
    "mean": "mean of training rows",
    "ridge": "ridge",
    "logistic": "logistic",
    "poisson": "Poisson",
    "random_forest": "random forest",
    "kernel": "kernel ridge",
    "alike": "mean of those alike",
}


def score_table(
    metrics: Mapping[str, Any], kinds: Mapping[str, Metric], units: Mapping[str, str] | None = None
) -> None:
    """Print test scores of the model beside the baselines, target by target, the best in bold.

    Args:
        metrics: as in `metrics.json`.
        kinds: the metrics of the task, by name.
        units: of targets, by name.
    """
    part = next(
        (
            p
            for p in ("test", "val", "train")
            if any(metrics[p][name] is not None for name in kinds if name in metrics[p])
        ),
        "train",
    )
    if part != "test":
        bounds = sum(scores.get("bounds", 0) for scores in metrics["test"]["per_target"].values())
        why = f"all {bounds:,} test values are bounds, and scores are of exact values" if bounds else "no test values"
        Console().print(f"no test scores: {why}", highlight=False, soft_wrap=True)
    rows = {"gtx": metrics[part]} | {METHODS.get(k, k): v[part] for k, v in metrics.get("baseline", {}).items()}
    names = list(metrics[part]["per_target"])
    shown = [name for name in kinds if name in metrics[part]]
    table = Table(title=f"{part} scores")
    table.add_column("target", overflow="fold")
    table.add_column("metric")
    for method in rows:
        table.add_column("\n".join(wrap(method, 8)), justify="right", no_wrap=True)  # names give way, numbers do not
    summed = [name for name in shown if kinds[name].summed]
    for target in [*names, *([None] if summed and len(names) > 1 else [])]:  # None is all of them
        own = summed if target is None else [name for name in shown if name in metrics[part]["per_target"][target]]
        for metric in own:
            scores = [(row if target is None else row["per_target"][target])[metric] for row in rows.values()]
            defined = [score for score in scores if score is not None]
            best = (min if kinds[metric].lower else max)(defined, default=None)
            unit = (units or {}).get(target, "") if kinds[metric].in_units else ""
            cells = ["-" if s is None else f"[bold]{s:.4g}[/]" if s == best else f"{s:.4g}" for s in scores]
            table.add_row(
                cell(target or "all") if metric == own[0] else "",
                cell(f"{metric} {unit}".strip()),
                *cells,
            )
        if kept := metrics[part]["per_target"].get(target, {}).get("bounds"):
            share = metrics[part]["per_target"][target]["bounds_kept"]
            table.add_row("", f"{kept} bounds kept", f"{share:.0%}", *[""] * (len(rows) - 1))
        table.add_section()
    Console().print(table)


def metric_lines(metrics: Mapping[str, Any]) -> list[str]:
    """Scores of a table that held the target, a line per target."""
    return [
        f"{target}: " + ", ".join(f"{name} {value:.4g}" for name, value in scores.items() if value is not None)
        for target, scores in metrics["per_target"].items()
    ]
