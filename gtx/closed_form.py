"""Fitting the models that need no training by gradients: least squares, and for classes a calibration."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch_geometric.data import Batch

from gtx.data import PairBudgetSampler
from gtx.errors import InputError
from gtx.tasks import NumberTask
from gtx.tasks.metrics import masked_mean

if TYPE_CHECKING:
    from gtx.data import MoleculeStore
    from gtx.kernel import KernelRidge
    from gtx.tasks import Task

MOST_PAIRS, MOST_MOLECULES = 75_000, 256
"""Most pairs of atoms and molecules of a batch."""
PRIOR = 5.0
"""Logits that one standard deviation of the least squares is worth, at most about so many: some classes separate."""


def fit_closed_form(model: KernelRidge, task: NumberTask, train: MoleculeStore) -> None:
    r"""Solve a model for a task.

    Numbers are fitted as the network learns them, scaled. Classes are fitted as indicators, f, and counts as
    logarithms; the outputs,

    \[ z_c = a_c + b f_c, \qquad b \ge 0, \]

    have the least loss where f is predicted by leaving out each row, so that probabilities are those of new molecules
    (Platt 1999).

    Args:
        model: what is solved.
        task: fitted.
        train: training molecules with targets in their own units; those without any value are left out.

    Raises:
        InputError: the task has nothing that least squares can fit.
    """
    train = task.labelled(train)
    y = closed_form_targets(task, train)
    if y is None:
        raise InputError(why_no_closed_form(task, train))
    left_out = model.solve(train, y, embeddings_of(model, train))
    if task.linked:
        drawn = ~left_out.isnan().all(1)
        model.rescale(*_calibration(task, left_out[drawn], task.scaled(train)[drawn].double()))


def outputs_of(model: KernelRidge, store: MoleculeStore) -> Tensor:
    """Compute the outputs of a model for all molecules of a store, float64 `[m, C]`."""
    return _over_batches(lambda batch: model(batch).double(), store)


def embeddings_of(model: KernelRidge, store: MoleculeStore) -> Tensor | None:
    """Compute the embeddings that a kernel compares, of all molecules of a store, `[m, width]`; None if it does not."""
    if model.embeddings is None or model.embed is None:
        return None
    return _over_batches(model.embed, store)


def _over_batches(function: Callable[[Batch], Tensor], store: MoleculeStore) -> Tensor:
    """Call a function on batches of a store and join what it returns, `[B, *]`, in the order of the molecules."""
    batches = PairBudgetSampler(store.sizes, MOST_PAIRS, max_molecules=MOST_MOLECULES, shuffle=False).batches()
    batches = batches or [torch.zeros(0, dtype=torch.long)]
    order = torch.cat(batches).argsort()
    return torch.cat([function(store.batch(rows)) for rows in batches])[order]


def closed_form_targets(task: Task, train: MoleculeStore) -> Tensor | None:
    """Return the regression targets of a task that a closed-form model can fit, or None if there are none."""
    if not isinstance(task, NumberTask) or train.weights is not None or train.bounds is not None:
        return None
    return task.regressands(train)


def why_no_closed_form(task: Task, train: MoleculeStore) -> str:
    """Why a model in closed form can fit nothing."""
    if train.weights is not None or train.bounds is not None:
        return f"a closed form knows no {'weights' if train.weights is not None else 'bounds'}"
    return f"the task {task.name} has no closed form"


def _calibration(task: NumberTask, f: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """The slope b and the shift a of each output, `[C]`."""
    widths = torch.tensor(task.widths)
    f = f.nan_to_num()  # what is blank has no say in the loss
    mean, sd = f.mean(0), f.std(0, correction=0).clamp(min=1e-9)
    spread = torch.stack([part.square().mean().sqrt() for part in sd.split(task.widths)]).clamp(min=1e-9)
    each = torch.arange(len(widths)).repeat_interleave(widths)
    slope = torch.ones(len(widths), dtype=torch.float64, requires_grad=True)
    shift = torch.zeros(len(mean), dtype=torch.float64, requires_grad=True)
    search = torch.optim.LBFGS([slope, shift], max_iter=100, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        search.zero_grad()
        z = shift + slope[each] * (f - mean) / spread[each]
        unlikely = (slope / PRIOR).square().sum() + (shift / PRIOR).square().sum()
        found = masked_mean(task.plain.elementwise, z, y) + unlikely / (2 * len(f))
        found.backward()
        return found

    with torch.enable_grad():
        search.step(loss)
    by = slope.detach().clamp(min=0)[each] / spread[each]
    return by, shift.detach() - by * mean
