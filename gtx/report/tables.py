"""The headline, tables and cards of a report: scores by target and group, thresholds, and molecules one by one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.metrics import (
    balanced_accuracy_score,
    f1_score,
    precision_recall_curve,
    precision_score,
    recall_score,
    roc_curve,
)

from gtx.data.rows import plural
from gtx.data.similarity import NearestTrainingMolecules, find_nearest_training_molecules, sample_rows
from gtx.report.context import ENOUGH, NumericReport, RunReport
from gtx.report.gallery import Gallery
from gtx.report.kinds import PARTS, TITLES, number, score, signed

if TYPE_CHECKING:
    from gtx.tasks import Metric

# --- The headline: one score of the model beside those of the baselines.

RESAMPLES, EVALUATIONS = 500, 6_000
"""Draws of the judged molecules, fewer where there are many targets: the interval is then a little rougher."""
MOST_RESAMPLED = 20_000  # of more molecules the score hardly depends on which they are


class Bar(NamedTuple):
    """A score as a bar: whose, its value, its length as a share of the longest, and whether it is the model's."""

    name: str
    text: str
    length: float
    ours: bool


class Headline(NamedTuple):
    """The leading score."""

    label: str  # what the score is
    text: str  # the model's
    difference: str = ""  # to the best baseline, with a 95% interval by resampling the judged molecules
    bars: tuple[Bar, ...] = ()  # the model and the baselines, the best first
    verdict: str = ""  # whether the model beats the best baseline, in a sentence
    rival: str | None = None  # the name of the best baseline


def headline(report: NumericReport) -> Headline:
    """Regression: the RMSE; of several targets, whose units differ, the mean over targets of its ratio to the mean
    predictor's. Classification: the mean ROC-AUC. Atoms and bonds: the score alone, for several targets one without a
    unit.
    """
    name, metric = next(iter(report.task.metrics.items()))
    if report.level != "molecule":
        if metric.in_units and len(report.targets) > 1:
            plain = (each for each in report.task.metrics.items() if not each[1].in_units)
            name, metric = next(plain, (name, metric))
        return Headline(_label(report, metric), score(report.scores[report.judged][name], name))
    rows = report.split[report.judged]
    methods = {"model": report.scores, **report.baselines}
    values = {method: _leading_score(report, scores[report.judged], rows) for method, scores in methods.items()}
    defined = {method: value for method, value in values.items() if value is not None}
    order = sorted(defined, key=defined.__getitem__, reverse=not metric.lower)
    longest = max(defined.values(), default=1.0) or 1.0 if metric.lower else 1.0
    rival = next((method for method in order if method != "model"), None)
    span, difference = None, ""
    if rival is not None and "model" in defined and _enough(report):
        span = _span(report, rival)
        if span is not None:
            ends = " to ".join(signed(end) for end in span)
            gap = signed(defined["model"] - defined[rival])
            difference = f"{gap} to {TITLES[rival].lower()}, 95% interval {ends}"
    return Headline(
        label=_label(report, metric),
        text=score(values["model"], name),
        difference=difference,
        bars=tuple(
            Bar(TITLES.get(method, "This model"), score(value, name), value / longest, method == "model")
            for method, value in ((method, defined[method]) for method in order)
        ),
        verdict=_verdict(report, defined, rival, span),
        rival=rival,
    )


def _label(report: NumericReport, metric: Metric) -> str:
    number = len(report.targets)
    if number == 1:
        unit = report.units.get(report.targets[0], "")
        return metric.title + (f" in {unit}" if unit and metric.in_units else "")
    if metric.summed:
        return metric.title
    share = " as a share of the mean predictor’s" if metric.in_units else ""
    return f"{metric.title}{share}, mean of {number} targets"


def _leading_score(report: NumericReport, scores: Mapping[str, Any], rows: np.ndarray) -> float | None:
    """Combine the scores of all targets on some rows into the leading score."""
    name, metric = next(iter(report.task.metrics.items()))
    if len(report.targets) == 1 or not metric.in_units:
        return scores[name]
    train = np.ma.masked_invalid(report.y[report.split["train"]]).mean(0).filled(np.nan)
    of_mean = report.task.objective.evaluate(report.y[rows], np.tile(train, (len(rows), 1)), [name])
    ratios = []
    for target in report.targets:
        error, mean = scores["per_target"][target][name], of_mean["per_target"][target][name]
        if error is not None and mean:
            ratios.append(error / mean)
    return float(np.mean(ratios)) if ratios else None


