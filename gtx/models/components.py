"""Rows of several molecules, such as a solute and a solvent: an embedding of each, and one head."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

from gtx.errors import InputError
from gtx.nn import TrainingSet


class ComponentSet(TrainingSet, Protocol):
    """Training rows of several molecules, such as a `gtx.data.MoleculeStore` with `parts`."""

    def apart(self, further: int = 0) -> ComponentSet:
        """The molecules of all rows, one after the other."""

    def subset(self, index: Tensor) -> ComponentSet:
        """Some of them."""


class Components(nn.Module):
    r"""Predicts for K molecules together: their embeddings, side by side, go to one head.

    \[ z = \mathrm{head}\bigl([f_1(m_1), \ldots, f_K(m_K)]\bigr), \qquad f_k = f \text{ unless separate} \]

    Molecules see nothing of each other before the head. Their order counts, with one encoder too. Source: the shared
    and the separate encoders of Chemprop (Heid et al. 2024, https://doi.org/10.1021/acs.jcim.3c01250).

    Args:
        make: makes a `GraphTransformer`, or another module with `embed`, `observe`, `unseen` and a `head` of which the
            first module is linear; the head's shape is kept but for its width.
        count: K.
        separate: an encoder for each component; otherwise one for all.
        further: how many of the last columns of `batch.u` are no component's, such as a temperature; every encoder
            reads them.

    Raises:
        InputError: `make` makes no such module.

    Shapes:
        a batch of B rows, of which each is one molecule made of its components (`parts` `[B, K]`, atoms of each; `u`
        `[B, K D + further]`), otherwise as for `GraphTransformer`, to `[B, out_channels]`.
    """

    def __init__(self, make: Callable[[], nn.Module], count: int, separate: bool = False, further: int = 0) -> None:
        super().__init__()
        self.count, self.further = count, further
        made = [make() for _ in range(count if separate else 1)]
        whole = hasattr(made[0], "embed") and getattr(made[0], "per", "molecule") == "molecule"
        if not (whole and isinstance(getattr(made[0], "head", None), nn.Sequential)):
            raise InputError(f"{type(made[0]).__name__} has no embedding of a molecule: it cannot encode components")
        first, *rest = made[0].head
        self.width = count * first.in_features  # of `embed`
        self.head = nn.Sequential(nn.Linear(self.width, first.out_features), *rest)
        for encoder in made:
            encoder.head = nn.Identity()
        self.encoders = nn.ModuleList(made)

    def forward(self, batch: Batch) -> Tensor:
        """Predictions `[B, out_channels]`, in the scaled units of training."""
        return self.head(self.embed(batch))

    def embed(self, batch: Batch) -> Tensor:
        """One vector per row, `[B, width]`: those of its components, side by side."""
        every = components_apart(batch, self.count, self.further)
        if len(self.encoders) == 1:
            return self.encoders[0].embed(every).reshape(batch.num_graphs, self.width)
        return torch.cat([f.embed(every_nth(every, k, self.count)) for k, f in enumerate(self.encoders)], -1)

    def observe(self, molecules: ComponentSet, more: bool = False) -> None:
        """Learn from the TRAINING molecules, see `GraphTransformer.observe`."""
        every = molecules.apart(self.further)
        for k, encoder in enumerate(self.encoders):
            own = torch.arange(k, len(every), len(self.encoders))
            encoder.observe(every if len(self.encoders) == 1 else every.subset(own), more)

    def unseen(self, batch: Batch) -> list[list[tuple[str, int, int]]]:
        """Per row, the codes treated as "other", see `GraphTransformer.unseen`."""
        every = components_apart(batch, self.count, self.further)
        found: list[set[tuple[str, int, int]]] = [set() for _ in range(batch.num_graphs)]
        for k, encoder in enumerate(self.encoders):
            shared = len(self.encoders) == 1
            for i, codes in enumerate(encoder.unseen(every if shared else every_nth(every, k, self.count))):
                found[i // self.count if shared else i].update(codes)
        return [sorted(codes) for codes in found]


def components_apart(batch: Batch, count: int, further: int = 0) -> Batch:
    """A batch of B rows as one of B K molecules, component by component within a row.

    Args:
        batch: of rows with `parts` `[B, K]`.
        count: K.
        further: how many of the last columns of `u` are no component's; each of a row's gets them.

    Raises:
        InputError: the batch does not say which atoms are whose.
    """
    parts = getattr(batch, "parts", None)
    if parts is None or parts.shape[1] != count:
        came = "none" if parts is None else f"{list(parts.shape)}"
        raise InputError(
            f"batch.parts: expected the atoms of each of {count} components, [B, {count}], as gtx.molecules.Featuriser "
            f"makes them with components; got {came}"
        )
    sizes = parts.flatten()
    contents = {name: batch[name] for name in ("x", "edge_index", "edge_attr", "pos") if name in batch}
    if "u" in batch:
        own, rest = batch.u.tensor_split([batch.u.shape[1] - further], 1)
        own = own.reshape(len(sizes), own.shape[1] // count)
        contents["u"] = torch.cat([own, rest.repeat_interleave(count, 0)], 1)
    graph = torch.arange(len(sizes), device=sizes.device)
    contents["batch"] = graph.repeat_interleave(sizes, output_size=len(batch.x))
    contents["ptr"] = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
    return Batch(_base_cls=Data, **contents)


def every_nth(batch: Batch, k: int, count: int) -> Batch:
    """Of a batch of B K molecules the numbers k, k + K, k + 2K, ...: component k of each row."""
    taken = batch.batch % count == k
    bonds = taken[batch.edge_index[0]]
    number = taken.cumsum(0) - 1
    contents = {name: batch[name][taken] for name in ("x", "pos") if name in batch}
    contents["edge_index"] = number[batch.edge_index[:, bonds]]
    if "edge_attr" in batch:
        contents["edge_attr"] = batch.edge_attr[bonds]
    if "u" in batch:
        contents["u"] = batch.u[k::count]
    contents["batch"] = batch.batch[taken] // count
    sizes = batch.ptr.diff()[k::count]
    contents["ptr"] = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
    return Batch(_base_cls=Data, **contents)
