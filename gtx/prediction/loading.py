"""Loading of model files: the predictor, and the foundation within models that read its embeddings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from gtx.base.errors import InputError
from gtx.data import MoleculeStore
from gtx.kernel import KernelRidge
from gtx.models import GraphTransformer
from gtx.models.readouts import PretrainedEmbedding
from gtx.prediction.foundation import FOUNDATION_MODEL, read_model_card
from gtx.prediction.model_file import read_model
from gtx.prediction.predictor import Predictor
from gtx.prediction.reaction_embedding import Sizes, embed_reactions
from gtx.tasks import Task
from gtx.tasks.closed_form import over_batches

KINDS = ("cpu", "cuda", "mps", "xpu")
"""Types of devices that compute; torch has others that do not."""


def load_predictor(
    path: str | Path,
    device: str | None = None,
    beams: int | None = None,
    *,
    model: nn.Module | Callable[[], nn.Module] | None = None,
    task: type[Task] | None = None,
) -> Predictor:
    """Load a trained model from a model file, as a `Predictor` (also available as `gtx.load`).

    Args:
        path: path of a model file, or `foundation`, the pretrained model that comes with gtx.
        device: name of a torch device; by default a GPU if there is one.
        beams: width of the beam search for a model that generates sequences, see
            `gtx.sequence.task.SequenceGenerationTask`.
        model: for a file with the weights of your own module: a module of the same shape, or a function that makes the
            module.
        task: for a task of your own: the class of the task.

    Raises:
        InputError: the file does not exist or cannot be used, the device does not exist, or the model does not accept
            `beams`.
    """
    members, header, kernel_member = read_model(path, model, task)
    if beams is not None:
        if "beams" not in {field.name for field in fields(header.task)}:
            raise InputError(
                f"{path} predicts numbers ({header.task.name}): beams are for a model that writes sequences"
            )
        chosen: dict[str, Any] = {"beams": beams}
        header = replace(header, task=replace(header.task, **chosen))
    try:
        for module in (*members, kernel_member) if model is None else ():
            if module is not None:
                attach_foundation(module)
    except InputError as reason:
        raise InputError(f"{path} cannot be used: {reason}") from None
    try:
        if torch.device(device or "cpu").type not in KINDS:
            raise InputError(f"device: expected one of {', '.join(KINDS)}, such as cuda:1, got {device!r}")
        return Predictor(members, header, device, kernel_member)
    except (RuntimeError, AssertionError) as reason:  # torch built without CUDA asserts
        raise InputError(f"device {device!r} cannot be used: {str(reason).splitlines()[0]}") from None


# --- The foundation within a model that reads its embeddings: the network, the kernel, or both.

Module = TypeVar("Module", bound=nn.Module)


@lru_cache(maxsize=4)
def _network(sha256: str, device: str) -> GraphTransformer:
    """Load the foundation to a device; the checksum of its file is the key of the cache."""
    (network,), *_ = read_model(FOUNDATION_MODEL)
    assert isinstance(network, GraphTransformer)
    return network.to(device)


@dataclass(frozen=True)
class FoundationEmbedding:
    """Function from a batch of B molecules to their embeddings by the foundation, float32 `[B, width]`.

    It reads only codes of atoms and bonds, and leaves the result in the batch as `embeddings`, so that network and
    kernel of a blend compute it once. A copy or a pickle holds only the checksum; the network is loaded once per
    process and device.
    """

    sha256: str  # of the foundation's file
    sides: Sizes | None = None  # numbers of codes of reactions, whose two sides are then embedded, [B, 2 width]

    @classmethod
    def of(cls, foundation: Mapping[str, Any]) -> FoundationEmbedding:
        """Make the embedding that `foundation_spec` describes; refuse that of another foundation."""
        sides = foundation.get("sides")
        if foundation != (available := foundation_spec(sides)):
            raise InputError(
                f"it reads embeddings by a foundation with SHA-256 {foundation['sha256'][:12]} and "
                f"{foundation['width']} numbers, this gtx has {available['sha256'][:12]} with {available['width']}: "
                "use the gtx that made the file, or train anew"
            )
        return cls(foundation["sha256"], sides)

    def __call__(self, batch: Batch) -> Tensor:
        if "embeddings" not in batch:
            with torch.no_grad():
                embed = self.network(str(batch.x.device)).embed
                batch.embeddings = embed(batch) if self.sides is None else embed_reactions(embed, batch, self.sides)
        return batch.embeddings

    def network(self, device: str = "cpu") -> GraphTransformer:
        """Return the pretrained network on a device."""
        return _network(self.sha256, device)


def foundation_spec(sides: Sizes | None = None) -> dict[str, Any]:
    """Return the argument `foundation` of a model, see `gtx.kernel.KernelRidge` and `gtx.models.graph_transformer`.

    For reactions, `sides` are the numbers of codes of atom and bond columns.
    """
    sha256 = read_model_card()["sha256"]
    spec: dict[str, Any] = {"sha256": sha256, "width": _network(sha256, "cpu").width}
    return spec if sides is None else spec | {"width": 2 * spec["width"], "sides": sides}


def attach_foundation(module: Module) -> Module:
    """Give the foundation to every part of a module that reads its embeddings, see `FoundationEmbedding.of`."""
    for part in reading_parts(module):
        part.embed = FoundationEmbedding.of(part.foundation)
    return module


def reading_parts(module: nn.Module) -> list[Any]:
    """List the kernels and readouts within a module that read embeddings of the foundation."""
    parts = [part for part in module.modules() if isinstance(part, (KernelRidge, PretrainedEmbedding))]
    return [part for part in parts if not isinstance(part, KernelRidge) or part.embeddings is not None]


def with_embeddings(store: MoleculeStore, foundation: Mapping[str, Any]) -> MoleculeStore:
    """Return a store of the same molecules with their embeddings by the foundation, see `foundation_spec`."""
    return replace(store, embeddings=over_batches(FoundationEmbedding.of(foundation), store))
