"""Models of molecules, what they are fitted to, and features beside the graph: scaling, a user's own, substructures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from gtx.graph import CompleteGraph
from gtx.graph.edge_selectors import hash_atom_environments

# --- What training, prediction and explanation ask of a model of molecules, and the molecules to which it is fitted.


class TrainingMolecules(Protocol):
    """Training molecules to which modules are fitted (M molecules, N atoms, E directed bonds), as a `MoleculeStore`.

    Attributes:
        atoms: `[N, A]`, codes of the atoms.
        bond_codes: `[E, F]`, codes of the bonds.
        descriptors: `[M, D]`, global features; NaN where one could not be computed.
        atom_features, bond_features: `[N, K]` and `[E, K]`, for models that read any; otherwise they need not be there.
    """

    @property
    def atoms(self) -> Tensor: ...

    @property
    def bond_codes(self) -> Tensor: ...

    @property
    def descriptors(self) -> Tensor: ...

    def __len__(self) -> int: ...

    def batch(self, index: Tensor) -> Batch:
        """Return the molecules `index` (int64 `[B]`), as a model takes them."""

    def subset(self, index: Tensor) -> TrainingMolecules:
        """Select some of the molecules."""

    def as_molecules(self, further: int = 0) -> TrainingMolecules:
        """Return the components of all rows, such as solute and solvent, one after the other; see
        `gtx.models.MultiComponentModel`.
        """


class MoleculeModel(nn.Module):
    """Base class of models that read a batch of molecules, as `gtx.data.MoleculeStore.batch` gives it.

    A subclass defines `forward(batch)`, which predicts in the scaled units of training, and overrides what else it can
    do. gtx trains and predicts with any `torch.nn.Module`; one that is no `MoleculeModel` embeds nothing and adapts to
    no training molecules.

    Attributes:
        per: level of the predictions, "molecule", "atom" or "bond".
        width: width of `embed`; None for a model without embeddings.
    """

    per: str = "molecule"
    width: int | None = None

    def embed(self, batch: Batch) -> Tensor:
        """Embed each molecule (or atom, or bond) of a batch, `[B, width]`.

        Raises:
            ValueError: the model has no embeddings.
        """
        raise ValueError(f"{type(self).__name__} has no embeddings of molecules")

    def observe(self, molecules: TrainingMolecules, more: bool = False) -> None:
        """Adapt to the TRAINING molecules before training: known codes, scales of features; by default to nothing.

        Args:
            molecules: the training molecules.
            more: whether the model was trained before; new codes are then added to the known ones, and scales stay.
        """

    @property
    def constant_shapes(self) -> bool:
        """True if batches of constant shape can be read, see `gtx.data.batches.make_constant_shape_batch`."""
        return False

    @property
    def fixed(self) -> Mapping[str, bool]:
        """Names of the encodings that are the same in every epoch, and in every network that names them.

        The value of a name is True if batches of constant shape need the encoding to be precomputed, see
        `gtx.data.batches.precompute_encodings`.
        """
        return {}

    def compute_encodings(self, batch: Batch, names: Sequence[str]) -> dict[str, tuple[Tensor | None, Tensor | None]]:
        """Compute some of the fixed encodings of a batch, for nodes `[N, *]` and pairs `[num_pairs, *]`."""
        return {}


# --- Global features on one scale.


class ClippedStandardScaler(nn.Module):
    """Scaler to z-scores by the mean and standard deviation of the training rows, clipped.

    An unknown value (NaN) is replaced by the training mean, so it has no effect. A feature that does not vary in
    training is always 0.

    Args:
        channels: number of features D.
        clip: largest absolute z-score of the output.

    Shapes:
        `[*, D]` to `[*, D]`.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, channels: int, clip: float = 5.0) -> None:
        super().__init__()
        self.clip = clip
        self.register_buffer("mean", torch.zeros(channels))
        self.register_buffer("scale", torch.ones(channels))  # one over the standard deviation

    def observe(self, values: Tensor) -> None:
        """Fit mean and standard deviation to the training rows, `[M, D]`."""
        values = values.double()
        known = values.isfinite()
        count = known.sum(0).clamp(min=1)
        mean = values.where(known, 0.0).sum(0) / count
        deviation = ((values - mean).where(known, 0.0).square().sum(0) / count).sqrt()
        varies = deviation > 1e-6 * mean.abs().clamp(min=1e-6)
        self.mean.copy_(mean)
        self.scale.copy_(torch.where(varies, 1 / deviation.clamp(min=1e-30), 0.0))

    def forward(self, values: Tensor) -> Tensor:
        return ((values - self.mean) * self.scale).nan_to_num(nan=0.0).clamp(-self.clip, self.clip)

    def __repr__(self) -> str:
        return f"ClippedStandardScaler({len(self.mean)}, clip={self.clip})"


# --- Features of atoms and bonds that the user gives.


