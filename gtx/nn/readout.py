"""Readouts and scalers: from nodes to one vector per molecule."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch_geometric.nn.aggr import AttentionalAggregation, MaxAggregation, MeanAggregation, SumAggregation

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
