"""Losses and metrics."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

# --- Losses that leave out blanks and padding.

LOSSES: dict[str, Callable[..., Tensor]] = {"mse": F.mse_loss, "mae": F.l1_loss, "huber": F.huber_loss}
"""Losses of numbers, by name: functions of an `output` and a `target`, elementwise with `reduction="none"`."""


def masked_mean(
    elementwise: Callable[[Tensor, Tensor], Tensor], output: Tensor, target: Tensor, weights: Tensor | None = None
) -> Tensor:
    """Average a loss over the entries that were observed.

    A batch of blanks alone gives 0, still a function of the outputs, so that every rank has gradients to exchange.

    `elementwise` returns the loss of each entry from outputs `[B, ...]` and targets `[B, T]`, NaN for blanks; weights
    of 0 or more are broadcastable to `[B, T]`.
    """
    observed = ~target.isnan()
    # blanks are filled before the loss, not after: the gradient of a NaN is NaN even where it is masked
    dtype = torch.promote_types(output.dtype, target.dtype)  # not every loss takes two
    each = elementwise(output.to(dtype), torch.where(observed, target, 0.0).to(dtype))
    if weights is None:
        return (each * observed).sum() / observed.sum().clamp(min=1)
    weights = observed * weights
    total = weights.sum()
    return (each * weights).sum() / torch.where(total > 0, total, 1)


def constants(values: Sequence[float], like: Tensor) -> Tensor:
    """Make a tensor `[n]` of numbers on the device of `like`, without a copy from the host (for CUDA graphs)."""
    return torch.stack([like.new_full((), value) for value in values])


def smoothed_cross_entropy(logits: Tensor, labels: Tensor, smoothing: float = 0.1) -> Tensor:
    r"""Compute the mean cross-entropy, in nats, to targets of which a share is spread evenly over all classes.

    \[ L = -\sum_w t_w \ln p_w, \qquad t_w = (1 - \varepsilon)\, [w = y] + \varepsilon / V \]

    It is the divergence \(\mathrm{KL}(t \,\|\, p)\) and a constant, the entropy of t.

    Source: Szegedy et al. 2016, section 7 (arXiv:1512.00567); \(\varepsilon = 0.1\) as Vaswani et al. 2017, section 5.4
    (arXiv:1706.03762).

    Args:
        logits: `[N, V]`.
        labels: y, int64 `[N]`; -100 for padding, which is left out; the result is 0 if all are padding.
        smoothing: \(\varepsilon\), 0 to 1.
    """
    total = F.cross_entropy(logits, labels, reduction="sum", label_smoothing=smoothing)
    return total / (labels >= 0).sum().clamp(min=1)


# --- Scores of predictions `[n]`, or probabilities `[n]` or `[n, C]`. Prediction needs no scikit-learn, slow to import.


def mean_absolute_error(prediction: Tensor, y: Tensor) -> Tensor:
    """Compute the mean absolute error."""
    return (prediction - y).abs().mean()


def root_mean_squared_error(prediction: Tensor, y: Tensor) -> Tensor:
    """Compute the root of the mean squared error."""
    return (prediction - y).square().mean().sqrt()


def accuracy(p: Tensor, y: Tensor) -> Tensor:
    """Compute the share of rows whose likeliest class is the true one."""
    return (_likeliest(p) == y).double().mean()


def _likeliest(p: Tensor) -> Tensor:
    return p > 0.5 if p.dim() == 1 else p.argmax(1)


def roc_auc(p: Tensor, y: Tensor) -> float:
    """Compute the ROC-AUC; of C classes the mean of each class that occurs against the rest.

    Source: Provost & Domingos 2001, unweighted.
    """
    from sklearn.metrics import roc_auc_score

    if p.dim() == 1:
        return roc_auc_score(y.numpy(), p.numpy())
    classes = y.long().unique().tolist()
    return sum(roc_auc_score((y == k).numpy(), p[:, k].numpy()) for k in classes) / len(classes)


def sklearn_score(name: str, of_classes: bool = False, **options: Any) -> Callable[[Tensor, Tensor], float]:
    """Return a score of `sklearn.metrics` as a function of predictions and true values, or of the likeliest classes."""

    def score(prediction: Tensor, y: Tensor) -> float:
        import sklearn.metrics

        predicted = _likeliest(prediction) if of_classes else prediction
        return getattr(sklearn.metrics, name)(y.numpy(), predicted.numpy(), **options)

    return score


# --- Scores by name, in the targets' own units.


class Metric(NamedTuple):
    """Metric of one target, such as RMSE or ROC-AUC.

    Attributes:
        title: name of the metric in reports.
        function: function from prediction and true values, both without blanks, to the score; None if the task computes
            the score itself.
        defined: function of the true values that returns whether the score is defined.
        lower: whether a lower score is better.
        in_units: whether the score has the unit of the target.
        summed: whether the score of all targets is the sum, not the mean, of their scores.
    """

    title: str
    function: Callable[[Tensor, Tensor], Tensor | float] | None = None
    defined: Callable[[Tensor], bool] | None = None
    lower: bool = False
    in_units: bool = False
    summed: bool = False


def has_values(y: Tensor) -> bool:
    """Return True if there is any value."""
    return len(y) > 0


def varies(y: Tensor) -> bool:
    """Return True if there are two different values."""
    return len(y) > 1 and bool((y != y[0]).any())


class Target(NamedTuple):
    """Target, with the columns that the predictions `[n, P]` for this target have."""

    name: str
    columns: slice


def evaluate(
    y: np.ndarray | Tensor, prediction: np.ndarray | Tensor, metrics: Mapping[str, Metric], targets: Sequence[Target]
) -> dict[str, Any]:
    """Score predictions `[n, P]` against what was measured `[n, T]`, target by target; blanks (NaN) are left out.

    Returns:
        The metrics as plain floats, each a mean over the targets where it is defined, or their sum, and `per_target`,
        those of each target by name. A metric the values do not define (one class only, nothing observed, R² of fewer
        than two different values) is None.
    """
    y, prediction = torch.as_tensor(y).double().cpu(), torch.as_tensor(prediction).double().cpu()
    width = targets[-1].columns.stop
    if y.dim() != 2 or y.shape[1] != len(targets) or prediction.shape != (len(y), width):
        shapes = f"{list(y.shape)} and {list(prediction.shape)}"
        raise ValueError(f"expected y [n, {len(targets)}] and predictions [n, {width}], got {shapes}")
    per_target: dict[str, dict[str, float | None]] = {}
    for target, truth in zip(targets, y.T, strict=True):
        observed = ~truth.isnan()
        own, truth = prediction[observed][:, target.columns].squeeze(1), truth[observed]
        scores: dict[str, float | None] = dict.fromkeys(metrics)
        for name, metric in metrics.items():
            if metric.function and metric.defined and metric.defined(truth) and own.isfinite().all():
                score = float(metric.function(own, truth))
                scores[name] = score if math.isfinite(score) else None
        per_target[target.name] = scores
    joint = mean_scores(per_target, metrics)
    for name, metric in metrics.items():
        if metric.summed:
            parts = [scores[name] for scores in per_target.values()]
            joint[name] = None if None in parts else sum(parts)  # type: ignore[arg-type]
    return joint


def mean_scores(
    per_target: Mapping[str, Mapping[str, float | None]], names: Iterable[str] | None = None
) -> dict[str, Any]:
    """Average the scores `names`, by default those of the first target, over the targets where they are defined.

    Returns:
        The means by name, and `per_target`.
    """
    means: dict[str, Any] = {}
    for name in next(iter(per_target.values())) if names is None else names:
        own = [scores.get(name) for scores in per_target.values()]
        defined = [score for score in own if score is not None]
        means[name] = sum(defined) / len(defined) if defined else None
    return {**means, "per_target": per_target}
