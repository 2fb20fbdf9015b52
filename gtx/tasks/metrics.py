"""Losses and metrics."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from gtx.base.errors import InputError

# --- Losses that leave out blanks and padding.

LOSSES: dict[str, Callable[..., Tensor]] = {"mse": F.mse_loss, "mae": F.l1_loss, "huber": F.huber_loss}
"""Losses of numbers, by name: functions of an `output` and a `target`, elementwise with `reduction="none"`."""


def masked_mean(
    elementwise: Callable[[Tensor, Tensor], Tensor], output: Tensor, target: Tensor, weights: Tensor | None = None
) -> Tensor:
    """Average a loss over the entries that were observed.

    A batch of blanks alone gives 0, still a function of the outputs, so that every rank has gradients to exchange.

    `elementwise` returns the loss of each entry from outputs `[B, ...]` and targets `[B, T]`, NaN for blanks; weights
    of 0 or more are broadcastable to `[B, T]`. A loss of another shape, such as a mean, is an `InputError`: it would
    count blanks.
    """
    observed = ~target.isnan()
    # blanks are filled before the loss, not after: the gradient of a NaN is NaN even where it is masked
    dtype = torch.promote_types(output.dtype, target.dtype)  # not every loss takes two
    each = elementwise(output.to(dtype), torch.where(observed, target, 0.0).to(dtype))
    if each.shape != target.shape:
        raise InputError(f"expected a loss of each entry, {list(target.shape)}, got {list(each.shape)}")
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


# --- The loss of bounds of values that were not measured exactly, such as `>5`.

_STEPS = 8  # of the search for the spread
_LEAST = 1e-6  # variance, of z-scores


def with_bounds(y: Tensor, bounds: Tensor | None) -> tuple[Tensor, Tensor]:
    """Fill blanks among values `[n, T]` with their bounds, `[n, 2T]`.

    Returns:
        `[n, T]`, and the sides, `[n, T]`: 1 where the value is above, -1 where it is below, 0 where it is exact.
    """
    if bounds is None:
        return y, torch.zeros_like(y)
    above, below = bounds.to(y).chunk(2, dim=1)
    lacking = y.isnan()
    side = (lacking & ~above.isnan()).to(y) - (lacking & above.isnan() & ~below.isnan()).to(y)
    return torch.where(side > 0, above, torch.where(side < 0, below, y)), side


def censored_squares(output: Tensor, value: Tensor, side: Tensor, weights: Tensor) -> Tensor:
    r"""Compute squared errors, and for bounds their counterpart in a Gaussian likelihood.

    For errors with one standard deviation \(\sigma\), the loss of an exact value y is \(2 \sigma^2\) times its negative
    log-likelihood, up to a constant. The loss of a bound c is defined in the same way:

    \[ (y - f)^2, \qquad -2 \sigma^2 \ln \Phi\!\left(\frac{f - c}{\sigma}\right) \;\text{for } y > c, \qquad
       -2 \sigma^2 \ln \Phi\!\left(\frac{c - f}{\sigma}\right) \;\text{for } y < c \]

    For a small \(\sigma\), the loss of a bound is 0 on the allowed side and the squared distance on the other side.
    With the estimated \(\sigma\), f estimates the mean of the censored values (Tobin 1958,
    https://doi.org/10.2307/1907382). The standard deviation is the maximum-likelihood estimate from the rows, see
    `censored_spread`, and has no gradient.

    All arguments are `[B, T]`: f; y or c, any number for blanks; the side, 1 for y > c, -1 for y < c, 0 for y; and the
    weight of each entry in the spread, 0 for blanks.
    """
    error = output - value
    spread = censored_spread(error.detach(), side, weights)
    unlikely = -2 * spread.square() * torch.special.log_ndtr(side * error / spread)
    return torch.where(side == 0, error.square(), unlikely)


def censored_spread(error: Tensor, side: Tensor, weights: Tensor) -> Tensor:
    r"""Estimate the standard deviation of partly censored errors by expectation and maximisation, `[T]`.

    \[ \sigma^2 \leftarrow \frac{\sum_{exact} e^2 + \sum_{bounds} \sigma^2 (1 - z \lambda(z))}{n}, \qquad
       z = \pm \frac{e}{\sigma}, \quad \lambda = \frac{\varphi(z)}{\Phi(z)} \]

    (Dempster, Laird & Rubin 1977); 1 where there is no exact value. Arguments as of `censored_squares`, the error being
    output minus value.
    """
    exact, bound = weights * (side == 0), weights * (side != 0)
    squares, measured, total = (exact * error.square()).sum(0), exact.sum(0), weights.sum(0)
    has_exact = measured > 0
    variance = torch.where(has_exact, squares / torch.where(has_exact, measured, 1), 1).clamp(min=_LEAST)
    for _ in range(_STEPS):
        z = side * error / variance.sqrt()
        ratio = (-z.square() / 2 - 0.5 * math.log(2 * math.pi) - torch.special.log_ndtr(z)).exp()
        estimate = (squares + variance * (bound * (1 - z * ratio)).sum(0)) / torch.where(has_exact, total, 1)
        variance = torch.where(has_exact, estimate, variance).clamp(min=_LEAST)
    return variance.sqrt()


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
