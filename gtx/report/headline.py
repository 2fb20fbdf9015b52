"""The headline of a page: one score of the model beside those of the baselines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from gtx.report.context import Report
from gtx.report.words import TITLES, score

if TYPE_CHECKING:
    from gtx.tasks import Metric

RESAMPLES = 300
MOST_RESAMPLED = 20_000  # of more molecules the score hardly depends on which they are


@dataclass(frozen=True)
class Bar:
    """A score as a bar: whose, its value, its length as a share of the longest, and whether it is the model's."""

    name: str
    text: str
    length: float
    ours: bool


@dataclass(frozen=True)
class Headline:
    """The leading score.

    Attributes:
        label: what the score is.
        text: the model's.
        span: a 95% interval of the score by resampling the judged molecules, or "".
        bars: the model and the baselines, the best first.
        verdict: whether the model beats the baselines, in a sentence; "" without baselines.
    """

    label: str
    text: str
    span: str
    bars: list[Bar]
    verdict: str


def headline(report: Report) -> Headline:
    """Regression: the RMSE; of several targets, whose units differ, the mean over targets of its ratio to the mean
    predictor's. Classification: the mean ROC-AUC."""
    metric = next(iter(report.task.metrics))
    all_scores = {"model": report.scores, **report.baselines}
    found = {name: _leading(scores, report) for name, scores in all_scores.items()}
    higher = not report.task.metrics[metric].lower
    order = sorted((name for name in found if found[name] is not None), key=lambda name: found[name], reverse=higher)
    longest = 1.0 if higher else max((found[name] for name in order), default=1.0) or 1.0
    bars = [
        Bar(TITLES.get(name, "This model"), score(found[name], metric), found[name] / longest, name == "model")
        for name in order
    ]
    span = _span(report)
    return Headline(
        label=_label(report),
        text=score(found["model"], metric),
        span="" if span is None else f"{score(span[0], metric)} to {score(span[1], metric)}",
        bars=bars,
        verdict=_verdict(report, metric, higher, span),
    )


def _label(report: Report) -> str:
    metric, count = next(iter(report.task.metrics.values())), len(report.targets)
    if count == 1:
        unit = report.units.get(report.targets[0], "")
        return metric.title + (f" in {unit}" if unit and metric.in_units else "")
    if metric.summed:
        return metric.title
    share = " as a share of the mean predictor’s" * metric.in_units
    return f"{metric.title}{share}, mean of {count} targets"


def _leading(scores: Mapping[str, Any], report: Report) -> float | None:
    name, metric = next(iter(report.task.metrics.items()))
    judged = scores[report.judged]
    if len(report.targets) == 1 or not metric.in_units:
        return judged[name]
    ratios = []
    for t, target in enumerate(report.targets):
        score, plain = judged["per_target"][target][name], _score_of_mean(report, t, metric)
        if score is not None and plain > 0:
            ratios.append(score / plain)
    return float(np.mean(ratios)) if ratios else None


def _score_of_mean(report: Report, t: int, metric: Metric) -> float:
    judged, train = (torch.from_numpy(report.y[report.measured(p, t), t]) for p in (report.judged, "train"))
    return float(metric.function(torch.full_like(judged, train.mean()), judged)) if len(judged) and len(train) else 0.0


def _verdict(report: Report, metric: str, higher: bool, span: tuple[float, float] | None) -> str:
    if not report.baselines:
        return ""
    duels = list(_duels(report, metric, higher))
    won = sum(ours > theirs if higher else ours < theirs for ours, theirs, _ in duels)
    if not duels:
        return "Too few values are measured there for a comparison with the baselines."
    if len(duels) > 1:
        return f"This model is better than the best baseline for {won} of {len(duels)} targets."
    ours, theirs, rival = duels[0]
    if ours == theirs:
        return f"This model and the best baseline ({rival.lower()}) are equally good."
    worse, better = sorted((ours, theirs), reverse=not higher)
    gap = f"{better - worse:.3f} higher" if higher else f"{1 - better / worse:.0%} lower"
    title = report.task.metrics[metric].title
    if won:
        said = f"This model is better than the best baseline ({rival.lower()}): its {title} is {gap}."
    else:
        said = f"{rival} is better than this model: its {title} is {gap}."
    if span and span[0] <= theirs <= span[1]:
        said += " The interval of this model contains the score of the baseline, so the difference may be chance."
    return said


def _duels(report: Report, metric: str, higher: bool) -> Iterator[tuple[float, float, str]]:
    """Per target where both are defined: the model's score, the best baseline's, and its title; once, of a sum."""
    for target in [None] if report.task.metrics[metric].summed else report.targets:

        def of(scores: Mapping[str, Any], target: str | None = target) -> float | None:
            judged = scores[report.judged]
            return (judged if target is None else judged["per_target"][target])[metric]

        ours, theirs = of(report.scores), {TITLES[name]: of(scores) for name, scores in report.baselines.items()}
        theirs = {title: score for title, score in theirs.items() if score is not None}
        if ours is not None and theirs:
            best = (max if higher else min)(theirs, key=theirs.get)
            yield ours, theirs[best], best


def _span(report: Report) -> tuple[float, float] | None:
    """Bootstrap percentiles of the leading score of one target; several would need one each."""
    if len(report.targets) > 1:
        return None
    rows = report.measured(report.judged, 0)
    y, prediction = torch.from_numpy(report.y[rows, 0]), torch.from_numpy(report.predicted(rows, 0))
    if not prediction.isfinite().all():
        return None
    metric = next(iter(report.task.metrics.values()))
    random = np.random.default_rng(0)
    draws = (random.integers(len(y), size=len(y)) for _ in range(RESAMPLES if 1 < len(y) <= MOST_RESAMPLED else 0))
    scores = [float(metric.function(prediction[draw], y[draw])) for draw in draws if metric.defined(y[draw])]
    return tuple(np.percentile(scores, [2.5, 97.5])) if scores else None
