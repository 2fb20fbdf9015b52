"""The pages of a report: for numbers and classes, for atoms and bonds."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from gtx.base.files import write_text
from gtx.report.context import AtomBondReport, NumericReport, RunReport
from gtx.report.headline import headline
from gtx.report.kinds import TITLES, count, flat, in_unit, number, score, sentence, signed, titles
from gtx.report.molecules import MOST_ROWS, Gallery, group_scores, hovered, rows, scaffold_kinds, worst
from gtx.report.panels import (
    MOST_PICTURED,
    curves,
    data_panels,
    learning_panels,
    level_panels,
    size_panel,
    target_panels,
    thresholds,
)
from gtx.tasks import NumericTask, Task, TaskList
from gtx.tasks.levels import lists_of
from gtx.tasks.metrics import mean_scores
from gtx.tasks.task import is_numeric

if TYPE_CHECKING:
    from gtx.training_data import Dataset


# --- A page as one file: it holds its pictures and its style, and loads nothing.

TEMPLATES = Path(__file__).parent


def render(
    path: str | os.PathLike[str],
    template: str,
    report: RunReport,
    gallery: Gallery,
    folder: Path = TEMPLATES,
    **more: Any,
) -> list[str]:
    """Write a page that needs nothing beside it, light or dark; its script adds comforts alone.

    Args:
        path: the file; it appears whole or not at all.
        template: extends `base.html`.
        report: the content.
        gallery: that has drawn the pictures.
        folder: of the template.
        more: what else the template asks for.

    Returns:
        The gallery's notes on what could not be drawn.
    """
    environment = Environment(
        loader=FileSystemLoader([folder, TEMPLATES]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": number, "score": score, "signed": signed, "in_unit": in_unit, "count": count}
    environment.filters["sentence"] = sentence
    html = environment.get_template(template).render(
        report=report,
        data=report.data,
        parts=report.parts,
        judged=report.parts[report.judged],
        missing=gallery.notes(),
        settings=list(flat(report.settings)),
        **{"molecules": {}, **more},
    )
    path = Path(path)
    write_text(path, html)
    return [f"{path.name}: {note}" for note in gallery.notes()]


# --- `report.html` of a model that predicts numbers.


def write_report(path: str | os.PathLike[str], report: NumericReport) -> list[str]:
    """Write the report of a run with numeric targets as one self-contained HTML file, in light and dark mode.

    Args:
        path: the file, usually `report.html`; it appears whole or not at all.
        report: the content.

    Returns:
        A line for each reason why a picture could not be drawn; the page has it too, in the picture's place.
    """
    gallery, lead, pictured = Gallery(), headline(report), min(len(report.targets), MOST_PICTURED)
    kinds = scaffold_kinds(report)
    predictions = [_target(report, t, gallery, kinds, MOST_ROWS // pictured) for t in range(pictured)]
    shown = [panel for target in predictions for panel in target["panels"]]
    shown += [f'data-molecule="{row["key"]}"' for target in predictions for row in target["rows"]]
    return render(
        path,
        "numbers.html",
        report,
        gallery,
        several=len(report.targets) > 1,
        metrics=titles(report.task.metrics),
        headline=lead,
        rival=TITLES.get(lead.rival) if lead.rival is not None else None,
        scores=list(_scores(report)),
        groups=group_scores(report, kinds, lead.rival),
        read=next((b["settings"]["inputs"] for b in report.baselines.values() if b.get("settings")), "Morgan counts"),
        predictions=predictions,
        worst=list(worst(report, pictured, gallery)),
        measured=[_measured(report, t) for t in range(len(report.targets))],
        data_panels=gallery.panels(data_panels(report)),
        learning_panels=gallery.panels(learning_panels(report)),
        molecules=hovered(report, shown),
    )


def _target(report: NumericReport, t: int, gallery: Gallery, kinds: np.ndarray, most: int) -> dict[str, Any]:
    """Collect the content of the section of one target."""
    name, leading = report.targets[t], next(iter(report.task.metrics))
    return {
        "name": name,
        "unit": report.units.get(name, ""),
        "score": report.scores[report.judged]["per_target"][name][leading],
        "panels": gallery.panels(target_panels(report, t)),
        "attainable": report.attainable_words(t),
        "thresholds": thresholds(report, t) if report.kind.has_thresholds else [],
        "rows": rows(report, kinds, t, most),
        "judged": len(report.measured(report.judged, t)),
    }


def _scores(report: NumericReport) -> Iterator[dict[str, Any]]:
    """By target: its unit, the scores of each method by part, the model's first, and who leads where it is judged."""
    methods = {"This model": report.scores}
    methods |= {f"Its {name} alone": scores for name, scores in report.alone.items()}
    methods |= {TITLES[name]: report.baselines[name] for name in reversed(TITLES) if name in report.baselines}
    kinds, several = report.task.metrics.values(), len(report.targets) > 1
    names: list[str | None] = [*report.targets]
    if several and not any(kind.in_units for kind in kinds):
        names = [None, *names]
    for name in names:  # None is all targets, which values in units of their own do not have
        table = {
            method: {part: scores[part]["per_target"][name] if name else scores[part] for part in report.parts}
            for method, scores in methods.items()
        }
        judged = {method: scores[report.judged] for method, scores in table.items()}
        best = {
            metric: _best([scores[metric] for scores in judged.values()], kind.lower)
            for metric, kind in report.task.metrics.items()
        }
        every = "All" if any(kind.summed for kind in kinds) else "Mean of"
        title = name or f"{every} {len(report.targets)} targets"
        yield {"target": title, "unit": report.units.get(name, "") if name else "", "methods": table, "best": best}


