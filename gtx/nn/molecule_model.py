"""What training, prediction and explanation ask of a model of molecules, beside its outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import Tensor, nn
from torch_geometric.data import Batch

from gtx.nn.features import TrainingMolecules


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
