"""Whole models: the graph transformer and its named settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from gtx.models.graph_transformer import GraphTransformer
from gtx.models.standard import standard

__all__ = ["ARCHITECTURES", "Architecture", "GraphTransformer", "standard"]


class Architecture(NamedTuple):
    """A named setting of the graph transformer, as `gtx models` lists it."""

    make: Callable[..., GraphTransformer]
    about: str
    source: str
    needs: str


ARCHITECTURES: dict[str, Architecture] = {
    "standard": Architecture(
        standard,
        "full attention beside bond message passing; the default",
        "gtx",
        "nothing; can use coordinates",
    ),
}
"""What `gtx train --model` takes."""