def _best(values: list[float | None], lower: bool) -> float | None:
    defined = [value for value in values if value is not None]
    return (min if lower else max)(defined, default=None)


def _measured(report: NumericReport, t: int) -> dict[str, Any]:
    """Summarise the measured values of a target: their number in each part, blanks, and their distribution."""
    target = report.targets[t]
    counts = {part: len(report.measured(part, t)) for part in report.parts}
    used = np.unique(np.concatenate([report.split[part] for part in report.parts]))
    values = report.y[used, t]
    values = values[~np.isnan(values)]
    summary = report.kind.summary(t, values)
    bounds = sum(report.scores[part]["per_target"][target].get("bounds", 0) for part in report.parts if part != "folds")
    blanks = int(np.isnan(report.y[:, t]).sum()) - bounds  # of all that could be read, in a part or not
    return {
        "target": target,
        "unit": report.units.get(target, ""),
        "counts": counts,
        "blanks": blanks,
        "summary": summary,
    }


# --- `report.html` of a model that predicts targets of atoms or bonds.

WORST = 12  # molecules drawn, shared by the targets
CURVES = [
    ("Loss", {"train_loss": "train", "val_loss": "val"}),
    ("Validation score, mean over targets", {"val_score": "val"}),
    ("Learning rate", {"lr": "train"}),
]


def write_atom_bond_report(path: str | os.PathLike[str], report: AtomBondReport) -> list[str]:
    """Write the report of a run with targets of atoms or bonds as one HTML file.

    Args:
        path: the file, usually `report.html`; it appears whole or not at all.
        report: the content.

    Returns:
        A line for each reason why a picture could not be drawn; the page has it too, in the picture's place.
    """
    gallery = Gallery()
    leading = next(iter(report.task.metrics))
    return render(
        path,
        "levels.html",
        report,
        gallery,
        metrics=titles(report.task.metrics),
        methods={"This model": report.scores} | {TITLES[name]: report.baselines[name] for name in report.baselines},
        leading=leading,
        counts=[{part: len(report.known(part, t)[0]) for part in report.parts} for t in range(len(report.targets))],
        predictions=[
            (name, gallery.panels(level_panels(report, t)), list(_by_kind(report, t)))
            for t, name in enumerate(report.targets[:MOST_PICTURED])
        ],
        worst=list(_worst(report, gallery)),
        data_panels=gallery.panels([size_panel(report)]),
        learning_panels=gallery.panels(curves(report, CURVES)),
    )


def _by_kind(report: AtomBondReport, t: int) -> Iterator[dict[str, Any]]:
    """Yield the scores of each kind of atom or bond, the most frequent first."""
    y, prediction, kinds = report.known(report.judged, t)
    found, at = np.unique(kinds.astype(str), return_inverse=True)
    sizes = np.bincount(at, minlength=len(found))
    for k in np.argsort(-sizes, kind="stable"):
        said = report.kind.goodness(t, y[at == k], prediction[at == k])
        yield {"kind": found[k], "count": int(sizes[k]), "said": said}


