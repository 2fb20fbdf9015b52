"""The weights of a model file: the networks that its header describes, if they fit the tensors that the file holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from gtx.errors import InputError, printable
from gtx.models import build_model
from gtx.prediction.partner import Partner
from gtx.schema import LARGEST, shown

NAMES = {torch.bool: "BOOL", torch.int64: "I64", torch.int32: "I32", torch.int16: "I16"}
"""What safetensors calls the types of tensors that are no weights; weights are float32, or float16 in the file."""


def read_members(
    file: Any,
    spec: Mapping[str, Any],
    count: int,
    model: nn.Module | Callable[[], nn.Module] | None = None,
    partner: bool = False,
) -> list[nn.Module]:
    """The networks of a model file, in evaluation mode.

    They are first built without any memory, on torch's meta device, and compared with the tensors by name, shape and
    type; so a header can ask for no more memory than the file has bytes.

    Args:
        file: a safetensors file, as `safetensors.safe_open` gives it; member k's tensors are `members.k.*`.
        spec: of the networks, see `gtx.models.build_model`.
        count: how many there are.
        model: in place of the specification, a module of the same shape or a function that makes one.
        partner: whether the header describes one, whose tensors the file holds too.

    Raises:
        InputError: the specification describes no network, the tensors are not its weights, or a weight is not finite.
    """
    names = _names(file, of_partner=False) if partner else set(file.keys())
    places = [f"members.{k}" for k in range(count)]
    if model is not None:
        make = partial(deepcopy, model) if isinstance(model, nn.Module) else model
        return _filled(file, names, make().state_dict(), make, places)
    for arguments in (spec["arguments"], spec["arguments"].get("encoder")):
        layers = arguments.get("layers") if isinstance(arguments, dict) else None
        if isinstance(layers, int) and len(names) < layers <= LARGEST:  # what is no such number is refused by its kind
            raise InputError(f"model.arguments.layers: expected at most one per tensor, {len(names)}, got {layers}")
    with torch.device("meta"):
        expected = _build(spec).state_dict()
    return _filled(file, names, expected, partial(_build, spec), places)


def read_partner(file: Any, spec: Mapping[str, Any], outputs: int) -> Partner:
    """The kernel of a model file that has a share in the prediction, with so many outputs; otherwise as `read_members`.

    Its tensors are `partner.*`.
    """

    def make() -> Partner:
        return Partner(_build(spec), torch.zeros(outputs))

    with torch.device("meta"):
        expected = make().state_dict()
    (partner,) = _filled(file, _names(file, of_partner=True), expected, make, ["partner"])
    return partner


def _names(file: Any, of_partner: bool) -> set[str]:
    """The tensors of a partner, or those of the networks."""
    return {name for name in set(file.keys()) if name.startswith("partner.") == of_partner}


def _filled(
    file: Any,
    names: set[str],
    expected: Mapping[str, Tensor],
    make: Callable[[], nn.Module],
    places: Sequence[str],
) -> list[nn.Module]:
    """Modules, each with its tensors, which are as `expected`; their names begin with its place."""
    _compare_names(names, (f"{place}.{name}" for place in places for name in expected))
    modules = []
    for place in places:
        weights = {name: _read(file, f"{place}.{name}", tensor) for name, tensor in expected.items()}
        module = make()
        module.load_state_dict(weights)
        modules.append(module.eval())
    return modules


def _build(spec: Mapping[str, Any]) -> nn.Module:
    try:
        return build_model(spec)
    except InputError:
        raise
    except Exception as reason:  # whatever arguments from outside may cause in whatever model
        said = printable(" ".join(str(reason).split()), 200)
        raise InputError(f"model.arguments: they describe no network ({type(reason).__name__}: {said})") from None


def _compare_names(names: set[str], expected: Iterable[str]) -> None:
    found = set()
    for name in expected:
        if name not in names:  # at the latest when all were found: `expected` may be far longer
            raise InputError(f"tensor {name}: the header describes it, the file has none")
        found.add(name)
    if surplus := sorted(names - found):
        raise InputError(f"tensor {printable(surplus[0])}: the file has it, the header describes none")


def _read(file: Any, name: str, expected: Tensor) -> Tensor:
    """A tensor of the file, if it is as expected."""
    part = file.get_slice(name)
    wanted = f"{_type(expected)} {list(expected.shape)}"
    half = expected.dtype == torch.float32 and part.get_dtype() == "F16"
    came = f"{'F32' if half else part.get_dtype()} {list(part.get_shape())}"
    if came != wanted:
        raise InputError(f"tensor {name}: the header's model has {wanted}, the file {came}")
    tensor = file.get_tensor(name).to(expected.dtype)
    if not tensor.isfinite().all():
        raise InputError(f"tensor {name}: expected finite numbers, got {shown(tensor[~tensor.isfinite()][0].item())}")
    return tensor


def _type(tensor: Tensor) -> str:
    return "F32" if tensor.is_floating_point() else NAMES.get(tensor.dtype, str(tensor.dtype))