def _enough(report: NumericReport) -> bool:
    """Tell whether enough values are measured (for classes, half as many outside the most frequent one) that a
    comparison means more than chance.
    """
    rows, least = report.split[report.judged], ENOUGH[report.judged]
    if not report.task.discrete:
        return (~np.isnan(report.y[rows]).all(1)).sum() >= least
    counts = [np.unique(y[~np.isnan(y)], return_counts=True)[1] for y in report.y[rows].T]
    return any(count.sum() >= least and count.sum() - count.max() >= least / 2 for count in counts if len(count))


def _verdict(
    report: NumericReport, defined: Mapping[str, float], rival: str | None, span: tuple[float, float] | None
) -> str:
    if not report.baselines:
        return ""
    if not _enough(report):
        part, least = PARTS[report.judged], ENOUGH[report.judged]
        needed = f"{least} or more measured {part} molecules"
        if report.task.discrete:
            needed += f", of each class {least // 2}"
        judged = plural(len(report.split[report.judged]), f"{part} molecule")
        return f"No verdict: {judged}; a comparison with the baselines needs {needed}."
    if rival is None and report.judged == "folds":
        return "No verdict: the baselines have no out-of-fold predictions to compare with."
    if rival is None or "model" not in defined:
        return "No verdict: too few values are measured for a comparison with the baselines."
    metric = next(iter(report.task.metrics.values()))
    ours, theirs, best = defined["model"], defined[rival], f"the best baseline ({TITLES[rival].lower()})"
    if ours == theirs:
        verdict = f"This model and {best} are equally good."
    elif span is None or span[0] <= 0 <= span[1]:
        verdict = f"This model and {best} cannot be distinguished: the difference may be chance."
    else:
        better = "better" if (ours < theirs) == metric.lower else "worse"
        gap = f"{number(100 * abs(1 - ours / theirs))}%" if metric.lower and theirs else number(abs(ours - theirs))
        side = "lower" if ours < theirs else "higher"
        verdict = f"This model is {better} than {best}: its {metric.title} is {gap} {side}."
    duels = list(_duels(report))
    if len(duels) > 1:
        won = sum(ours < theirs if metric.lower else ours > theirs for ours, theirs in duels)
        verdict += f" Target by target, it scores better than the best baseline for {won} of {len(duels)}."
    return verdict


def _duels(report: NumericReport) -> Iterator[tuple[float, float]]:
    """Per target where both are defined: the model's score and the best baseline's."""
    name, metric = next(iter(report.task.metrics.items()))
    for target in [] if metric.summed else report.targets:
        ours, *theirs = (
            scores[report.judged]["per_target"][target][name] for scores in (report.scores, *report.baselines.values())
        )
        theirs = [score for score in theirs if score is not None]
        if ours is not None and theirs:
            yield ours, (min if metric.lower else max)(theirs)


def _span(report: NumericReport, rival: str) -> tuple[float, float] | None:
    r"""Estimate a 95% interval of the model's leading score minus a baseline's, by the paired bootstrap.

    Every draw takes judged molecules with replacement and scores both on them, so that what is hard for both cancels:
    \(d^* = s(\hat y, y; R^*) - s(\hat y', y; R^*)\), of which the interval is the middle 95% (Efron & Tibshirani
    1993, chapter 13).
    """
    rows = report.split[report.judged]
    if rival not in report.rivals or len(rows) > MOST_RESAMPLED:
        return None
    leading = [next(iter(report.task.metrics))]
    random, differences = np.random.default_rng(0), []
    for _ in range(int(np.clip(EVALUATIONS / len(report.targets), 60, RESAMPLES))):
        draw = random.choice(rows, len(rows))
        ours, theirs = (
            _leading_score(report, report.task.objective.evaluate(report.y[draw], prediction[draw], leading), draw)
            for prediction in (report.prediction, report.rivals[rival])
        )
        if ours is not None and theirs is not None:
            differences.append(ours - theirs)
    if not differences:
        return None
    low, high = np.percentile(differences, [2.5, 97.5])
    return float(low), float(high)


