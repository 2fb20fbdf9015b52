"""Fully sharded training: each process keeps its share of every weight, its gradient and its moments (PyTorch's FSDP2).

Weights keep their shapes and names as DTensors, so the optimiser finds matrices and parts by name as it does otherwise.
Lightning's own `FSDPStrategy` is PyTorch's older FSDP, which makes all weights flat: no matrix would be left to decay.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import torch
from pytorch_lightning.strategies import ModelParallelStrategy
from torch import Tensor
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from gtx.training.module import PropertyModule


class FullySharded(ModelParallelStrategy):
    """Lightning's strategy for FSDP2 over all processes; checkpoints are whole, in one file."""

    def __init__(self) -> None:
        super().__init__(data_parallel_size=1, tensor_parallel_size=1, save_distributed_checkpoint=False)

    def setup_environment(self) -> None:
        self._data_parallel_size = self.num_nodes * self.num_processes
        super().setup_environment()


class ShardedModule(PropertyModule):
    """Trains a copy of a module's model; each of its `layers`, if it has such, is gathered on its own.

    Args:
        module: whose model, task and settings are taken; its model stays as it is.
    """

    def __init__(self, module: PropertyModule) -> None:
        super().__init__(deepcopy(module.model), module.task, module.settings, module.seed)

    def configure_model(self) -> None:
        mesh = self.device_mesh["data_parallel"]
        self.model.to(mesh.device_type)
        for layer in getattr(self.model, "layers", ()):
            fully_shard(layer, mesh=mesh)
        fully_shard(self.model, mesh=mesh)


def own(tensor: Tensor) -> Tensor:
    """This process's share of a weight, in place; all of one that is not sharded."""
    return tensor.detach().to_local() if isinstance(tensor, DTensor) else tensor


def whole(tensor: Tensor) -> Tensor:
    """All of a weight, copied. Every process must ask for it."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor.detach().clone()


def shares(tensors: Sequence[Tensor], weights: Sequence[Tensor]) -> list[Tensor]:
    """This process's shares of tensors that are whole, as the weights are sharded, and on their device."""
    return [_share(tensor.to(weight.device), weight) for tensor, weight in zip(tensors, weights, strict=True)]


@torch.no_grad()
def _share(tensor: Tensor, weight: Any) -> Tensor:
    if not isinstance(weight, DTensor):
        return tensor
    return distribute_tensor(tensor, weight.device_mesh, weight.placements, src_data_rank=None).to_local()
