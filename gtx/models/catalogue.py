"""The named models, and a network out of plain values, as `config.yaml` and model files hold them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from inspect import getdoc, signature
from typing import Any, NamedTuple

from torch import nn

from gtx.base import additions
from gtx.base.errors import InputError
from gtx.base.schema import Entries, Text, arguments_of, check, entries, integer
from gtx.kernel import KernelRidge
from gtx.models.all_pairs import egt, gps, graphormer, grit, tgt, transformer
from gtx.models.assembly import graph_transformer
from gtx.models.composites import MultiComponentModel
from gtx.models.in_space import mat, rmat, torchmd_net, transformer_m
from gtx.models.sparse import exphormer, gaan, gat, gatv2, tokengt
from gtx.models.standard import kernel_ridge, standard
from gtx.nn import SubstructureCountEmbedding


class Architecture(NamedTuple):
    """Named architecture: settings of `GraphTransformer` that reproduce a published model.

    Attributes:
        make: makes the model: `make(out_channels, atom_sizes=..., bond_sizes=..., coordinates=..., ...)`.
        further: function or class that gets the arguments which `make` does not name.
    """

    make: Callable[..., nn.Module]
    further: Callable[..., nn.Module] = graph_transformer

    @property
    def about(self) -> str:
        """What it is: the first paragraph of its documentation."""
        return " ".join((getdoc(self.make) or "").partition("\n\n")[0].split()).removeprefix("Make ").rstrip(".")

    @property
    def source(self) -> str:
        """The paper; "gtx" for its own."""
        match = re.search(r"^Source: (.*?\(arXiv:[\d.]+\))", getdoc(self.make) or "", re.MULTILINE)
        return match[1] if match else "gtx"

    @property
    def coordinates(self) -> str:
        """Use of coordinates: "needed", "optional" or "none", see `gtx.models.assembly.published`."""
        parameter = signature(self.make).parameters.get("coordinates")
        return "none" if parameter is None else "needed" if parameter.default else "optional"


_MAKERS = (
    *(standard, transformer, gat, gatv2, gaan, mat, rmat, graphormer),
    *(egt, grit, gps, exphormer, torchmd_net, tgt, transformer_m, tokengt),
)
ARCHITECTURES = {make.__name__: Architecture(make) for make in _MAKERS}
"""Network architectures by the names that `gtx train --model` takes."""

CLOSED_FORM_MODELS: dict[str, Callable[..., KernelRidge]] = {"kernel": kernel_ridge, "tanimoto": kernel_ridge}
"""Models that are solved in closed form, by the names that `--model` takes; "tanimoto" has no descriptors."""

SPEC = entries(
    {"name": Text, "arguments": Entries},
    {"components": entries({"count": integer(2, 10)}, {"separate": bool, "further": integer()})},
)


def build_model(spec: Mapping[str, Any]) -> nn.Module:
    """Make the untrained network that a specification (name and arguments) describes.

    Args:
        spec: `{"name": one of ARCHITECTURES or CLOSED_FORM_MODELS, or of an annex, "arguments": {...}}`, see `gtx
            models`; for rows of several molecules, also `"components"`, the arguments of
            `gtx.models.MultiComponentModel`, in which the model encodes each molecule of a row.

    Raises:
        InputError: the name of the model is unknown, or an argument has the wrong type.
        TypeError, ValueError: the model itself refuses its arguments.
    """
    check(spec, SPEC, "model")
    name, arguments = spec["name"], spec["arguments"]
    known = ARCHITECTURES | {name: Architecture(make) for name, make in CLOSED_FORM_MODELS.items()}
    if name not in known:
        known |= additions("models")
    if name not in known:
        raise InputError(f"its model {name!r} is unknown; gtx has {', '.join(known)}")
    make, further = known[name]
    sections = {"model.arguments": (make, further, arguments)}
    if isinstance(arguments.get("encoder"), Mapping):
        sections["model.arguments.encoder"] = standard, graph_transformer, arguments["encoder"]
    for entry, (function, others, values) in sections.items():
        takes: Callable[..., Any] = others.__init__ if isinstance(others, type) else others  # type: ignore[misc]
        check(values, arguments_of(takes, function), entry)
        if isinstance(values.get("substructures"), Mapping):
            check(values["substructures"], arguments_of(SubstructureCountEmbedding.__init__), f"{entry}.substructures")
    if "components" in spec:
        return MultiComponentModel(partial(make, **arguments), **spec["components"])
    return make(**arguments)
