"""Whole training steps on a device that does not exist: `python -m tests.training.fake_device`.

torch works shapes out and computes nothing (`FakeTensorMode`), so that whatever hangs on values raises: `.item()`, a
copy to the host, boolean indices, shapes that data decide. Tensors of the host in the step raise too. The device is
"cuda" where there is one; elsewhere a made-up one stands in, since torch then has no automatic differentiation for
"cuda".

After the steps as they are come those of models with a mistake that must be found: "item" reads a number back,
"nonzero" takes a shape from data, "host" brings a tensor of the host in. A line for each says what was raised.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils import backend_registration

from gtx.data import CapacityStore, MoleculeStore, keep
from gtx.models import standard
from gtx.tasks import Classification, Multiclass, Regression, Task
from gtx.training import TrainSettings
from gtx.training.averaging import WeightAverage
from gtx.training.capture import WholeStep
from gtx.training.module import PropertyModule
from gtx.training.optimise import adamw, warmup_cosine

from .task import FEATURISER, LOGP, store

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
        return out + torch.ones(len(out), 1)


def tasks() -> list[Task]:
    """Fitted ones."""
    halves = (LOGP.mean() < LOGP).astype(float)
    labels = (("low", "high"),)
    return [
        Regression(["y"], element_reference=False).fitted(store()),
        Classification(["y"], classes=labels, class_weights="balanced").fitted(store(halves)),
        Multiclass(["y"], classes=labels, class_weights="balanced").fitted(store(halves)),
    ]


def step(task: Task, plant: str | None) -> None:
    """Cut, forward, loss, backward, clip, update, average, rate: a whole step, from which molecules to the weights."""
    molecules = task.examples(store((LOGP.mean() < LOGP).astype(float) if task.discrete else LOGP))
    sizes = {"atom_sizes": FEATURISER.atom_sizes, "bond_sizes": FEATURISER.bond_sizes}
    columns = {"folded": 64, "atoms": [0, 1], "bonds": [0]}
    more: dict[str, Any] = {"substructures": columns, "virtual_nodes": 1, "descriptors_to": ("atoms", "readout")}
    rates = {"attention_dropout": 0.1, "stochastic_depth": 0.1}
    model = standard(
        task.out_channels, **sizes, channels=16, layers=2, heads=2, num_descriptors=FEATURISER.num_descriptors,
        **more, **rates,
    )  # fmt: skip
    model.observe(molecules)
    for kept in (None, keep(molecules, model.fixed_features, list(model.fixed), torch.device("cpu"), 1 << 30)):
        cutter = CapacityStore(molecules)
        index = cutter.sampler(16).batches()[0]
        cutter.store = moved(molecules)
        if kept is not None:
            tables = ({name: there(x) for name, x in part.items()} for part in kept[:2])
            cutter.kept = type(kept)(*tables, there(kept.pair_ptr))
        move(model)
        module = PropertyModule(model if plant is None else Plant(model, plant), task, TrainSettings(epochs=1))
        optimiser = adamw(model, 1e-3, 0.01, fused=True, capturable=True)
        for group in optimiser.param_groups:
            group["lr"] = there(torch.tensor(group["lr"]))
        which, share = there(index), there(torch.tensor(16.0))
        schedule, average = warmup_cosine(optimiser, 10, 0.1), WeightAverage(0.9)
        with MODE:
            average.on_train_start(None, module)
            whole = WholeStep(module, cutter, optimiser, share)
            loss = whole(which)
            average.on_train_batch_end(type("Trainer", (), {"global_step": 1}))
            schedule.step()
        assert loss.device == DEVICE and loss.shape == ()


if __name__ == "__main__":
    for chosen in tasks():
        step(chosen, None)
    print("as they are: nothing")
    for mistake in ("item", "nonzero", "host"):
        try:
            step(tasks()[0], mistake)
        except (RuntimeError, NotImplementedError) as error:
            print(f"{mistake}: {type(error).__name__}")
