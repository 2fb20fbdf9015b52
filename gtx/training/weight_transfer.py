"""Adopting: weights of an earlier model in a new one, and what comes out of a training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gtx.tasks import Task

# --- A trained model.


@dataclass
class Member:
    """A trained model.

    Attributes:
        model: with the averaged weights of the best epoch, in evaluation mode, on the CPU.
        task: what it learned, fitted: from its outputs to answers.
        history: one row per epoch, as in `log.csv`.
        best_epoch: the epoch kept, counted from 1; 0 where there are none.
        best_score: its `val_score`; infinite without validation molecules.
    """

    model: nn.Module
    task: Task
    history: list[dict[str, float]]
    best_epoch: int
    best_score: float

    @property
    def batch_pairs(self) -> int | None:
        """The budget of a batch that it was trained with, less than was asked for where memory was short."""
        return self.history[-1].get("batch_pairs") if self.history else None


# --- The weights that a model takes over from a trained one.

NAMED = 4  # tensors that a note names
HEAD = "head"


@dataclass(frozen=True)
class WeightTransfer:
    """Which weights a model takes over: those of modules whose tensors all have the same names and shapes.

    Attributes:
        new_head: the head is made anew though it would fit.
        outputs: of each output of the model its number among those of the trained one, -1 for none, so that the last
            layer of the head keeps what it knows of some targets and is new for others; None where shapes decide.
    """

    new_head: bool = False
    outputs: Sequence[int] | None = None

    def transferable(self, own: Mapping[str, Tensor], trained: Mapping[str, Tensor]) -> list[str]:
        """Names of the tensors that are taken over whole."""
        unlike = {name for name, tensor in own.items() if name not in trained or trained[name].shape != tensor.shape}
        new = {_module(name) for name in unlike}
        if self.new_head:
            new |= {_module(name) for name in own if name.startswith(f"{HEAD}.")}
        elif self.outputs is not None:
            new.add(last_layer(own))
        return [name for name in own if _module(name) not in new]

    def partly_transferable(self, own: Mapping[str, Tensor], trained: Mapping[str, Tensor]) -> list[str]:
        """Names of the tensors of which some rows are taken over: of the last layer, where all before it is."""
        if self.outputs is None or self.new_head:
            return []
        last, kept = last_layer(own), set(self.transferable(own, trained))
        before = [name for name in own if name.startswith(f"{HEAD}.") and _module(name) != last]
        return [name for name in own if _module(name) == last and name in trained] if kept.issuperset(before) else []

    @torch.no_grad()
    def take(self, model: nn.Module, trained: nn.Module) -> None:
        """Take over the weights that fit."""
        own, theirs = model.state_dict(), trained.state_dict()
        taken = {name: theirs[name] for name in self.transferable(own, theirs)}
        for name in self.partly_transferable(own, theirs):
            number = torch.tensor(self.outputs)
            known, taken[name] = number >= 0, own[name].clone()
            taken[name][known] = theirs[name][number[known]]
        model.load_state_dict({**own, **taken})

    def describe(self, own: Mapping[str, Tensor], trained: Mapping[str, Tensor]) -> str:
        """Describe which tensors are taken over and which are new:
        `61 of 63 tensors are kept, 2 are new: head.3.weight [1, 16], head.3.bias [1]`."""
        kept, part = set(self.transferable(own, trained)), self.partly_transferable(own, trained)
        new = [f"{name} {list(tensor.shape)}" for name, tensor in own.items() if name not in kept and name not in part]
        lines = [
            f"all {len(own)} tensors are kept"
            if len(kept) == len(own)
            else f"{len(kept)} of {len(own)} tensors are kept"
        ]
        if part:
            known = sum(number >= 0 for number in self.outputs)
            lines.append(f"{known} of {len(self.outputs)} outputs in {' and '.join(part)}")
        if new:
            more = f" and {len(new) - NAMED} more" if len(new) > NAMED else ""
            verb = "is" if len(new) == 1 else "are"
            lines.append(f"{len(new)} {verb} new: {', '.join(new[:NAMED])}{more}")
        return ", ".join(lines)


TRANSFER_MATCHING = WeightTransfer()


def last_layer(state: Mapping[str, Tensor]) -> str:
    """The module of the head that has the outputs; an empty text where there is no head."""
    return _module(next((name for name in reversed(list(state)) if name.startswith(f"{HEAD}.")), ""))


def _module(tensor: str) -> str:
    return tensor.rpartition(".")[0]
