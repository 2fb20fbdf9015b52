"""The state of an edge, updated layer by layer."""

from __future__ import annotations

from torch import Tensor, nn

from gtx.gelu import GELU
from gtx.graph import CompleteGraph
from gtx.nn.dropout import Dropout


class EdgeUpdate(nn.Module):
    r"""A residual update of edge states from what the attention's score was made of.

    With norms first, \(e \leftarrow e + W \hat e\), then \(e \leftarrow e + \mathrm{MLP}(\mathrm{norm}(e))\); with
    norms last, \(e \leftarrow \mathrm{norm}(e + W \hat e)\), then
    \(e \leftarrow \mathrm{norm}(e + \mathrm{MLP}(e))\). \(\hat e\) is the state of `gtx.attention.Score.state`, all
    heads side by side: the score itself in EGT, a vector in GRIT. Between the two, edges may attend to each other, a
    residual of the same form.

    Sources: Hussain et al. 2022, EGT (arXiv:2108.03348), eq. 6 to 9; Ma et al. 2023, GRIT (arXiv:2305.17589), eq. 3,
    without the MLP; Hussain et al. 2024, TGT (arXiv:2402.04538), with triplets.

    Args:
        channels: K, of the edge states.
        state_width: channels of \(\hat e\), see `EdgeAttention.state_width`.
        hidden: width within the MLP; 0 leaves it out.
        dropout: on both branches, in training.
        norm_first: pre-norm; if False, post-norm.
        triplets: attention between edges, such as `gtx.nn.TripletAttention`, or None.

    Shapes:
        edge_attr `[E, K]` and states `[E, state_width]` to `[E, K]`; with triplets the edges too, an edge list or a
        complete graph.
    """

    def __init__(
        self,
        channels: int,
        state_width: int,
        hidden: int = 0,
        dropout: float = 0.0,
        norm_first: bool = True,
        triplets: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.lin_state = nn.Linear(state_width, channels)
        self.norm_first = norm_first
        self.norm = nn.LayerNorm(channels) if hidden or not norm_first else None
        self.dropout = Dropout(dropout)
        self.triplets = triplets
        self.norm_triplets = None if triplets is None else nn.LayerNorm(channels)
        self.mlp = self.norm_mlp = None
        if hidden:
            self.mlp = nn.Sequential(nn.Linear(channels, hidden), GELU(), nn.Linear(hidden, channels))
            self.norm_mlp = None if norm_first else nn.LayerNorm(channels)

    def forward(self, edge_attr: Tensor, states: Tensor, edges: Tensor | CompleteGraph | None = None) -> Tensor:
        e = edge_attr + self.dropout(self.lin_state(states))
        e = e if self.norm_first else self.norm(e)
        if self.triplets is not None:
            if edges is None:
                raise ValueError("triplets are made of edges: expected an edge list or a complete graph, got None")
            normed = self.norm_triplets(e) if self.norm_first else e
            e = e + self.dropout(self.triplets(normed, edges))
            e = e if self.norm_first else self.norm_triplets(e)
        if self.mlp is None:
            return e
        if self.norm_first:
            return e + self.dropout(self.mlp(self.norm(e)))
        return self.norm_mlp(e + self.dropout(self.mlp(e)))
