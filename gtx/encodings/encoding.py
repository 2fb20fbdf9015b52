"""The base class of encodings: functions of a batch that declare which node and pair features they yield."""

from __future__ import annotations

from inspect import signature
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from gtx.graph import CompleteGraph


class CategoricalFeatureSpec(NamedTuple):
    """Integer features int64 `[*, len(sizes)]` for learned embeddings; column c has the codes 0 to `sizes[c] - 1`.

    Attributes:
        sizes: number of codes of each column.
    """

    sizes: tuple[int, ...]


class ContinuousFeatureSpec(NamedTuple):
    """Real-valued features `[*, channels]`."""

    channels: int


Feature = CategoricalFeatureSpec | ContinuousFeatureSpec
"""Declaration of what an encoding yields: integer codes or real numbers."""


class Encoding(nn.Module):
    """Base class of encodings of positions or distances, computed for a whole batch on its device.

    Attributes:
        node: kind of the features of nodes, or None.
        pair: kind of the features of ordered pairs of nodes, or None.
        constant_shapes: whether the encoding accepts batches of constant shape (`ConstantShapeGraph`) and
            copies nothing from the GPU.
        fixed: whether the features of a molecule are the same in every call, so that they can be computed once: the
            encoding has no learned weights and no random numbers.
    """

    node: Feature | None = None
    pair: Feature | None = None
    constant_shapes: bool = False
    fixed: bool = False

    def forward(self, data: Data, graph: CompleteGraph) -> tuple[Tensor | None, Tensor | None]:
        """Compute node features `[N, *]` and pair features `[num_pairs, *]`, flat and sorted by receiver as in `graph`.

        Args:
            data: a PyG `Data` or `Batch` with `edge_index` and whatever else the encoding reads.
            graph: complete graph of the molecules of the batch.
        """
        raise TypeError(f"{type(self).__name__} does not say what it computes")

    def __repr__(self) -> str:
        """Write the class and the arguments that are attributes of the same name; equal texts, equal features."""
        values = {name: getattr(self, name) for name in signature(type(self)).parameters if hasattr(self, name)}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in values.items())})"


def integer_codes(data: Data, name: Literal["x", "edge_attr"]) -> Tensor:
    """Return the codes of the atoms or directed bonds of a batch, integers `[*, F]`.

    Raises:
        ValueError: there are none, they are no integers, or on a CPU one is negative.
    """
    codes = getattr(data, name, None)
    real = codes is not None and (codes.is_floating_point() or codes.is_complex() or codes.dtype == torch.bool)
    if codes is None or real or codes.dim() != 2:
        came = None if codes is None else f"{codes.dtype} {list(codes.shape)}"
        advice = "; of one-hot columns, argmax(-1, keepdim=True) is the code" if real else ""
        raise ValueError(f"expected {name} of codes, integers [n, F], got {came}{advice}")
    if codes.device.type == "cpu" and not torch.compiler.is_compiling() and bool((codes < 0).any()):
        row, column = (codes < 0).nonzero()[0].tolist()
        raise ValueError(
            f"expected {name} of codes from 0 on, got {int(codes[row, column])} in row {row}, column {column}"
        )
    return codes


class AddEncodingToData(BaseTransform):
    """PyG transform that adds the features of an encoding to a `Data`.

    Args:
        encoding: the encoding to compute.
        node: name of the attribute for the node features `[n, *]`.
        pair: name of the attribute for the pair features, flat `[n * n, *]`, sorted by receiver. In a batch of such
            `Data`, the pair features are concatenated, as `gtx.nn.EdgeAttention` expects with a `CompleteGraph`.
    """

    def __init__(self, encoding: Encoding, node: str = "node_encoding", pair: str = "pair_encoding") -> None:
        self.encoding = encoding
        self.node = node
        self.pair = pair

    @torch.no_grad()
    def forward(self, data: Data) -> Data:
        device = next((value.device for _, value in data if isinstance(value, Tensor)), None)
        ptr = data.ptr if "ptr" in data else torch.tensor([0, data.num_nodes], device=device)
        graph = CompleteGraph.from_ptr(ptr, pack=False)
        node, pair = self.encoding(data, graph)
        if node is not None:
            data[self.node] = node
        if pair is not None:
            data[self.pair] = pair
        return data

    def __repr__(self) -> str:
        return f"AddEncodingToData({self.encoding})"
