"""Conditions under which compiled loops may replace torch's operations."""

from __future__ import annotations

import torch
from torch import Tensor


def are_plain(*tensors: Tensor) -> bool:
    """Return whether these are float32 tensors on a CPU, neither traced nor transformed."""
    return (
        not torch.compiler.is_compiling()
        and not torch.is_autocast_enabled("cpu")
        and not torch._C._are_functorch_transforms_active()
        and all(
            type(x.data if isinstance(x, torch.nn.Parameter) else x) is Tensor
            and x.device.type == "cpu"
            and x.dtype == torch.float32
            for x in tensors
        )
    )


def are_learned(*tensors: Tensor) -> bool:
    """Return whether one of these needs a gradient."""
    return torch.is_grad_enabled() and any(x.requires_grad for x in tensors)
