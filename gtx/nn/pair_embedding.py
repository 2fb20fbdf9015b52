"""From the pair features of several encodings to one vector per pair."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from gtx.encodings import Codes, Feature
from gtx.gelu import GELU
from gtx.nn.embedding import embed
from gtx.nn.fast.features import embed_features


class PairEmbedding(nn.Module):
    r"""The sum of what each feature is embedded to, and an MLP; or the features' own values side by side.

    \[ e_{rs} = \mathrm{MLP}\Bigl( \sum_f W_f\, f_{rs} \Bigr), \qquad \mathrm{MLP} = \mathrm{GELU} \circ W \circ
       \mathrm{GELU} \]

    In single precision on a processor, one compiled loop does it (`gtx/nn/fast/features.c`).

    Args:
        features: what the encodings yield per pair.
        channels: width of the embedding; None for the values as they are, side by side.
        mlp: whether the MLP follows the sum.

    Shapes:
        one tensor `[num_pairs, *]` per feature to `[num_pairs, width]`; None where there are no features.

    Raises:
        ValueError: codes are to go in as they are.
    """

    def __init__(self, features: Sequence[Feature], channels: int | None, mlp: bool = True) -> None:
        super().__init__()
        self.parts = self.mlp = None
        self.width = channels if features else None
        if channels is None:
            if any(isinstance(feature, Codes) for feature in features):
                raise ValueError("codes must be embedded: expected pair_channels, got None")
            self.width = sum(feature.channels for feature in features) or None
        elif features:
            self.parts = nn.ModuleList(embed(feature, channels) for feature in features)
            self.mlp = nn.Sequential(GELU(), nn.Linear(channels, channels), GELU()) if mlp else None

    def forward(self, features: Sequence[Tensor]) -> Tensor | None:
        if not features:
            return None
        if self.parts is None:
            return torch.cat(list(features), -1)
        embedded = embed_features(self.parts, self.mlp, features)
        if embedded is not None:
            return embedded
        pairs = sum(part(feature) for part, feature in zip(self.parts, features, strict=True))
        return pairs if self.mlp is None else self.mlp(pairs)
