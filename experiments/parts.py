"""What each part of the default model is worth: the model without it, otherwise the defaults of `gtx train`.

    python -m experiments.mat --sets freesolv --models $(python -m experiments.parts) --jobs 2
    python -m experiments.scaffold --sets esol --models $(python -m experiments.parts) --jobs 2

`python -m experiments.parts` prints the models' names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Part(NamedTuple):
    """Of the default model.

    Attributes:
        title: what is left out.
        arguments: of the architecture, that leave it out.
        settings: of training, that do.
    """

    title: str
    arguments: Mapping[str, Any] = {}
    settings: Mapping[str, Any] = {}


_ENCODINGS = {"bonds": "bonds", "path": "path distances", "walk": "random walks", "degree": "degrees"}

PARTS: dict[str, Part] = {
    "descriptors": Part("descriptors", {"descriptors_to": []}),
    "descriptors-at-atoms": Part("descriptors at the atoms", {"descriptors_to": ["readout"]}),
    "descriptors-at-readout": Part("descriptors at the readout", {"descriptors_to": ["atoms"]}),
    "local": Part("message passing over bonds", {"local": False}),
    **{
        f"encoding-{name}": Part(f"encoding of {words}", {"encodings": [one for one in _ENCODINGS if one != name]})
        for name, words in _ENCODINGS.items()
    },
    "pair-mlp": Part("MLP of the pair features", {"pair_mlp": False}),
    "pair-values": Part("pair features in the values", {"edge_value": False}),
    "average": Part("average of the weights", {}, {"ema": 0.0}),
    "mean-max": Part("mean and maximum in the readout", {"readout": ["sum"]}),
    "sum": Part("sum in the readout", {"readout": ["mean", "max"]}),
}
PREFIX = "gtx-without-"
"""Before a part's name, the name of the model that lacks it."""


def part_of(model: str) -> Part:
    """What a model lacks; nothing, unless its name says so."""
    return PARTS[model.removeprefix(PREFIX)] if model.startswith(PREFIX) else Part("")


if __name__ == "__main__":
    print(*(PREFIX + name for name in PARTS))