# --- Scores of the methods, and the measured values.


def score_tables(report: NumericReport) -> Iterator[dict[str, Any]]:
    """By target: its unit, the scores of each method by part, the model's first, and who leads where it is judged."""
    methods = {"This model": report.scores}
    methods |= {f"Its {name} alone": scores for name, scores in report.alone.items()}
    methods |= {TITLES[name]: report.baselines[name] for name in reversed(TITLES) if name in report.baselines}
    metrics = report.task.metrics
    names: list[str | None] = [*report.targets]
    if len(names) > 1 and not any(metric.in_units for metric in metrics.values()):
        names = [None, *names]
    for name in names:  # None is all targets, which values in units of their own do not have
        table = {
            method: {part: scores[part]["per_target"][name] if name else scores[part] for part in report.parts}
            for method, scores in methods.items()
        }
        judged = [scores[report.judged] for scores in table.values()]
        best = {
            key: (min if metric.lower else max)((s[key] for s in judged if s[key] is not None), default=None)
            for key, metric in metrics.items()
        }
        every = "All" if any(metric.summed for metric in metrics.values()) else "Mean of"
        title = name or f"{every} {len(report.targets)} targets"
        yield {"target": title, "unit": report.units.get(name, "") if name else "", "methods": table, "best": best}


def measured_values(report: NumericReport, t: int) -> dict[str, Any]:
    """Summarise the measured values of a target: their number in each part, blanks, and their distribution."""
    target = report.targets[t]
    rows = {part: report.measured(part, t) for part in report.parts}
    values = report.y[np.unique(np.concatenate(list(rows.values()))), t]
    bounds = sum(report.scores[part]["per_target"][target].get("bounds", 0) for part in report.parts if part != "folds")
    return {
        "target": target,
        "unit": report.units.get(target, ""),
        "counts": {part: len(index) for part, index in rows.items()},
        "blanks": int(np.isnan(report.y[:, t]).sum()) - bounds,  # of all that could be read, in a part or not
        "summary": report.kind.summary(t, values),
    }


# --- Probabilities become classes at a threshold: the scores at several thresholds.

FIXED = (0.3, 0.5, 0.7)
METRICS: dict[str, Callable[..., float]] = {
    "precision": precision_score,
    "recall": recall_score,
    "F1": f1_score,
    "balanced accuracy": balanced_accuracy_score,
}


class Threshold(NamedTuple):
    """A threshold of one target, why it stands here, and the scores of the judged molecules by name."""

    why: str
    value: float
    scores: dict[str, float]


def thresholds(report: NumericReport, t: int) -> list[Threshold]:
    """List fixed thresholds, and the best for the validation molecules; none if one class alone is judged.

    A molecule belongs to class 1 if its probability is above the threshold.
    """

    def measured(part: str) -> tuple[np.ndarray, np.ndarray] | None:
        rows = report.measured(part, t)
        y, probability = report.y[rows, t], report.prediction[rows, t]
        return (y, probability) if len(np.unique(y)) == 2 and np.isfinite(probability).all() else None

    judged, held_out = measured(report.judged), measured(report.held_out)
    if judged is None:
        return []
    values = [("fixed", value) for value in FIXED] + ([] if held_out is None else list(_best_thresholds(*held_out)))
    y, probability = judged
    more = {"precision": {"zero_division": np.nan}}  # of no molecule in class 1
    return [
        Threshold(why, value, {k: float(of(y, probability > value, **more.get(k, {}))) for k, of in METRICS.items()})
        for why, value in values
    ]


def _best_thresholds(y: np.ndarray, probability: np.ndarray) -> Iterator[tuple[str, float]]:
    def below(level: float) -> float:
        """Halfway from a probability that is to be class 1 to the next lower one."""
        return float((level + probability[probability < level].max(initial=0.0)) / 2)

    precision, recall, levels = precision_recall_curve(y, probability)
    with np.errstate(invalid="ignore"):
        f1 = np.nan_to_num(2 * precision * recall / (precision + recall))
    yield "highest F1", below(levels[np.argmax(f1[:-1])])
    false, true, levels = roc_curve(y, probability)
    best = min(levels[np.argmax(true - false)], 1.0)  # infinite, where no molecule is best put into class 1
    yield "highest Youden index", below(best)


