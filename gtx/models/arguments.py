"""Checks that the arguments of a `GraphTransformer` are consistent."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import Parameter
from typing import Any

from gtx.attention import Normaliser, Score
from gtx.nn import Substructures

PER = ("molecule", "atom", "bond")
OF_LAYERS = ("heads", "score", "normaliser", "edge_value", "attention_dropout")
"""Arguments that a custom `layer` replaces."""

MOST_LAYERS = 1000
"""More would take minutes to make, and nobody has trained so many."""


def check_arguments(given: Mapping[str, Any], usual: Mapping[str, Parameter]) -> None:
    """Raise a `ValueError` that names an argument at fault.

    Args:
        given: the arguments by name.
        usual: the parameters, with their defaults.
    """
    for name in ("out_channels", "channels", "layers", "pair_channels"):
        if given[name] is not None and given[name] < 1:
            raise ValueError(f"expected {name} of at least 1, got {given[name]}")
    if given["layers"] > MOST_LAYERS:
        raise ValueError(f"expected layers of at most {MOST_LAYERS:,}, got {given['layers']}")
    ignored = [name for name in OF_LAYERS if given[name] != usual[name].default]
    if ignored and given["layer"] is not None:
        raise ValueError(f"layer makes the layers and decides {', '.join(ignored)} itself: leave them out")
    for name, kind in (("score", Score), ("normaliser", Normaliser), ("substructures", Substructures)):
        if given[name] is not None and not isinstance(given[name], kind):
            home = kind.__module__.rpartition(".")[0]
            raise ValueError(f"expected a {kind.__name__} of {home}, a module, got {given[name]!r}")
    for name in ("edges", "layer"):
        if given[name] is not None and not callable(given[name]):
            raise ValueError(f"expected {name} that can be called, got {given[name]!r}")
    per, virtual_nodes, readout = given["per"], given["virtual_nodes"], given["readout"]
    if (virtual_nodes or given["bond_tokens"]) and given["pair_channels"] is None:
        raise ValueError("further nodes need pair features of their own: expected pair_channels, got None")
    if per not in PER:
        raise ValueError(f'expected per of "molecule", "atom" or "bond", got {per!r}')
    if unknown := set(given["also"] or {}) - ({"atom", "bond"} - {per}):
        raise ValueError(f'expected also of "atom" and "bond" beside per {per!r}, got {sorted(unknown)}')
    for kind, outputs in (given["also"] or {}).items():
        if isinstance(outputs, bool) or not isinstance(outputs, int) or outputs < 1:
            raise ValueError(f"expected a whole number of 1 or more outputs of each {kind}, got {outputs!r}")
    if virtual_nodes < 0 or (not virtual_nodes and not readout):
        raise ValueError(f"expected a readout or virtual nodes, got {list(readout)} and {virtual_nodes} of them")
