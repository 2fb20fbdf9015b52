"""Whole training steps on a device that does not exist, in a process of their own.

torch works shapes out and computes nothing (`FakeTensorMode`), so that whatever hangs on values raises: `.item()`, a
copy to the host, boolean indices, shapes that data decide. Tensors of the host in the step raise too. The device is
"cuda" where there is one; elsewhere a made-up one stands in, since torch then has no automatic differentiation for
"cuda".

After the steps as they are come those of models with a mistake that must be found: "item" reads a number back,
"nonzero" takes a shape from data, "copy" goes to the host and back, "host" brings a tensor of the host in. A line for
each says what was raised. The Triton kernels are forced on: torch sees their shapes.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils import backend_registration
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from gtx.attention.fast import ragged
from gtx.data import MoleculeStore
from gtx.data.batches import ConstantShapeStore, precompute_encodings
from gtx.models import standard
from gtx.tasks import BinaryClassification, MulticlassClassification, Regression, Task
from gtx.training import TrainSettings
from gtx.training.capture import WholeStep
from gtx.training.module import TrainingModule
from gtx.training.optimise import WeightAverage, adamw, warmup_cosine
from tests.models.test_architectures import make
from tests.models.test_constant_shape import EXTRA

from .task import FEATURISER, LOGP, store

CASES = ["rmat", "egt", "grit", "gps", "torchmd_net", "rings", "few edges under a mask", "triplets in space"]
"""Models that differ in the operators they call."""

MODE = FakeTensorMode()
META = torch.library.Library("aten", "IMPL", "Meta")
META.impl("_fused_adamw_.tensor_lr", lambda *_, **__: None)  # in place, so it has no shape to work out; torch has none


def device() -> torch.device:
    if torch.cuda.is_available():
        return torch.device("cuda:0")

    class Module(backend_registration._DummyBackendModule):
        def get_amp_supported_dtype(self) -> list[torch.dtype]:
            return [torch.bfloat16, torch.float16]

    backend_registration._setup_privateuseone_for_python_backend("phantom", Module())
    return torch.device("phantom:0")


DEVICE = device()


def there(tensor: Tensor) -> Tensor:
    """A fake of it on the device."""
    return FakeTensor(MODE, tensor.detach().to("meta"), DEVICE)


def move(model: nn.Module) -> None:
    for module in model.modules():
        module._parameters.update({n: nn.Parameter(there(p)) for n, p in module._parameters.items() if p is not None})
        module._buffers.update({n: there(b) for n, b in module._buffers.items() if b is not None})


def moved(molecules: MoleculeStore) -> MoleculeStore:
    return replace(molecules, **{name: there(tensor) for name, tensor in molecules._tensors().items()})


class Plant(nn.Module):
    """A model with a mistake."""

    def __init__(self, model: nn.Module, kind: str) -> None:
        super().__init__()
        self.model, self.kind = model, kind

    def forward(self, batch: Any) -> Tensor:
        out = self.model(batch)
        if self.kind == "item":
            return out * out.mean().item()
        if self.kind == "nonzero":
            return out + out[out[:, 0] > 0].sum()
        if self.kind == "copy":
            return out + out.detach().cpu().to(out.device)
        return out + torch.ones(len(out), 1)


def tasks() -> list[Task]:
    """Fitted ones."""
    halves = (LOGP.mean() < LOGP).astype(float)
    labels = (("low", "high"),)
    return [
        Regression(["y"], element_reference=False).fit(store()),
        BinaryClassification(["y"], classes=labels, class_weights="balanced").fit(store(halves)),
        MulticlassClassification(["y"], classes=labels, class_weights="balanced").fit(store(halves)),
    ]


class Copies(TorchDispatchMode):
    """Raises where a tensor goes from the device to the host or back; fake tensors do so without a word."""

    def __torch_dispatch__(self, func: Any, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        given = func(*args, **(kwargs or {}))
        if func.overloadpacket in (torch.ops.aten._to_copy, torch.ops.aten.copy_):
            devices = {x.device.type for x in tree_leaves((args, given)) if isinstance(x, Tensor)}
            if len(devices) > 1:
                raise RuntimeError(f"{func} from {args[-1].device} to {given.device}")
        return given


def tried() -> Iterator[tuple[Task, nn.Module, MoleculeStore]]:
    """Models of all tasks with whatever may be in a model, then models of other parts."""
    columns = {"folded": 64, "atoms": [0, 1], "bonds": [0]}
    for task in tasks():
        molecules = task.objective.examples(store((LOGP.mean() < LOGP).astype(float) if task.discrete else LOGP))
        sizes = {"atom_sizes": FEATURISER.atom_sizes, "bond_sizes": FEATURISER.bond_sizes}
        more: dict[str, Any] = {"substructures": columns, "virtual_nodes": 1, "attention_dropout": 0.1}
        model = standard(
            task.objective.out_channels, **sizes, channels=16, layers=2, heads=2,
            num_descriptors=FEATURISER.num_descriptors, **more,
        )  # fmt: skip
        yield task, model, molecules
    positions = torch.randn(len(molecules.atoms), 3, generator=torch.Generator().manual_seed(0))
    twice = replace(store(LOGP.repeat(2, axis=1)), positions=positions)
    task = Regression(["a", "b"], element_reference=False).fit(twice)
    for case in CASES:
        arguments = {"name": case} | EXTRA.get(case, {})
        yield task, make(arguments.pop("name"), **arguments), task.objective.examples(twice)


def force_kernels() -> list[str]:
    """Use the Triton kernels on the device that does not exist, by their shapes; the launches, as they are added."""
    launched = []
    attention = ragged.attention
    ragged._DEVICES, ragged.available, ragged.why_not = (DEVICE.type,), lambda: True, lambda *_: None
    ragged.attention = lambda *given: launched.append("attention") or attention(*given)
    return launched


def step(task: Task, model: nn.Module, molecules: MoleculeStore, plant: str | None = None) -> None:
    """Cut, forward, loss, backward, clip, update, average, rate: a whole step, from which molecules to the weights."""
    model.observe(molecules)
    kept = precompute_encodings(molecules, model.compute_encodings, list(model.fixed), torch.device("cpu"), 1 << 30)
    constant = all(encoding.constant_shapes for encoding in model.embedding.encodings)  # otherwise, only what is kept
    for features in (None, kept) if constant and task.discrete else (None,) if constant else (kept,):
        cutter = ConstantShapeStore(molecules)
        index = cutter.sampler(16).batches()[0]
        cutter.store = moved(molecules)
        if features is not None:
            tables = ({name: there(x) for name, x in part.items()} for part in features[:2])
            cutter.fixed = type(features)(*tables, there(features.pair_ptr))
        move(model)
        module = TrainingModule(model if plant is None else Plant(model, plant), task, TrainSettings(epochs=1))
        optimiser = adamw(model, 1e-3, 0.01, fused=True, capturable=True)
        for group in optimiser.param_groups:
            group["lr"] = there(torch.tensor(group["lr"]))
        which, share = there(index), there(torch.tensor(16.0))
        schedule, average = warmup_cosine(optimiser, 10, 0.1), WeightAverage(0.9)
        with MODE, Copies():
            average.on_train_start(None, module)
            whole = WholeStep(module, cutter, optimiser, share)
            loss = whole(which)
            average.on_train_batch_end(type("Trainer", (), {"global_step": 1}))
            schedule.step()
        assert loss.device == DEVICE and loss.shape == ()


def main() -> None:
    launched = force_kernels()
    chosen = list(tried())
    first = [deepcopy(chosen[0]) for _ in range(4)]
    for each in chosen:
        step(*each)
    print(f"as they are, {len(CASES)} cases: nothing")
    assert len(launched) > len(CASES)
    for mistake, each in zip(("item", "nonzero", "copy", "host"), first, strict=True):
        try:
            step(*each, mistake)
        except (RuntimeError, NotImplementedError) as error:
            print(f"{mistake}: {type(error).__name__}")
