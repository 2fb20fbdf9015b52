"""Models around a model: several molecules a row, several conformers a molecule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Literal

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.utils import subgraph

from gtx.base.errors import InputError
from gtx.graph.packing import offsets
from gtx.models.graph_transformer import EncodedPart, GraphTransformer
from gtx.nn import MoleculeModel
from gtx.nn.embedding import has_coordinates
from gtx.nn.features import TrainingMolecules

# --- Rows of several molecules, such as a solute and a solvent: an embedding of each, and one head.


class MultiComponentModel(MoleculeModel):
    r"""Model of rows with K molecules (such as solute and solvent): their embeddings are concatenated before the head.

    \[ z = \mathrm{head}\bigl([f_1(m_1), \ldots, f_K(m_K)]\bigr), \qquad f_k = f \text{ unless separate} \]

    Each molecule is encoded independently of the other molecules. The order of the molecules matters, also with one
    encoder. Source: the shared and the separate encoders of Chemprop (Heid et al. 2024,
    https://doi.org/10.1021/acs.jcim.3c01250).

    Args:
        make: function that makes a `GraphTransformer`, or another `MoleculeModel` with embeddings and a `head` that
            starts with a linear layer. The input width of the head is adapted to K embeddings.
        count: K.
        separate: whether each component has a separate encoder, or all components share one encoder.
        further: number of the last columns of `batch.u` that belong to the whole row, such as a temperature; every
            encoder reads them.

    Raises:
        InputError: `make` does not return a suitable module.

    Shapes:
        a batch of B rows, of which each is one molecule made of its components (`component_sizes` `[B, K]`, atoms of
        each; `u` `[B, K D + further]`), otherwise as for `GraphTransformer`, to `[B, out_channels]`.
    """

    encoders: Sequence[GraphTransformer]
    width: int

    def __init__(self, make: Callable[[], nn.Module], count: int, separate: bool = False, further: int = 0) -> None:
        super().__init__()
        self.count = count
        self.further = further
        made = [make() for _ in range(count if separate else 1)]
        embeds = isinstance(made[0], MoleculeModel) and made[0].width is not None and made[0].per == "molecule"
        head = getattr(made[0], "head", None)
        if not (embeds and isinstance(head, nn.Sequential) and isinstance(head[0], nn.Linear)):
            raise InputError(f"{type(made[0]).__name__} has no embedding of a molecule: it cannot encode components")
        first, rest = head[0], list(head)[1:]
        self.width = count * first.in_features
        self.head: nn.Sequential = nn.Sequential(nn.Linear(self.width, first.out_features), *rest)
        for encoder in made:
            encoder.head = nn.Identity()
        self.encoders = nn.ModuleList(made)  # type: ignore[assignment]  # a sequence that torch's stubs leave untyped

    def forward(self, batch: Batch) -> Tensor:
        """Predictions `[B, out_channels]`, in the scaled units of training."""
        return self.head(self.embed(batch))

    def embed(self, batch: Batch) -> Tensor:
        """Embed each row, `[B, width]`: the concatenated embeddings of its components."""
        return join_parts([encoder.embed(part) for encoder, part, _ in self.parts(batch)], self.width)

    def parts(self, batch: Batch) -> list[EncodedPart]:
        """Divide a batch of rows by the encoders: into one part of all molecules, or one part for each component."""
        every = separate_components(batch, self.count, self.further)
        if len(self.encoders) == 1:
            return [EncodedPart(self.encoders[0], every, torch.arange(len(every.batch), device=every.batch.device))]
        return [
            EncodedPart(f, every_nth(every, k, self.count), (every.batch % self.count == k).nonzero().flatten())
            for k, f in enumerate(self.encoders)
        ]

    def observe(self, molecules: TrainingMolecules, more: bool = False) -> None:
        """Record the codes and scales of the TRAINING molecules, see `GraphTransformer.observe`."""
        every = molecules.as_molecules(self.further)
        for k, encoder in enumerate(self.encoders):
            own = torch.arange(k, len(every), len(self.encoders))
            encoder.observe(every if len(self.encoders) == 1 else every.subset(own), more)


def join_parts(vectors: Sequence[Tensor], width: int) -> Tensor:
    """Concatenate the vectors of the molecules of each part, see `MultiComponentModel.parts`, to `[B, width]`."""
    return torch.cat([each.reshape(-1, width // len(vectors)) for each in vectors], -1)


def separate_components(batch: Batch, count: int, further: int = 0) -> Batch:
    """Return a batch of B rows as one of B K molecules, component by component within a row.

    Each component of a row gets the last `further` columns of `u`. A batch without `component_sizes` `[B, K]` raises an
    `InputError`.
    """
    component_sizes = getattr(batch, "component_sizes", None)
    if component_sizes is None or component_sizes.shape[1] != count:
        came = "none" if component_sizes is None else f"{list(component_sizes.shape)}"
        raise InputError(
            f"batch.component_sizes: expected the atoms of each of {count} components, [B, {count}], as "
            f"gtx.molecules.Featuriser makes them with components; got {came}"
        )
    sizes = component_sizes.flatten()
    contents = {name: batch[name] for name in ("x", "edge_index", "edge_attr", "pos") if name in batch}
    if "u" in batch:
        own, rest = batch.u.tensor_split([batch.u.shape[1] - further], 1)
        own = own.reshape(len(sizes), own.shape[1] // count)
        contents["u"] = torch.cat([own, rest.repeat_interleave(count, 0)], 1)
    return _make_batch(contents, sizes)


def every_nth(batch: Batch, k: int, count: int) -> Batch:
    """Select component k of each row of a batch of B K molecules: the numbers k, k + K, k + 2K, ..."""
    taken = batch.batch % count == k
    contents = {name: batch[name][taken] for name in ("x", "pos") if name in batch}
    edge_index, edge_attr = subgraph(taken, batch.edge_index, batch.edge_attr, relabel_nodes=True)
    contents |= {"edge_index": edge_index, "edge_attr": edge_attr}
    if "u" in batch:
        contents["u"] = batch.u[k::count]
    return _make_batch(contents, batch.ptr.diff()[k::count])


def _make_batch(contents: dict[str, Tensor], sizes: Tensor) -> Batch:
    """Make a batch of molecules of these numbers of atoms, int64 `[B]`."""
    batch = torch.arange(len(sizes), device=sizes.device).repeat_interleave(sizes, output_size=len(contents["x"]))
    return Batch(_base_cls=Data, batch=batch, ptr=offsets(sizes), **contents)


# --- Several conformers of a molecule, pooled to one vector.


class MultiConformerModel(MoleculeModel):
    r"""Model that reads several conformers of each molecule and pools their embeddings before the head.

    \[ y = \mathrm{head}\Bigl( \sum_k a_k z_k \Bigr), \qquad a_k = 1 / K \quad \text{or} \quad
       a_k = \operatorname{softmax}_k (w \cdot z_k) \]

    The vector \(z_k\) is the embedding of conformer k (`GraphTransformer.embed`), and the sum runs over the known
    conformers. Energies and Boltzmann weights are not used. The prediction does not depend on the order of the
    conformers. A molecule without conformers is read as a molecule with unknown coordinates. Time and memory are those
    of K molecules.

    Source: attention over the members of a set, Ilse et al. 2018 (arXiv:1802.04712), without the gate; over conformers,
    Axelrod & Gómez-Bombarelli 2020 (arXiv:2012.08452).

    Args:
        model: model that reads one conformer and predicts for molecules.
        pool: kind of pooling over conformers, "mean" or "attention".

    Shapes:
        a batch with `pos` `[N, 3 K]`, the coordinates of the first conformer, then of the next, in Å, NaN where
        unknown, to `[B, out_channels]`. A `gtx.data.MoleculeStore` with `positions` `[N, 3 K]` makes such batches.

    Raises:
        ValueError: another word for pool, or a model of atoms or bonds; in `forward`, coordinates of another shape.
    """

    def __init__(self, model: GraphTransformer, pool: Literal["mean", "attention"] = "mean") -> None:
        super().__init__()
        if pool not in ("mean", "attention"):
            raise ValueError(f'expected the pool "mean" or "attention", got {pool!r}')
        if (levels := [model.per, *model.also]) != ["molecule"]:
            raise ValueError(f"conformers are pooled: expected a model per molecule, got per {' and '.join(levels)}")
        self.model = model
        self.width = model.width
        self.pool = pool
        self.weigh: nn.Linear | None = nn.Linear(model.readout.width, 1, bias=False) if pool == "attention" else None

    @property
    def constant_shapes(self) -> bool:
        return self.model.constant_shapes

    @property
    def fixed(self) -> dict[str, bool]:
        return self.model.fixed

    def compute_encodings(self, batch: Batch, names: Sequence[str]) -> dict[str, tuple[Tensor | None, Tensor | None]]:
        return self.model.compute_encodings(batch, names)

    def forward(self, batch: Batch) -> Tensor:
        """Predictions `[B, out_channels]`, in the scaled units of training."""
        return self.model.head(self.embed(batch))

    def embed(self, batch: Batch) -> Tensor:
        """Embed each molecule, `[B, width]`: the weighted mean over its conformers."""
        each, weights = self.conformers(batch)
        return (weights.unsqueeze(-1) * each).sum(1)

    def conformers(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Embed each conformer, `[B, K, width]`, and weigh it, `[B, K]`: weight 0 for an unknown one."""
        pos = batch.pos
        if pos is None or pos.dim() != 2 or pos.shape[1] % 3 or not pos.shape[1]:
            raise ValueError(f"expected pos [N, 3 K] of K conformers, got {None if pos is None else list(pos.shape)}")
        each, known = [], []
        for place in pos.split(3, 1):
            one = copy(batch)
            one.pos = place
            each.append(self.model.embed(one))
            known.append(has_coordinates(place, batch.batch, batch.num_graphs))
        vectors, there = torch.stack(each, 1), torch.stack(known, 1)
        there = torch.cat([there[:, :1] | ~there.any(1, keepdim=True), there[:, 1:]], 1)
        score = vectors.new_zeros(there.shape) if self.weigh is None else self.weigh(vectors).squeeze(-1)
        return vectors, score.masked_fill(~there, -torch.inf).softmax(1)

    def observe(self, molecules: TrainingMolecules, more: bool = False) -> None:
        """Let the wrapped model observe the training molecules."""
        self.model.observe(molecules, more)
