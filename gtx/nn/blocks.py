"""Blocks of layers: the MLP, the residual that adds a branch, scaling by degree, readouts of molecules."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn.aggr import AttentionalAggregation, MaxAggregation, MeanAggregation, SumAggregation

# --- The MLP and residuals.


class GELU(nn.GELU):
    """`torch.nn.GELU`; of a matrix on a CPU it takes the transpose.

    Torch hands contiguous matrices on a CPU to oneDNN, which compiles code for each shape. Batches of molecules have a
    new shape nearly every time: a training step on ESOL took a tenth longer, and memory grew by 0.35 GiB in 40 epochs.
    """

    def forward(self, x: Tensor) -> Tensor:
        if x.device.type != "cpu" or x.dim() != 2 or torch.compiler.is_compiling():
            return super().forward(x)
        return F.gelu(x.t()).t()


class MLP(nn.Sequential):
    r"""Linear map, GELU, dropout, linear map: \(W_2\, \mathrm{GELU}(W_1 x + b_1) + b_2\).

    Args:
        channels: width of the input and the output.
        hidden: width of the hidden layer; default `2 * channels`.
        dropout: dropout rate of the hidden layer, in training; None for a model without.

    Shapes:
        `[*, channels]` to the same.
    """

    def __init__(self, channels: int, hidden: int | None = None, dropout: float | None = None) -> None:
        hidden = 2 * channels if hidden is None else hidden
        between = [GELU()] if dropout is None else [GELU(), nn.Dropout(dropout)]
        super().__init__(nn.Linear(channels, hidden), *between, nn.Linear(hidden, channels))


def add_residual(
    x: Tensor, branch: Callable[[Tensor], Tensor], norm: nn.Module, dropout: nn.Module, norm_first: bool
) -> Tensor:
    """Add a branch with its norm first, `x + branch(norm(x))`, or last, `norm(x + branch(x))`."""
    return x + dropout(branch(norm(x))) if norm_first else norm(x + dropout(branch(x)))


# --- A scaler of what a node has summed, by its degree.


class LearnedDegreeScaling(nn.Module):
    r"""Scaling by the node degree, \(v \odot \theta_1 + \log(1 + \deg) \, v \odot \theta_2\), initialised to the
    identity.

    A softmax average does not depend on the number of senders; the scaler adds this information.

    Sources: Corso et al. 2020 (arXiv:2004.05718) for degree scalers; Ma et al. 2023, GRIT (arXiv:2305.17589), eq. 4,
    for this form.

    Args:
        channels: width of the node features.

    Shapes:
        x `[N, channels]` and degree `[N]` (bonds into each node) to `[N, channels]`.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight: nn.Parameter = nn.Parameter(torch.stack([torch.ones(channels), torch.zeros(channels)]))

    def forward(self, x: Tensor, degree: Tensor) -> Tensor:
        return x * (self.weight[0] + torch.log1p(degree.to(x.dtype)).unsqueeze(-1) * self.weight[1])

    def __repr__(self) -> str:
        return f"LearnedDegreeScaling({self.weight.shape[1]})"


# --- Readouts: from nodes to one vector per molecule.


class Readout(nn.Module):
    r"""Readout from nodes to molecules: sum, mean, maximum or attention pooling, or several of them concatenated.

    Attention pooling is \(\sum_i \operatorname{softmax}_i(g(v_i))\, v_i\) with a learned linear g (Li et al. 2016,
    arXiv:1511.05493). For a molecule without nodes, the readout returns zeros.

    Args:
        channels: width of the nodes.
        kinds: one or more of "sum", "mean", "max" and "attention".

    Shapes:
        x `[N, channels]`, batch int64 `[N]` sorted, to `[num_graphs, width]`, `width = len(kinds) * channels`.
    """

    def __init__(self, channels: int, kinds: Sequence[str] = ("sum", "mean", "max")) -> None:
        super().__init__()
        make = {
            "sum": SumAggregation,
            "mean": MeanAggregation,
            "max": MaxAggregation,
            "attention": lambda: AttentionalAggregation(nn.Linear(channels, 1)),
        }
        unknown = [kind for kind in kinds if kind not in make]
        if unknown or not kinds:
            raise ValueError(f"expected readouts out of {', '.join(make)}, got {unknown}")
        self.kinds: tuple[str, ...] = tuple(kinds)
        self.parts: nn.ModuleList = nn.ModuleList(make[kind]() for kind in kinds)
        self.width: int = len(kinds) * channels

    def forward(self, x: Tensor, batch: Tensor, num_graphs: int) -> Tensor:
        return torch.cat([part(x, batch, dim_size=num_graphs) for part in self.parts], -1)

    def __repr__(self) -> str:
        return f"Readout({', '.join(self.kinds)})"
