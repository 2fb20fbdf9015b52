"""Closed-form fit of the kernel: least squares, and for classes a calibration."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch_geometric.data import Batch

from gtx.base.errors import InputError
from gtx.data import PairBudgetSampler
from gtx.tasks.metrics import masked_mean
from gtx.tasks.numeric import NumericObjective, is_numeric

if TYPE_CHECKING:
    from gtx.data import MoleculeStore
    from gtx.kernel import KernelRidge
    from gtx.tasks import Task

MOST_PAIRS, MOST_MOLECULES = 75_000, 256
"""Maximum numbers of pairs of atoms and of molecules in a batch."""
PRIOR = 5.0
"""Prior scale of the slope and the shift, in logits, which bounds them where classes separate."""


def fit_closed_form(model: KernelRidge, task: Task, train: MoleculeStore) -> None:
    r"""Solve a model for a task.

    Numbers are fitted scaled, as for the network. Classes are fitted as indicators, f, and counts as logarithms; the
    outputs,

    \[ z_c = a_c + b f_c, \qquad b \ge 0, \]

    have the least loss for leave-one-out predictions f, so that probabilities are calibrated for new molecules (Platt
    1999). Molecules without any value are left out; a task without targets for least squares is an `InputError`.
    """
    train = task.drop_blanks(train)
    if obstacle := why_no_closed_form(task, train):
        raise InputError(obstacle)
    objective: Any = task.objective  # of numbers or classes
    y = objective.regressands(train)
    rows = model.rows_used(len(train))
    used = train.subset(rows)  # no others are embedded
    left_out = model.solve(used, y[rows], embeddings_of(model, used))
    model.row = rows[model.row]
    if objective.has_link:
        model.rescale(*_calibration(objective, left_out, objective.scale(used).double()))


def outputs_of(model: KernelRidge, store: MoleculeStore) -> Tensor:
    """Compute the outputs of a model for all molecules of a store, float64 `[m, C]`."""
    return over_batches(lambda batch: model(batch).double(), store)


def embeddings_of(model: KernelRidge, store: MoleculeStore) -> Tensor | None:
    """Compute the embeddings of all molecules for a kernel, `[m, width]`; None if the kernel uses none."""
    if model.embeddings is None or model.embed is None:
        return None
    return over_batches(model.embed, store)


def over_batches(function: Callable[[Batch], Tensor], store: MoleculeStore) -> Tensor:
    """Call a function on batches of a store and join what it returns, `[B, *]`, in the order of the molecules."""
    batches = PairBudgetSampler(store.sizes, MOST_PAIRS, max_molecules=MOST_MOLECULES, shuffle=False).batches()
    batches = batches or [torch.zeros(0, dtype=torch.long)]
    order = torch.cat(batches).argsort()
    return torch.cat([function(store.batch(rows)) for rows in batches])[order]


def why_no_closed_form(task: Task, train: MoleculeStore) -> str | None:
    """Name the reason why a task has no closed form for these molecules; None if it has one."""
    if train.weights is not None or train.bounds is not None:
        return f"a closed form supports no {'weights' if train.weights is not None else 'bounds'}"
    if not is_numeric(task) or task.objective.regressands(train) is None:
        return f"the task {task.name} has no closed form"
    return None


def _calibration(objective: NumericObjective, f: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Fit the slope b and the shift a of each output, `[C]`."""
    widths = torch.tensor(objective.widths)
    f = f.nan_to_num()  # blanks are masked in the loss
    mean, sd = f.mean(0), f.std(0, correction=0).clamp(min=1e-9)
    spread = torch.stack([part.square().mean().sqrt() for part in sd.split(objective.widths)]).clamp(min=1e-9)
    each = torch.arange(len(widths)).repeat_interleave(widths)
    slope = torch.ones(len(widths), dtype=torch.float64, requires_grad=True)
    shift = torch.zeros(len(mean), dtype=torch.float64, requires_grad=True)
    search = torch.optim.LBFGS([slope, shift], max_iter=100, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        search.zero_grad()
        z = shift + slope[each] * (f - mean) / spread[each]
        penalty = (slope / PRIOR).square().sum() + (shift / PRIOR).square().sum()
        value = masked_mean(objective.point.elementwise, z, y) + penalty / (2 * len(f))
        value.backward()
        return value

    with torch.enable_grad():
        search.step(loss)
    factor = slope.detach().clamp(min=0)[each] / spread[each]
    return factor, shift.detach() - factor * mean