class UserFeatureProjection(nn.Module):
    """Linear map of additional atom or bond features from the user, which are scaled first.

    A feature that is unknown (NaN), or equal to the training mean, adds nothing.

    Args:
        name: attribute of batches and training molecules with the features.
        features: number K of features; with 0, nothing is added.
        channels: width of the embedding to which the features are added; None without an embedding.

    Shapes:
        a batch, and an embedding `[*, channels]`, to `[*, channels]`.

    Raises:
        ValueError: the batch has none, or not K.
    """

    def __init__(self, name: Literal["atom_features", "bond_features"], features: int, channels: int | None) -> None:
        super().__init__()
        self.name = name
        self.features = features
        self.scaler: ClippedStandardScaler | None = ClippedStandardScaler(features) if features else None
        self.embedding: nn.Linear | None = nn.Linear(features, channels, bias=False) if features and channels else None

    def forward(self, batch: Batch, embedded: Tensor) -> Tensor:
        return embedded if self.embedding is None else embedded + self.embedding(self.scaled(batch))

    def scaled(self, batch: Batch) -> Tensor:
        """Compute the z-scores of the features, `[*, K]`, in the module's precision."""
        if self.scaler is None:
            raise ValueError(f"{self.name}: expected a model that reads some, got one that reads none")
        return self.scaler(self._of(batch)).to(self.scaler.mean.dtype)

    def of_pairs(self, batch: Batch, graph: CompleteGraph) -> Tensor:
        """Compute the z-scores of bonds as those of all pairs, `[num_pairs, K]`; 0 where there is no bond."""
        values = self.scaled(batch)
        pairs = values.new_zeros(graph.num_pairs, self.features)
        pairs[graph.pair_of(batch.edge_index)] = values
        return pairs

    def observe(self, molecules: TrainingMolecules) -> None:
        """Fit the scaling of the features to the TRAINING molecules."""
        if self.scaler is not None:
            self.scaler.observe(self._of(molecules))

    def _of(self, molecules: Any) -> Tensor:
        values, width = getattr(molecules, self.name, None), self.features
        if values is None or values.dim() != 2 or values.shape[1] != width:
            came = "none" if values is None else list(values.shape)
            raise ValueError(f"{self.name}: expected [n, {width}], see gtx.data.FeatureColumns; got {came}")
        return values


# --- Counts of the circular substructures of a molecule.

FARTHEST = 20
"""The largest radius, in bonds; a substructure as large hardly occurs in a second molecule."""


class SubstructureCountEmbedding(nn.Module):
    r"""Linear map of the logarithms of the counts of circular substructures of each molecule.

    Every atom starts with a label computed from its codes. In each round, the label is combined with the labels of the
    neighbours and the codes of the bonds to them. After r rounds, a label identifies the substructure within r bonds of
    the atom:

    \[ l_i^{r+1} = h\Bigl(l_i^r, \sum_{j \to i} h(l_j^r, b_{ij})\Bigr), \qquad
       u = W\, \mathrm{dropout}\bigl(\log(1 + c)\bigr), \quad
       c_k = \bigl|\{(i, r) : l_i^r \bmod K = k,\ r \le R\}\bigr| \]

    Source: the subtree kernel of Shervashidze et al. 2011 (JMLR 12:2539); with atoms and bonds of molecules the labels
    are those of Morgan's fingerprint (Rogers and Hahn 2010, 10.1021/ci100050t), folded to K.

    `observe` leaves out substructures that occur in too few training molecules, because a model could only memorise
    these molecules.

    Args:
        channels: width of the output u.
        atoms: columns of `batch.x` from which the first label is computed; by default all columns.
        bonds: columns of `batch.edge_attr` that are used; by default all columns.
        radius: largest radius R of a substructure, in bonds.
        folded: number K of counts; substructures are assigned to counts by a hash.
        least: smallest number of training molecules in which a substructure must occur to be used.
        dropout: dropout rate of the counts, in training.

    Shapes:
        a batch of B molecules (`x` `[N, A]`, `edge_index` `[2, E]`, `edge_attr` `[E, F]`, `batch` `[N]`) to
        `[B, channels]`.
    """

    used: Tensor

    def __init__(
        self,
        channels: int,
        atoms: Sequence[int] | None = None,
        bonds: Sequence[int] | None = None,
        radius: int = 2,
        folded: int = 2048,
        least: int = 3,
        dropout: float = 0.8,
    ) -> None:
        super().__init__()
        if not 0 <= radius <= FARTHEST or folded < 1:
            raise ValueError(
                f"expected a radius from 0 to {FARTHEST} and at least 1 folded, got radius={radius} and folded={folded}"
            )
        self.width = channels
        self.radius = radius
        self.folded = folded
        self.least = least
        self.atoms: list[int] | None = None if atoms is None else list(atoms)
        self.bonds: list[int] | None = None if bonds is None else list(bonds)
        self.dropout: nn.Dropout = nn.Dropout(dropout)
        self.embedding: nn.Linear = nn.Linear(folded, channels, bias=False)
        nn.init.normal_(self.embedding.weight, std=0.02)
        self.register_buffer("used", torch.ones(folded, dtype=torch.bool))

    def labels(self, batch: Batch) -> Tensor:
        """`hash_atom_environments` of the columns and the radius, int64 `[radius + 1, N]`."""
        return hash_atom_environments(batch, self.radius, self.atoms, self.bonds)

    def counts(self, batch: Batch) -> Tensor:
        """Count each substructure of each molecule, int64 `[B, folded]`."""
        kind = (self.labels(batch).remainder(self.folded) + batch.batch * self.folded).flatten()
        counts = kind.new_zeros(batch.num_graphs * self.folded).index_add_(0, kind, torch.ones_like(kind))
        return counts.view(batch.num_graphs, self.folded)

    def observe(self, molecules: TrainingMolecules) -> None:
        """Learn from the TRAINING molecules which substructures occur often enough."""
        batches = (molecules.batch(rows) for rows in torch.arange(len(molecules)).split(512))
        molecules_with = torch.stack([(self.counts(batch) > 0).sum(0) for batch in batches]).sum(0)
        self.used.copy_(molecules_with >= self.least)

    def forward(self, batch: Batch) -> Tensor:
        counts = self.counts(batch) * self.used
        return self.embedding(self.dropout(counts.to(self.embedding.weight.dtype).log1p()))

    def __repr__(self) -> str:
        sizes = f"{self.width}, radius={self.radius}, folded={self.folded}, dropout={self.dropout.p}"
        return f"SubstructureCountEmbedding({sizes})"
