"""The headline of a page: one score of the model beside those of the baselines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from gtx.report.context import ENOUGH, NumericReport
from gtx.report.kinds import PARTS, TITLES, count, score, signed

if TYPE_CHECKING:
    from gtx.tasks import Metric

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
    predictor's. Classification: the mean ROC-AUC. Atoms and bonds: the score alone.
    """
    name, metric = next(iter(report.task.metrics.items()))
    if report.level != "molecule":
        several = f", mean of {len(report.targets)} targets" if len(report.targets) > 1 else ""
        return Headline(metric.title + several, score(report.scores[report.judged][name], name))
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
    ratios = []
    for t, target in enumerate(report.targets):
        error, of_mean = scores["per_target"][target][name], _score_of_mean(report, t, metric, rows)
        if error is not None and of_mean > 0:
            ratios.append(error / of_mean)
    return float(np.mean(ratios)) if ratios else None


def _score_of_mean(report: NumericReport, t: int, metric: Metric, rows: np.ndarray) -> float:
    y, train = (
        torch.from_numpy(values[~np.isnan(values)])
        for values in (report.y[rows, t], report.y[report.split["train"], t])
    )
    if metric.function is None or not len(y) or not len(train):
        return 0.0
    return float(metric.function(torch.full_like(y, float(train.mean())), y))


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
        judged = count(len(report.split[report.judged]), f"{part} molecule")
        return f"No verdict: {judged}; a comparison with the baselines needs {needed}."
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
        gap = f"{abs(1 - ours / theirs):.0%}" if metric.lower and theirs else f"{abs(ours - theirs):.3f}"
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
