"""The embedding of molecules by the foundation, which a kernel may compare beside substructures and descriptors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from gtx.errors import InputError
from gtx.kernel import KernelRidge
from gtx.models import GraphTransformer
from gtx.prediction.foundation import FOUNDATION, foundation_card
from gtx.prediction.model_file import load_model
from gtx.prediction.predictor import without_onednn

Module = TypeVar("Module", bound=nn.Module)


@lru_cache(maxsize=4)
def _network(sha256: str, device: str) -> GraphTransformer:
    """Load the foundation, whose file has this checksum, to a device."""
    (network,), _ = load_model(FOUNDATION)
    assert isinstance(network, GraphTransformer)
    return network.to(device)


@dataclass(frozen=True)
class FoundationEmbedding:
    """The foundation as a function from a batch of B molecules to their embeddings, float32 `[B, width]`.

    It reads codes of atoms and bonds alone. A copy or a pickle of it is its checksum; the network is loaded once per
    process and device.

    Attributes:
        sha256: of the foundation's file.
    """

    sha256: str

    def __call__(self, batch: Batch) -> Tensor:
        with torch.no_grad(), without_onednn():
            return _network(self.sha256, str(batch.x.device)).embed(batch)


def foundation_spec() -> dict[str, Any]:
    """Return the argument `foundation` of a kernel, see `gtx.kernel.KernelRidge`.

    Raises:
        InputError: the foundation is not there, or damaged.
    """
    sha256 = foundation_card()["sha256"]
    return {"sha256": sha256, "width": _network(sha256, "cpu").width}


def attach_foundation(module: Module) -> Module:
    """Give the foundation to every kernel within a module that compares its embeddings; return the module.

    Raises:
        InputError: the foundation is not there, damaged, or not the one that a kernel was solved with.
    """
    for kernel in module.modules():
        if isinstance(kernel, KernelRidge) and kernel.foundation is not None and kernel.embeddings is not None:
            _check(kernel.foundation)
            kernel.embed = FoundationEmbedding(kernel.foundation["sha256"])
    return module


def _check(wanted: Mapping[str, Any]) -> None:
    available = foundation_spec()
    if wanted != available:
        raise InputError(
            f"its kernel compares embeddings by a foundation with SHA-256 {wanted['sha256'][:12]} and "
            f"{wanted['width']} numbers, this gtx has {available['sha256'][:12]} with {available['width']}: use the "
            "gtx that made the file, or train anew"
        )
