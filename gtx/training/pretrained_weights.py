"""Trained networks, and the transfer of their weights to a new model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gtx.tasks import Task

# --- A trained model.


@dataclass
class TrainedEnsembleMember:
    """Trained network with its task, best epoch and validation score.

    Attributes:
        model: network with the averaged weights of the best epoch, in evaluation mode, on the CPU.
        task: the fitted task.
        history: one row per epoch, as in `log.csv`.
        best_epoch: best epoch, counted from 1; 0 for a model without epochs.
        best_score: `val_score` of the best epoch; infinite without validation molecules.
    """

    model: nn.Module
    task: Task
    history: list[dict[str, float]]
    best_epoch: int
    best_score: float

    @property
    def batch_pairs(self) -> int | None:
        """Largest number of pairs in a training batch, reduced if memory was short; None without epochs."""
        pairs = self.history[-1].get("batch_pairs") if self.history else None
        return None if pairs is None else int(pairs)


# --- Transfer of weights from a trained model.

MAX_NAMES = 4  # tensors that a note names
HEAD = "head"


@dataclass(frozen=True)
class PretrainedWeightLoader:
    """Loader of weights from a trained model into a new one, for modules whose tensors have equal names and shapes.

    Attributes:
        new_head: whether the head keeps its initial weights, even if the weights of the trained model fit.
        outputs: index in the trained model of each output of the new model, -1 for a new output. Rows of the last layer
            of the head are copied accordingly. None to copy the last layer if its shape fits.
    """

    new_head: bool = False
    outputs: Sequence[int] | None = None

    def transferable(self, state: Mapping[str, Tensor], trained: Mapping[str, Tensor]) -> list[str]:
        """List the tensors that are transferred whole, given both state dicts."""
        unlike = {name for name, tensor in state.items() if name not in trained or trained[name].shape != tensor.shape}
        new = {_module(name) for name in unlike}
        if self.new_head:
            new |= {_module(name) for name in state if name.startswith(f"{HEAD}.")}
        elif self.outputs is not None:
            new.add(last_layer(state))
        return [name for name in state if _module(name) not in new]

    def partly_transferable(self, state: Mapping[str, Tensor], trained: Mapping[str, Tensor]) -> list[str]:
        """List the tensors of the last layer, if some of their rows are transferred and all of the head before it."""
        if self.outputs is None or self.new_head:
            return []
        last, whole = last_layer(state), set(self.transferable(state, trained))
        before = [name for name in state if name.startswith(f"{HEAD}.") and _module(name) != last]
        return [name for name in state if _module(name) == last and name in trained] if whole.issuperset(before) else []

    @torch.no_grad()
    def apply(self, model: nn.Module, trained: nn.Module) -> None:
        """Copy the weights that fit from a trained model."""
        state, source = model.state_dict(), trained.state_dict()
        copied = {name: source[name] for name in self.transferable(state, source)}
        for name in self.partly_transferable(state, source):
            index = torch.tensor(self.outputs)
            shared, copied[name] = index >= 0, state[name].clone()
            copied[name][shared] = source[name][index[shared]]
        model.load_state_dict({**state, **copied})

    def describe(self, state: Mapping[str, Tensor], trained: Mapping[str, Tensor]) -> str:
        """Describe which tensors are transferred and which are new.

        Such as `61 of 63 tensors are kept, 2 are new: head.3.weight [1, 16], head.3.bias [1]`.
        """
        whole, partial = set(self.transferable(state, trained)), self.partly_transferable(state, trained)
        new = [f"{name} {[*tensor.shape]}" for name, tensor in state.items() if name not in {*whole, *partial}]
        number = f"all {len(state)}" if len(whole) == len(state) else f"{len(whole)} of {len(state)}"
        lines = [f"{number} tensors are kept"]
        if partial and self.outputs is not None:
            shared = sum(index >= 0 for index in self.outputs)
            lines.append(f"{shared} of {len(self.outputs)} outputs in {' and '.join(partial)}")
        if new:
            more = f" and {len(new) - MAX_NAMES} more" if len(new) > MAX_NAMES else ""
            verb = "is" if len(new) == 1 else "are"
            lines.append(f"{len(new)} {verb} new: {', '.join(new[:MAX_NAMES])}{more}")
        return ", ".join(lines)


TRANSFER_MATCHING = PretrainedWeightLoader()


def last_layer(state: Mapping[str, Tensor]) -> str:
    """Return the name of the last layer of the head; an empty text if there is no head."""
    return _module(next((name for name in reversed(list(state)) if name.startswith(f"{HEAD}.")), ""))


def _module(tensor: str) -> str:
    return tensor.rpartition(".")[0]
