"""The default model without one of its parts, or with one more; otherwise the defaults of `gtx train`.

    python -m experiments.mat --sets freesolv --models $(python -m experiments.parts) --jobs 2
    python -m experiments.scaffold --sets esol --models $(python -m experiments.parts) --jobs 2

`python -m experiments.parts` prints the names of these models.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Part(NamedTuple):
    """What is left out of the default model, or added to it.

    Attributes:
        title: the difference in words.
        arguments: of the architecture, that make it.
        settings: of training, that do.
        featuriser: how molecules are read, likewise.
        start: the model file that training starts from.
        adapted: whether it is adapted first, to the training and validation molecules, as `gtx adapt` does it.
    """

    title: str
    arguments: Mapping[str, Any] = {}
    settings: Mapping[str, Any] = {}
    featuriser: Mapping[str, Any] = {}
    start: str | None = None
    adapted: bool = False


_ENCODINGS = {"bonds": "bonds", "path": "path distances", "walk": "random walks", "degree": "degrees"}

PARTS: dict[str, Part] = {
    "gtx-without-descriptors": Part("without descriptors", {"descriptors_to": []}),
    "gtx-without-substructures": Part("without counts of substructures", {"substructures": None}),
    "gtx-without-local": Part("without message passing over bonds", {"local": False}),
    **{
        f"gtx-without-{name}": Part(
            f"without the encoding of {words}", {"encodings": [one for one in _ENCODINGS if one != name]}
        )
        for name, words in _ENCODINGS.items()
    },
    "gtx-without-pair-mlp": Part("without the MLP of the pair features", {"pair_mlp": False}),
    "gtx-without-pair-values": Part("without pair features in the values", {"edge_value": False}),
    "gtx-without-average": Part("without averaged weights", {}, {"ema": 0.0}),
    "gtx-with-zero-head": Part("with a head whose outputs are 0 at first", {"zero_head": True}),
    "gtx-with-ring": Part("with an encoding of common rings", {"encodings": [*_ENCODINGS, "ring"]}),
    "gtx-with-sum": Part("with a sum alone as readout", {"readout": ["sum"]}),
    "gtx-with-mean-max": Part("with mean and maximum alone as readout", {"readout": ["mean", "max"]}),
}
"""By the models' names."""

STARTS: dict[str, Part] = {
    "gtx-foundation": Part("from the foundation", start="foundation"),
    "gtx-foundation-full": Part("from the foundation, all at the whole rate", {}, {"rates": {}}, start="foundation"),
    "gtx-foundation-frozen": Part(
        "from the foundation, encoder frozen",
        {},
        {"rates": {"all": 0, "head": 1, "substructures": 1}},
        start="foundation",
    ),
    "gtx-foundation-bare": Part(
        "from the foundation, without descriptors", {}, {}, {"descriptors": False}, start="foundation"
    ),
    "gtx-foundation-apart": Part(
        "from a foundation that never saw the test rows' scaffolds", start="build/foundation/foundation-apart.gtx"
    ),
    "gtx-mix": Part("with a kernel beside it, the default of `gtx train`", {}, {"mix": None}),
    "gtx-foundation-mix": Part("from the foundation, with a kernel beside it", {}, {"mix": None}, start="foundation"),
    "gtx-adapted-mix": Part(
        "from the foundation adapted to the set's molecules, with a kernel beside it",
        {},
        {"mix": None},
        start="foundation",
        adapted=True,
    ),
    "gtx-kernel": Part("as the kernel alone (`--model kernel`)", {}, {"model": "kernel"}),
    "gtx-tanimoto": Part("as the kernel without descriptors (`--model tanimoto`)", {}, {"model": "tanimoto"}),
    "gtx-128": Part("of the foundation's shape, from scratch", {"channels": 128}),
}
"""The foundation, the kernel, and what they are compared with, by the models' names."""


if __name__ == "__main__":
    print(*PARTS)
