"""Coordinates: which settings need them, and which cannot use them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any

from gtx.architectures import DESCRIBED
from gtx.models.graph_transformer import GraphTransformer

Setting = Callable[..., GraphTransformer]

# what a published architecture decides by itself, unless its setting takes it
_PARTS = {
    *("score", "normaliser", "attention_dropout", "edge_value", "norm_first", "layer"),
    *("encodings", "local", "edges", "pair_channels", "pair_mlp", "virtual_nodes", "bond_tokens"),
}


def needs_coordinates(setting: Setting) -> Setting:
    """Add the argument `coordinates`, whether the molecules have any: False is a ValueError."""
    return _check(
        setting, "needed", False, f"the model {setting.__name__} needs coordinates, and the molecules have none"
    )


def without_coordinates(setting: Setting) -> Setting:
    """Add the argument `coordinates`, whether the molecules have any: True is a ValueError."""
    *others, last = (name for name, one in DESCRIBED.items() if one.coordinates != "none")
    do = f"{', '.join(others)} and {last} do"
    return _check(setting, "none", True, f"the model {setting.__name__} uses no coordinates; {do}")


def may_use_coordinates(setting: Setting) -> Setting:
    """Mark a model that takes the argument `coordinates`, and works with and without them."""
    return _check(setting, "optional", None, "")


def _check(setting: Setting, use: str, wrong: bool | None, message: str) -> Setting:
    own = signature(setting).parameters
    known = own.keys() | signature(GraphTransformer).parameters.keys()

    @wraps(setting)
    def build(out_channels: int, *, coordinates: bool = use == "needed", **arguments: Any) -> GraphTransformer:
        if coordinates == wrong:
            raise ValueError(message)
        for name in arguments:
            if name not in known:
                takes = ", ".join(sorted(known - _PARTS | own.keys() - {"arguments"}))
                raise ValueError(f"the model {setting.__name__} has no argument {name!r}; it takes {takes}")
            if name in _PARTS - own.keys():
                raise ValueError(f"the model {setting.__name__} decides {name!r} itself; swap parts of standard")
        if use == "optional":
            arguments["coordinates"] = coordinates
        return setting(out_channels, **arguments)

    build.coordinates = use
    return build