# --- How near the judged molecules are to those of training, and how good predictions of nearer and farther ones are.

BANDS = (0.3, 0.5, 0.7)
"""Similarities that part the bands."""


def scaffold_kinds(report: RunReport) -> np.ndarray:
    """Classify the compared molecules: "no ring", or whether a training molecule has the same scaffold."""
    from gtx.molecules import MoleculeError, murcko_scaffold

    def scaffold(row: int) -> str | None:
        try:
            return murcko_scaffold(report.smiles[row])
        except MoleculeError:
            return None

    known = {scaffold(row) for row in sample_rows(report.split, report.judged)[1]}
    named = {"": "no ring", None: "without a scaffold"}
    own = (scaffold(row) for row in report.nearest.rows)
    return np.array([named.get(one, "known scaffold" if one in known else "new scaffold") for one in own], object)


def groups(near: NearestTrainingMolecules, kinds: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Group the compared molecules by scaffold and by similarity to the nearest training molecule; empty groups are
    left out.
    """
    for kind in ("known scaffold", "new scaffold", "no ring", "without a scaffold"):
        if (rows := near.rows[kinds == kind]).size:
            yield kind, rows
    for low, high in pairwise((0.0, *BANDS, np.inf)):
        if (rows := near.rows[(low <= near.similarity) & (near.similarity < high)]).size:
            yield f"similarity {low} to {high}" if high < 1 else f"similarity {low} or more", rows


def group_scores(report: NumericReport, kinds: np.ndarray, best: str | None) -> list[dict[str, Any]]:
    """Score the model on each group, and the best baseline by its leading score, if its predictions are kept: texts by
    title. Of several targets, whose units differ, only scores that have a mean are shown.

    `kinds` are the `scaffold_kinds` of the compared molecules.
    """
    (leading, metric), *others = report.task.metrics.items()
    evaluate, rival = report.task.objective.evaluate, report.rivals.get(best or "")

    def scores(rows: np.ndarray) -> Iterator[tuple[str, str]]:
        own = evaluate(report.y[rows], report.prediction[rows])
        yield _label(report, metric), score(_leading_score(report, own, rows), leading)
        for name, other in others:
            if len(report.targets) == 1 or not other.in_units:
                yield _label(report, other), score(own[name], name)
        if best and rival is not None:
            theirs = evaluate(report.y[rows], rival[rows], [leading])
            title = f"{metric.title} of {TITLES[best].lower()}"
            yield title, score(_leading_score(report, theirs, rows), leading)

    return [
        {"name": name, "molecules": len(rows), "scores": dict(scores(rows))}
        for name, rows in groups(report.nearest, kinds)
    ]


def kind_scores(report: NumericReport, t: int) -> Iterator[dict[str, Any]]:
    """Yield the scores of each kind of atom or bond, the most frequent first."""
    rows = report.measured(report.judged, t)
    if report.kinds is None or not len(rows):
        return
    names, kind, sizes = np.unique(report.kinds[rows].astype(str), return_inverse=True, return_counts=True)
    for k in np.argsort(-sizes, kind="stable"):
        own = rows[kind == k]
        scores = report.kind.goodness(t, report.y[own, t], report.predicted(own, t))
        yield {"kind": names[k], "count": len(own), "scores": scores}


# --- The judged molecules one by one: cards of the largest errors, a table of rows, and what is shown on hover.

WORST = 12  # molecules drawn, shared by the targets
MOST_ROWS = 300  # of tables, likewise


def largest_errors(report: NumericReport, t: int, most: int) -> list[tuple[int, float]]:
    """Find the judged rows with the largest errors of a target, one of each molecule, with these signed errors."""
    rows = report.measured(report.judged, t)
    errors = report.kind.errors(t, report.y[rows, t], report.predicted(rows, t))
    order = np.argsort(-np.abs(errors), kind="stable")
    if report.owner is not None:
        order = order[np.sort(np.unique(report.owner[rows[order]], return_index=True)[1])]
    return [(int(rows[i]), float(errors[i])) for i in order[:most]]


def cards(report: NumericReport, pictured: int, gallery: Gallery) -> Iterator[dict[str, Any]]:
    """Yield the molecules with the largest errors, as many for each target, with their nearest training molecule."""
    each = max(1, WORST // len(report.targets))
    worst = [(t, *one) for t in range(pictured) for one in largest_errors(report, t, each)]
    nearest = neighbours(report, [row for _, row, _ in worst]) if report.owner is None else {}
    for t, row, error in worst:
        card = _texts(report, t, row) | {"target": report.targets[t], "unit": report.units.get(report.targets[t], "")}
        card["picture"] = gallery.molecule(card["smiles"], f"The molecule of row {card['row']}")
        if report.owner is not None and report.kinds is not None:
            place = row - int(np.searchsorted(report.owner, report.owner[row]))
            card["place"] = f"{place}, {report.kinds[row]}"
        elif row in nearest:
            other, similarity = nearest[row]
            value, label = report.y[other, t], f"The training molecule nearest to that of row {card['row']}"
            card["near"] = {
                "row": report.row_numbers[other],
                "similarity": similarity,
                "smiles": report.smiles[other],
                "measured": "–" if np.isnan(value) else report.kind.value_text(t, value),
                "picture": gallery.molecule(report.smiles[other], label),
            }
        yield card | {"error": error}


def neighbours(report: RunReport, rows: list[int]) -> dict[int, tuple[int, float]]:
    """Find the nearest training molecule of some scored molecules, and its similarity, by number."""
    parts, missing = [report.nearest], np.setdiff1d(rows, report.nearest.rows).astype(int)
    if len(missing):
        parts.append(find_nearest_training_molecules(report.store, report.split, report.judged, missing))
    return {
        row: (neighbour, similarity)
        for near in parts
        for row, neighbour, similarity in zip(near.rows, near.neighbour, near.similarity, strict=True)
    }


def rows(report: NumericReport, kinds: np.ndarray, t: int, most: int) -> list[dict[str, Any]]:
    """List at most so many judged molecules for a table, the largest errors first; `kinds` as for `group_scores`."""
    compared = dict(zip(report.nearest.rows.tolist(), zip(report.nearest.similarity, kinds, strict=True), strict=True))
    shown = []
    for row, error in largest_errors(report, t, most):
        similarity, scaffold = compared.get(row, (None, "–"))
        shown.append(_texts(report, t, row) | {"error": error, "similarity": similarity, "scaffold": scaffold})
    return shown


def _texts(report: NumericReport, t: int, row: int) -> dict[str, Any]:
    molecule = row if report.owner is None else int(report.owner[row])
    return {
        "key": f"{row}.{t}",
        "row": report.row_numbers[molecule],
        "smiles": report.smiles[molecule],
        "measured": report.kind.value_text(t, report.y[row, t]),
        "predicted": report.kind.prediction_text(t, report.predicted(np.array([row]), t)[0]),
    }


def outlines(report: NumericReport, html: Iterable[str]) -> dict[str, dict[str, Any]]:
    """By key, `molecule.target`, what the page shows of each molecule that stands in its pictures and tables: a few
    words, and what a small picture needs (`gtx.molecules.sketch.outline`).
    """
    from gtx.molecules import MoleculeError
    from gtx.molecules.sketch import outline

    molecules: dict[str, Any] = {}
    for key in dict.fromkeys(key for part in html for key in re.findall(r'data-molecule="([\d.]+)"', part)):
        row, t = map(int, key.split("."))
        texts = _texts(report, t, row)
        one = molecules.setdefault(str(row), {"smiles": texts["smiles"], "row": int(texts["row"]), "said": {}})
        one["said"][t] = f"measured {texts['measured']}, predicted {texts['predicted']}"
        if "atoms" not in one:
            try:
                one["atoms"], one["bonds"] = outline(texts["smiles"])
            except MoleculeError:
                one["atoms"], one["bonds"] = [], []
    return molecules
