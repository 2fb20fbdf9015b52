"""The kernel of a blend: its share in the prediction beside the networks of a model file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from gtx.base.errors import InputError
from gtx.base.schema import shown

if TYPE_CHECKING:
    from gtx.kernel import KernelRidge
    from gtx.tasks import NumericTask


def blend_outputs(outputs: Tensor, own: Tensor, share: Tensor) -> Tensor:
    """Blend the first P outputs of networks `[B, members, C]`, float64, with outputs of a kernel `[B, P]` by its share
    `[P]`.
    """
    predictions, rest = outputs.tensor_split([len(share)], dim=-1)
    mixed = predictions + share.double().cpu() * (own.double()[:, None] - predictions)
    return torch.cat([mixed, rest], dim=-1)


class KernelMember(nn.Module):
    r"""Blend of the outputs of networks and of a kernel: \(z = (1 - s)\, z_n + s\, z_k\).

    Outputs are z-scores or logits. Outputs after the first P, such as variances, come from the network alone.

    Args:
        kernel: kernel model, solved for the same task.
        share: weight s of the kernel model in each prediction, `[P]`, from 0 to 1.
    """

    share: Tensor

    def __init__(self, kernel: KernelRidge, share: Tensor) -> None:
        super().__init__()
        self.kernel = kernel
        self.register_buffer("share", share)

    def forward(self, outputs: Tensor, batch: Batch) -> Tensor:
        """Blend the outputs `[B, members, C]` of networks for a batch with the kernel's."""
        return blend_outputs(outputs, self.kernel(batch).cpu(), self.share)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Load tensors as torch does, and check the shares and the counts of the kernel."""
        keys = super().load_state_dict(state_dict, strict, assign)
        wrong = self.share[(self.share < 0) | (self.share > 1)]
        if len(wrong):
            raise InputError(f"tensor partner.share: expected shares from 0 to 1, got {shown(float(wrong[0]))}")
        self.kernel.check()  # compiled loops go where its counts lead
        return keys

    def shares(self, task: NumericTask) -> dict[str, float]:
        """Return the share of the kernel in each target."""
        places = zip(task.targets, task.objective.places, strict=True)
        return {name: float(self.share[place.columns][0]) for name, place in places}

    def describe(self, task: NumericTask) -> str:
        """Describe the shares in words, target by target where they differ."""
        each = {k: f"{1 - share:.0%} network + {share:.0%} kernel" for k, share in self.shares(task).items()}
        alike = len({*each.values()}) == 1
        blend = each[task.targets[0]] if alike else "; ".join(f"{name}: {words}" for name, words in each.items())
        names = self.kernel.kernel_names
        compares = f", compares {', '.join(names)} embeddings" if "foundation" in names else ""
        return f"{blend}, kernel fitted to {len(self.kernel.row):,} molecules{compares}"
