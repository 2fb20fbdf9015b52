"""Probabilities that say how often they are right, as held-out rows correct them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gtx.tasks.late_functions import isotonic_regression, minimize_scalar

FEWEST = 10
"""Held-out rows of a target, for them to correct anything."""
TINY = 1e-12
COOLEST, HOTTEST = 0.05, 20.0


def fit_temperature(y: np.ndarray, p: np.ndarray) -> float:
    r"""The temperature T by which held-out rows are likeliest:

    \[ p'_c = p_c^{1 / T} \Big/ \sum_k p_k^{1 / T} \]

    (Guo et al. 2017, arXiv:1706.04599). Above 1 it makes a model that is too sure less so; which class is the likeliest
    stays as it is.

    Args:
        y: int `[n]`, numbers of classes.
        p: `[n, C]`, probabilities.

    Returns:
        T, from 0.05 to 20; 1 of fewer than 10 rows.
    """
    if len(y) < FEWEST:
        return 1.0

    def surprise(log_temperature: float) -> float:
        found = tempered(p, np.exp(log_temperature))
        return -np.log(found[np.arange(len(y)), y] + TINY).mean()

    found = minimize_scalar(surprise, bounds=(np.log(COOLEST), np.log(HOTTEST)), method="bounded")
    return float(np.exp(found.x))


def tempered(p: np.ndarray, temperature: float) -> np.ndarray:
    """Probabilities `[n, C]` at a temperature."""
    logits = np.log(p + TINY) / temperature
    odds = np.exp(logits - logits.max(1, keepdims=True))
    return odds / odds.sum(1, keepdims=True)


def fit_isotonic(y: np.ndarray, p: np.ndarray) -> list[list[list[float]]] | None:
    """For each class the ascending steps that fit held-out rows best by squares, class against the rest (Zadrozny &
    Elkan 2002, https://doi.org/10.1145/775047.775151).

    Of n rows, no probability is closer to 0 or 1 than 1 / (n + 2).

    Args:
        y: int `[n]`, numbers of classes.
        p: `[n, C]`, probabilities.

    Returns:
        For each class the probabilities between which it goes straight on, `[from, to]`; None of fewer than 10 rows.
    """
    if len(y) < FEWEST:
        return None
    least = 1 / (len(y) + 2)
    fits = [isotonic_regression(y_min=least, y_max=1 - least).fit(column, y == c) for c, column in enumerate(p.T)]
    return [[fit.X_thresholds_.tolist(), fit.y_thresholds_.tolist()] for fit in fits]


def stepped(p: np.ndarray, curves: list[list[list[float]]]) -> np.ndarray:
    """Probabilities `[n, C]` as the curves of `fit_isotonic` have them, divided by their sum."""
    found = np.stack([np.interp(column, *curve) for column, curve in zip(p.T, curves, strict=True)], axis=1)
    return found / found.sum(1, keepdims=True)


def evaluate_probabilities(y: np.ndarray, p: np.ndarray) -> dict[str, Any]:
    r"""Score probabilities.

    Args:
        y: int `[n]`, numbers of classes, one or more rows.
        p: `[n, C]`.

    Returns:
        `nll`, the mean of \(-\ln p_y\), in nats; `brier`, the mean of \(\sum_c (p_c - [c = y])^2\), 0 to 2; `ece`, of
        ten groups by the probability of the likeliest class, the mean distance from that to the share that is right
        (Guo et al. 2017); `auroc`, how well that probability tells right from wrong.
    """
    best, top = p.argmax(1), p.max(1)
    right = best == y
    group = np.minimum((top * 10).astype(int), 9)
    gaps = [abs(float(top[group == g].sum() - right[group == g].sum())) for g in range(10)]
    return {
        "nll": float(-np.log(p[np.arange(len(y)), y] + TINY).mean()),
        "brier": float(np.square(p - np.eye(p.shape[1])[y]).sum(1).mean()),
        "ece": sum(gaps) / len(y),
        "auroc": ranking(right, top),
    }


def ranking(found: np.ndarray, score: np.ndarray) -> float | None:
    """How well a score `[n]` tells rows that are `found`, bool `[n]`, from others: ROC-AUC; None of one kind alone."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(found, score)) if 0 < found.sum() < len(found) else None
