"""How good predictions are, in the targets' own units."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torchmetrics.functional import mean_absolute_error, mean_squared_error, r2_score
from torchmetrics.functional.classification import binary_accuracy, binary_auroc, binary_average_precision

Metric = Callable[[Tensor, Tensor], Tensor]


def _always(y: Tensor) -> bool:
    return len(y) > 0


def _varies(y: Tensor) -> bool:
    return len(y) > 1 and bool((y != y[0]).any())


# name -> (metric of prediction and truth, whether the truth defines it)
METRICS: dict[str, dict[str, tuple[Metric, Callable[[Tensor], bool]]]] = {
    "regression": {
        "rmse": (lambda p, y: mean_squared_error(p, y, squared=False), _always),
        "mae": (mean_absolute_error, _always),
        "r2": (r2_score, _varies),
    },
    "classification": {
        "roc_auc": (lambda p, y: binary_auroc(p, y.long()), _varies),
        "pr_auc": (lambda p, y: binary_average_precision(p, y.long()), _varies),
        "accuracy": (lambda p, y: binary_accuracy(p, y.long()), _always),
    },
}


def evaluate(
    y: np.ndarray | Tensor, prediction: np.ndarray | Tensor, task: str, names: Sequence[str]
) -> dict[str, Any]:
    """Score predictions against what was measured, target by target; blanks are left out.

    Args:
        y: `[n, T]` measured values in the targets' own units, or classes 0 and 1; NaN for blanks.
        prediction: `[n, T]` predictions in the same units, or probabilities of class 1.
        task: `"regression"` (`rmse`, `mae`, both in the target's unit, and `r2`) or `"classification"` (`roc_auc`,
            `pr_auc`, which is the average precision, and `accuracy`, class 1 being more probable than 1/2).
        names: the T targets' names.

    Returns:
        The metrics as plain floats, each a mean over the targets where it is defined, and `per_target`, the metrics of
        each target by name. A metric the values do not define (one class only, nothing observed, R² of fewer than
        two different values) is None.
    """
    y, prediction = torch.as_tensor(y).double().cpu(), torch.as_tensor(prediction).double().cpu()
    if y.shape != prediction.shape or y.dim() != 2 or y.shape[1] != len(names):
        shapes = f"{list(y.shape)} and {list(prediction.shape)}"
        raise ValueError(f"expected y and predictions of one shape [n, {len(names)}], got {shapes}")
    per_target = {name: _evaluate_one(y[:, t], prediction[:, t], task) for t, name in enumerate(names)}
    means = {metric: _mean(scores[metric] for scores in per_target.values()) for metric in METRICS[task]}
    return {**means, "per_target": per_target}


def _evaluate_one(y: Tensor, prediction: Tensor, task: str) -> dict[str, float | None]:
    observed = ~y.isnan()
    y, prediction = y[observed], prediction[observed]
    return {
        name: _plain(metric(prediction, y)) if defined(y) and prediction.isfinite().all() else None
        for name, (metric, defined) in METRICS[task].items()
    }


def _plain(value: Tensor) -> float | None:
    return float(value) if math.isfinite(value) else None


def _mean(scores: Iterable[float | None]) -> float | None:
    defined = [score for score in scores if score is not None]
    return sum(defined) / len(defined) if defined else None
