"""The pages of a report: one file each, which holds its pictures and its style and loads nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from gtx.base.files import flat, write_text
from gtx.data.rows import in_unit, plural
from gtx.report.context import NumericReport, RunReport
from gtx.report.gallery import Gallery
from gtx.report.kinds import number, score, sentence, signed, titles
from gtx.report.panels import (
    LOSS,
    MOST_PICTURED,
    data_panels,
    learning_curves,
    learning_panels,
    size_panel,
    target_panels,
)
from gtx.report.tables import (
    MOST_ROWS,
    cards,
    group_scores,
    headline,
    kind_scores,
    measured_values,
    outlines,
    rows,
    scaffold_kinds,
    score_tables,
    thresholds,
)
from gtx.tasks import NumericTask, Task, TaskList
from gtx.tasks.metrics import mean_scores

if TYPE_CHECKING:
    from gtx.training_data import Dataset

TEMPLATES = Path(__file__).parent


def render(
    path: str | os.PathLike[str],
    template: str,
    report: RunReport,
    gallery: Gallery,
    folder: Path = TEMPLATES,
    **more: Any,
) -> list[str]:
    """Write a page that needs nothing beside it, light or dark, from a template in a folder that extends `base.html`.

    Return a line for each reason why a picture of the gallery could not be drawn; the page has it in its place too.
    """
    environment = Environment(
        loader=FileSystemLoader([folder, TEMPLATES]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = (number, score, signed, in_unit, plural, sentence, quote)
    environment.filters |= {function.__name__: function for function in filters}
    html = environment.get_template(template).render(
        report=report,
        parts=report.parts,
        judged=report.parts[report.judged],
        missing=gallery.notes(),
        settings=[(name, _setting(value)) for name, value in flat(report.settings)],
        **{"molecules": {}, **more},
    )
    path = Path(path)
    write_text(path, html)
    return [f"{path.name}: {note}" for note in gallery.notes()]


def _setting(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def write_report(path: str | os.PathLike[str], report: NumericReport) -> list[str]:
    """Write the report of a run whose targets are numbers or classes, of molecules, atoms or bonds; see `render`."""
    gallery, lead, pictured = Gallery(), headline(report), min(len(report.targets), MOST_PICTURED)
    whole = report.level == "molecule"
    kinds = scaffold_kinds(report) if whole else np.empty(0, object)
    predictions = [_target(report, t, gallery, kinds, MOST_ROWS // pictured) for t in range(pictured)]
    shown = [panel for target in predictions for panel in target["panels"]]
    shown += [f'data-molecule="{row["key"]}"' for target in predictions for row in target["rows"]]
    worst = list(cards(report, pictured, gallery))
    data_panels(gallery, report)
    of_data = gallery.take_panels()
    learning_panels(gallery, report)
    return render(
        path,
        "numbers.html",
        report,
        gallery,
        several=len(report.targets) > 1,
        metrics=titles(report.task.metrics),
        headline=lead,
        scores=list(score_tables(report)),
        groups=group_scores(report, kinds, lead.rival) if whole else [],
        read=next((b["settings"]["inputs"] for b in report.baselines.values() if b.get("settings")), "Morgan counts"),
        predictions=predictions,
        worst=worst,
        measured=[measured_values(report, t) for t in range(len(report.targets))],
        data_panels=of_data,
        learning_panels=gallery.take_panels(),
        molecules=outlines(report, shown) if whole else {},
    )


def _target(report: NumericReport, t: int, gallery: Gallery, kinds: np.ndarray, most: int) -> dict[str, Any]:
    """Collect the content of the section of one target."""
    name, leading, whole = report.targets[t], next(iter(report.task.metrics)), report.level == "molecule"
    target_panels(gallery, report, t)
    return {
        "name": name,
        "unit": report.units.get(name, ""),
        "score": report.scores[report.judged]["per_target"][name][leading],
        "panels": gallery.take_panels(),
        "attainable": report.attainable_words(t),
        "thresholds": thresholds(report, t) if report.kind.has_thresholds else [],
        "kinds": list(kind_scores(report, t)),
        "rows": rows(report, kinds, t, most) if whole else [],
        "judged": len(report.measured(report.judged, t)),
    }


# --- The report of a run, by what its task is.


def write_run_report(task: Task, path: Path, dataset: Dataset, answers: Any, facts: RunReport) -> list[str]:
    """Write the report of a run; if several tasks are learned jointly, write a page for each.

    Return a line for each picture left out, and for each further page. `answers` are those for all molecules of the
    data set, `facts` the content that the reports of all tasks have in common.
    """
    if task.page is not None:
        return import_module(task.page).write_run_report(task, path, dataset, answers, facts)
    if isinstance(task, TaskList):
        return _pages(task, path, dataset, answers, facts)
    if not isinstance(task, NumericTask):
        return _plain(task, path, facts)
    level, store = task.objective.level, dataset.store
    if level.lists:
        content: dict[str, Any] = {
            "y": level.truth(store),
            "prediction": np.concatenate(answers.mean),
            "owner": level.owner(store).numpy()[:: level.rows_each],
            "kinds": level.kinds(store),
        }
    else:
        content = {"y": dataset.y, "prediction": answers.mean, "std": answers.std}
        content |= {"low": answers.low, "high": answers.high}
    return write_report(path, NumericReport(**vars(facts), **content, task=task))


def _plain(task: Task, path: Path, report: RunReport) -> list[str]:
    """Write the page of a task without a page of its own: scores, data and learning."""
    gallery = Gallery()
    size_panel(gallery, report)
    of_data = gallery.take_panels()
    learning_curves(gallery, report, LOSS | {"Validation score": {"val_score": "val"}})
    return render(
        path,
        "plain.html",
        report,
        gallery,
        targets=task.targets,
        metrics=titles(task.metrics),
        methods={"This model": report.scores, **report.baselines},
        shown=[part for part in reversed(report.parts) if len(report.split[part])],
        data_panels=of_data,
        learning_panels=gallery.take_panels(),
    )


def _pages(task: TaskList, path: Path, dataset: Dataset, answers: Any, facts: RunReport) -> list[str]:
    """Write a page for each task, the first to `path`, others as `report-atoms.html`; each names the others."""
    pages = [path, *(path.with_name(f"{path.stem}-{each.name}{path.suffix}") for each in task.tasks[1:])]
    others = [
        f"The report of its predictions of {each.level}s is {page.name}."
        for each, page in zip(task.tasks, pages, strict=True)
    ]
    lines = []
    for k, (each, own) in enumerate(zip(task.tasks, answers.by_task, strict=True)):
        footnotes = [*facts.footnotes, *others[:k], *others[k + 1 :]]
        own_facts = replace(_facts_of(each, facts), footnotes=footnotes)
        lines += write_run_report(each, pages[k], task.dataset_of(each, dataset), own, own_facts)
    return lines + [
        f"the report of {each.level}s: {page}" for each, page in zip(task.tasks[1:], pages[1:], strict=True)
    ]


def _facts_of(task: Task, facts: RunReport) -> RunReport:
    """Select the scores of one task's targets."""

    def of_task(method: Mapping[str, Any]) -> dict[str, Any]:
        own = {part: {name: scores["per_target"][name] for name in task.targets} for part, scores in method.items()}
        return {part: mean_scores(per_target, task.metrics) for part, per_target in own.items()}

    def defined(method: Mapping[str, Any]) -> bool:
        return any(v is not None for name in task.targets for v in method["train"]["per_target"][name].values())

    baselines = {name: of_task(method) for name, method in facts.baselines.items() if defined(method)}
    return replace(facts, scores=of_task(facts.scores), baselines=baselines)
