"""Arguments of the published models: which there are, and whether the molecules' coordinates suit."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any

from gtx.architectures import DESCRIBED
from gtx.models.graph_transformer import GraphTransformer

# what a published architecture decides by itself, unless its setting takes it
_PARTS = {
    *("score", "normaliser", "attention_dropout", "edge_value", "norm_first", "layer"),
    *("encodings", "local", "edges", "pair_channels", "pair_mlp", "virtual_nodes", "bond_tokens"),
}


def published(setting: Callable[..., GraphTransformer]) -> Callable[..., GraphTransformer]:
    """Refuse arguments that the model does not take, and coordinates that it needs or cannot use.

    The model gets an argument `coordinates`, whether the molecules have any; by default they have if it needs them
    (`gtx.architectures.DESCRIBED`).
    """
    name = setting.__name__
    use = DESCRIBED[name].coordinates
    own = signature(setting).parameters
    known = own.keys() | signature(GraphTransformer).parameters.keys()

    @wraps(setting)
    def build(out_channels: int, *, coordinates: bool = use == "needed", **arguments: Any) -> GraphTransformer:
        if use == "needed" and not coordinates:
            raise ValueError(f"the model {name} needs coordinates, and the molecules have none")
        if use == "none" and coordinates:
            *others, last = (name for name, one in DESCRIBED.items() if one.coordinates != "none")
            raise ValueError(f"the model {name} uses no coordinates; {', '.join(others)} and {last} do")
        for argument in arguments:
            if argument not in known:
                takes = ", ".join(sorted(known - _PARTS | own.keys() - {"arguments"}))
                raise ValueError(f"the model {name} has no argument {argument!r}; it takes {takes}")
            if argument in _PARTS - own.keys():
                raise ValueError(f"the model {name} decides {argument!r} itself; swap parts of standard")
        if use == "optional":
            arguments["coordinates"] = coordinates
        return setting(out_channels, **arguments)

    return build
