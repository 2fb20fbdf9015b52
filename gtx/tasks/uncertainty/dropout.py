"""How far thinned copies of a network disagree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from itertools import chain
from typing import ClassVar

import torch
from torch import Tensor, nn

from gtx.errors import InputError
from gtx.tasks.uncertainty.method import Method


class McDropout(Method):
    """Monte Carlo dropout: predictions of networks that each lack some channels (Gal & Ghahramani 2016,
    arXiv:1506.02142).

    Wherever training drops entries, a copy of the network lacks channels, drawn by the copy's number: the same ones for
    all atoms of all molecules, as of all steps of a sequence in Gal & Ghahramani 2016b (arXiv:1512.05287). So a
    molecule's prediction does not depend on its batch, nor on the order of its atoms. The prediction is the copies'
    mean. Dropout of attention weights and whole layers is left out.

    Args:
        samples: copies of each member.
    """

    word: ClassVar[str] = "dropout"

    def __init__(self, samples: int = 20) -> None:
        self.samples = samples

    def networks(self, members: Sequence[nn.Module]) -> list[nn.Module]:
        return [thinned(member, seed) for member in members for seed in range(self.samples)]

    def check(self, model: nn.Module, members: int) -> None:
        if not any(_dropouts(model)):
            raise InputError(
                f"uncertainty dropout: {type(model).__name__} drops nothing in training; "
                'a network does with model_arguments={"dropout": 0.1} in Python and --model-arguments dropout=0.1 on '
                "the command line"
            )


class Lacking(nn.Module):
    """Sets the same channels of whatever it reads to zero, each drawn with probability p, and divides the others by
    1 - p.

    Args:
        p: as of dropout.
        seed: decides the channels.
    """

    def __init__(self, p: float, seed: int) -> None:
        super().__init__()
        self.p, self.seed = p, seed

    def forward(self, x: Tensor) -> Tensor:
        random = torch.rand(x.shape[-1], generator=torch.Generator().manual_seed(self.seed))
        return x * ((random >= self.p) / (1 - self.p)).to(x)


def thinned(model: nn.Module, seed: int) -> nn.Module:
    """A copy of a model without some of its channels, with the same weights in memory."""
    shared = {id(tensor): tensor for tensor in chain(model.parameters(), model.buffers())}
    copy = deepcopy(model, shared)
    for place, (parent, name, p) in enumerate(list(_dropouts(copy))):
        setattr(parent, name, Lacking(p, 1_000 * seed + place))
    return copy


def _dropouts(model: nn.Module) -> Iterator[tuple[nn.Module, str, float]]:
    """Where something is dropped, a parent module and its attribute, and with which probability."""
    for parent in model.modules():
        for name, child in parent.named_children():
            if type(child).__name__ == "Dropout" and child.p > 0:  # torch's, or that of gtx.nn, a room apart
                yield parent, name, child.p
