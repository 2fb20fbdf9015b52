"""The weights that a model takes over from a trained one."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

NAMED = 4  # tensors that a note names


def adoptable(own: Mapping[str, Tensor], trained: Mapping[str, Tensor]) -> list[str]:
    """Names of the tensors that are taken over: of modules whose tensors all have the same names and shapes."""
    new = {_module(name) for name, tensor in own.items() if name not in trained or trained[name].shape != tensor.shape}
    return [name for name in own if _module(name) not in new]


def adopt(model: nn.Module, trained: nn.Module) -> None:
    """Take over the weights that fit."""
    own, theirs = model.state_dict(), trained.state_dict()
    model.load_state_dict({**own, **{name: theirs[name] for name in adoptable(own, theirs)}})


def _module(tensor: str) -> str:
    return tensor.rpartition(".")[0]


def adopted_words(own: Mapping[str, Tensor], trained: Mapping[str, Tensor]) -> str:
    """What is taken over and what is not, in words: `61 of 63 tensors are kept, 2 are new: head.3.weight [1, 16]`."""
    kept = set(adoptable(own, trained))
    new = [f"{name} {list(tensor.shape)}" for name, tensor in own.items() if name not in kept]
    if not new:
        return f"all {len(own)} tensors are kept"
    more = f" and {len(new) - NAMED} more" if len(new) > NAMED else ""
    verb = "is" if len(new) == 1 else "are"
    return f"{len(kept)} of {len(own)} tensors are kept, {len(new)} {verb} new: {', '.join(new[:NAMED])}{more}"