def _worst(report: AtomBondReport, gallery: Gallery) -> Iterator[dict[str, Any]]:
    """Yield the judged molecules with the largest error of an atom or bond, as many for each target."""
    for t, name in enumerate(report.targets[:MOST_PICTURED]):
        found = []
        for i in report.split[report.judged]:
            error = report.kind.errors(t, report.truth[i][:, t], report.predicted([i], t))
            if not np.isnan(error).all():
                at = int(np.nanargmax(np.abs(error)))
                found.append((abs(error[at]), error[at], i, at))
        for _, error, i, at in sorted(found, key=lambda one: -one[0])[: max(1, WORST // len(report.targets))]:
            row = report.row_number(i)
            yield {
                "target": name,
                "unit": report.units.get(name, ""),
                "row": row,
                "smiles": report.smiles[i],
                "place": f"{at}, {report.kinds[i][at]}",
                "picture": gallery.molecule(report.smiles[i], f"The molecule of row {row}"),
                "measured": report.kind.value_text(t, report.truth[i][at, t]),
                "predicted": report.kind.prediction_text(t, report.predicted([i], t)[at]),
                "error": float(error),
            }


# --- The report of a run, by what its task is.


def write_run_report(task: Task, path: Path, dataset: Dataset, answers: Any, facts: RunReport) -> list[str]:
    """Write the report of a run as `report.html`; if several tasks are learned jointly, write a page for each.

    Args:
        task: what was learned.
        path: path of the page.
        dataset: data set of the run.
        answers: predictions of the model for all molecules of the data set.
        facts: content that the reports of all tasks have in common.

    Returns:
        A line for each picture left out, and for each further page.
    """
    if task.page is not None:
        return import_module(task.page).write_run_report(task, path, dataset, answers, facts)
    if isinstance(task, TaskList):
        return _pages(task, path, dataset, answers, facts)
    if is_numeric(task):
        numbers = {"y": dataset.y, "prediction": answers.mean, "low": answers.low, "high": answers.high}
        return write_report(
            path, NumericReport(**vars(facts), **numbers, std=answers.std, task=task, targets=task.targets)
        )
    if isinstance(task, NumericTask):
        store, level = dataset.store, task.objective.level
        ptr = level.ptr(store).numpy() // level.rows_each
        parts = {
            "truth": lists_of(level.truth(store), ptr),
            "prediction": answers.mean,
            "kinds": lists_of(level.kinds(store), ptr),
        }
        return write_atom_bond_report(path, AtomBondReport(**vars(facts), **parts, task=task))
    return _plain(task, path, facts)


def _plain(task: Task, path: Path, report: RunReport) -> list[str]:
    """Write the page of a task without a page of its own: scores, data and learning."""
    gallery, metrics = Gallery(), titles(task.metrics)
    columns = [("Loss", {"train_loss": "train", "val_loss": "val"}), ("Validation score", {"val_score": "val"})]
    return render(
        path,
        "plain.html",
        report,
        gallery,
        targets=task.targets,
        metrics=metrics,
        methods={"This model": report.scores, **report.baselines},
        shown=[part for part in reversed(report.parts) if len(report.split[part])],
        data_panels=gallery.panels([size_panel(report)]),
        learning_panels=gallery.panels(curves(report, columns)),
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
        lines += write_run_report(each, pages[k], task.seen_by(each, dataset), own, own_facts)
    return lines + [
        f"the report of {each.level}s: {page}" for each, page in zip(task.tasks[1:], pages[1:], strict=True)
    ]


def _facts_of(task: Task, facts: RunReport) -> RunReport:
    """Select the scores of one task's targets."""

    def of(scores: Mapping[str, Any]) -> dict[str, Any]:
        return mean_scores({name: scores["per_target"][name] for name in task.targets}, task.metrics)

    def defined(method: Mapping[str, Any]) -> bool:
        return any(v is not None for name in task.targets for v in method["train"]["per_target"][name].values())

    scores = {where: of(found) for where, found in facts.scores.items()}
    methods = {name: each for name, each in facts.baselines.items() if defined(each)}
    baselines = {name: {where: of(found) for where, found in each.items()} for name, each in methods.items()}
    return replace(facts, scores=scores, baselines=baselines)
