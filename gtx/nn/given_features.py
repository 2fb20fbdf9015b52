"""Features of atoms and bonds that the user gives."""

from __future__ import annotations

from typing import Any, Literal

from torch import Tensor, nn
from torch_geometric.data import Batch

from gtx.graph import CompleteGraph
from gtx.nn.scaling import ClippedScaler
from gtx.nn.training_set import TrainingSet


class GivenFeatures(nn.Module):
    """Numbers of each atom or bond of a batch, scaled, and mapped to the width of what they are added to.

    One that is unknown (NaN), or as it is on average, adds nothing.

    Args:
        name: where a batch, and the training molecules, have them.
        features: how many K; 0 for none, and nothing is added.
        channels: width of the embedding that they are added to; None where there is none.

    Shapes:
        a batch, and an embedding `[*, channels]`, to `[*, channels]`.

    Raises:
        ValueError: the batch has none, or not K.
    """

    def __init__(self, name: Literal["atom_features", "bond_features"], features: int, channels: int | None) -> None:
        super().__init__()
        self.name, self.features = name, features
        self.scaler = ClippedScaler(features) if features else None
        self.embedding = nn.Linear(features, channels, bias=False) if features and channels else None

    def forward(self, batch: Batch, embedded: Tensor) -> Tensor:
        return embedded if self.embedding is None else embedded + self.embedding(self.scaled(batch))

    def scaled(self, batch: Batch) -> Tensor:
        """Their z-scores, `[*, K]`."""
        return self.scaler(self._of(batch))

    def of_pairs(self, batch: Batch, graph: CompleteGraph) -> Tensor:
        """The z-scores of bonds as those of all pairs, `[num_pairs, K]`; 0 where there is no bond."""
        values = self.scaled(batch)
        pairs = values.new_zeros(graph.num_pairs, self.features)
        pairs[graph.pair_of(batch.edge_index)] = values
        return pairs

    def observe(self, molecules: TrainingSet) -> None:
        """Learn from the TRAINING molecules how they are distributed."""
        if self.features:
            self.scaler.observe(self._of(molecules))

    def _of(self, molecules: Any) -> Tensor:
        values, width = getattr(molecules, self.name, None), self.features
        if values is None or values.dim() != 2 or values.shape[1] != width:
            came = "none" if values is None else list(values.shape)
            raise ValueError(f"{self.name}: expected [n, {width}], see gtx.data.FeatureColumns; got {came}")
        return values
