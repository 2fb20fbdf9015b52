"""What edge features do in an attention."""

from __future__ import annotations

from typing import NamedTuple

import torch.nn.functional as F
from torch import Tensor


class EdgeFeatures(NamedTuple):
    r"""What edge features e do in an attention.

    Attributes:
        features: e, `[num_pairs, K]`, or None.
        bias: b, `[num_pairs, H]`, added to the score.
        score: \(w_b\), `[H, K]`: \(w_b \cdot e_{rs}\) is added to the score.
        key: \(W_K\), `[H, C, K]`: \(k_s + W_K e_{rs}\).
        value: \(W_V\), `[H, D, K]`: \(v_s + W_V e_{rs}\).
        state_value: \(W_S\), `[H, D, S]`: \(v_s + W_S \hat e_{rs}\), with the score's state \(\hat e\).
    """

    features: Tensor | None = None
    bias: Tensor | None = None
    score: Tensor | None = None
    key: Tensor | None = None
    value: Tensor | None = None
    state_value: Tensor | None = None

    @property
    def used_channels(self) -> int:
        """K, or 0 where the features do nothing but stand for a bias."""
        return 0 if all(w is None for w in (self.score, self.key, self.value)) else self.features.shape[1]

    @property
    def whole_bias(self) -> Tensor | None:
        r"""All that is added to the scores, \(w_b \cdot e_{rs} + b_{rs}\), `[num_pairs, H]`."""
        if self.score is None:
            return self.bias
        linear = F.linear(self.features, self.score)
        return linear if self.bias is None else self.bias + linear
