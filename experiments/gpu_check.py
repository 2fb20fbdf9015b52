"""What only a GPU can show of gtx, in one call of less than ten minutes.

    python -m experiments.gpu_check --out check/                         # everything
    python -m experiments.gpu_check --out check/ --phases step kernels
    python -m experiments.gpu_check --out check/ --device cpu --quick    # what runs of it on a CPU, minutes

Every single result, or why it failed, is a line of `results.jsonl` as soon as it is there. The defaults come first:

    environment   versions, the card, its shared memory, compiler and headers
    step          the check before training, which compares eager and captured steps; their rates
    kernels       each tile, type and width against float64
    train         `fit` by default, without capture, in bfloat16; repeated; killed and resumed

Times of the layer and of prediction are those of `python -m experiments.speed --device cuda`, the tests of the kernels
are `pytest tests/attention/fast/ragged_on_device.py`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sysconfig
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from pytorch_lightning.plugins import Precision
from torch import Tensor

from experiments.speed.measure import default_model, featurised, timed
from gtx.attention.fast import ragged, verification
from gtx.data import MoleculeStore
from gtx.data.batches import ConstantShapeStore, precompute_encodings
from gtx.training import TrainSettings, fit
from gtx.training.capture import Captured, CapturedModule, WholeStep, check_capture
from gtx.training.data import MoleculeDataModule
from gtx.training.module import TrainingModule

PRECISIONS = {
    "float32": (torch.float32, "highest"),
    "TF32": (torch.float32, "high"),
    "bfloat16": (torch.bfloat16, "high"),
}


class Notes:
    """Results of a phase, a line of JSON each, written as they come."""

    def __init__(self, file: Path, phase: str) -> None:
        self.file, self.phase = file, phase

    def __call__(self, **facts: Any) -> None:
        line = json.dumps({"phase": self.phase, **facts}, default=str)
        print(line, flush=True)
        with self.file.open("a") as lines:
            lines.write(f"{line}\n")

    def attempt(self, what: str, function: Callable[[], Any]) -> None:
        """Note what a function returns, or why and where it failed."""
        begun = time.time()
        try:
            found = function()
            facts = found if isinstance(found, dict) else {"found": found}
        except Exception as error:
            calls = [f"{Path(at.filename).name}:{at.lineno}" for at in traceback.extract_tb(error.__traceback__)]
            facts = {"failed": f"{type(error).__name__}: {str(error)[:300]}", "at": calls[-4:]}
        self(what=what, seconds=round(time.time() - begun, 2), **facts)


def environment(note: Notes, device: torch.device, quick: bool) -> None:
    """Note versions and the card."""
    note(python=platform.python_version(), torch=torch.__version__, cuda=torch.version.cuda, hip=torch.version.hip)
    for name in ("triton", "torch-geometric", "pytorch-lightning", "rdkit", "numba", "numpy"):
        note.attempt(name, partial(version, name))
    headers = Path(sysconfig.get_paths()["include"], "Python.h").exists()
    note(compiler=shutil.which("cc") or shutil.which("gcc"), headers=headers)
    if device.type == "cuda":
        card = torch.cuda.get_device_properties(0)
        facts = {"capability": torch.cuda.get_device_capability(), "shared_memory": ragged.shared_memory(device)}
        note(what="card", name=card.name, memory=card.total_memory, **facts)


def _molecules(count: int, quick: bool) -> MoleculeStore:
    return featurised("xtb9" if quick else "zinc12k", count)  # the former comes with gtx


def _training(store: MoleculeStore, molecules: int, device: torch.device) -> tuple[CapturedModule, WholeStep, Tensor]:
    """Make the default model in its module, a step of its training, and batches of indices."""
    task, _, _, model = default_model()
    examples = task.objective.examples(store)
    model.observe(examples)
    torch.manual_seed(0)
    module = CapturedModule(model, task, TrainSettings(epochs=1)).to(device)
    tables = precompute_encodings(examples, model.compute_encodings, list(model.fixed), device, 1 << 33)
    cutter = ConstantShapeStore(examples.to(device), tables)
    step = WholeStep(module, cutter, module.optimiser(), torch.tensor(float(molecules), device=device))
    return module, step, torch.stack(cutter.sampler(molecules).batches()).to(device)


def step(note: Notes, device: torch.device, quick: bool) -> None:
    """Note the check before training, and how long steps take."""
    store = _molecules(200 if quick else 4096, quick)

    def check() -> dict[str, Any]:
        module, _, _ = _training(store, 16, device)
        data = MoleculeDataModule(module.task, store, store.subset(torch.arange(0)), settings=module.settings)
        return {"refused": check_capture(module, data, Precision(), device)}

    def rate(molecules: int, precision: torch.dtype, products: str) -> dict[str, Any]:
        torch.set_float32_matmul_precision(products)
        _, whole, index = _training(store, molecules, device)

        def one(rows: Tensor) -> Tensor:
            with torch.autocast("cuda", torch.bfloat16, enabled=precision == torch.bfloat16, cache_enabled=False):
                return whole(rows)

        reasons: list[str] = []
        function = Captured(one, reasons.append)
        torch.cuda.reset_peak_memory_stats()
        for _ in range(5):
            function(index[0])
        seconds, _ = timed(lambda: [function(index[i % len(index)]) for i in range(20)], "cuda")
        eager, _ = timed(lambda: [one(index[i % len(index)]) for i in range(5)], "cuda")
        count, peak = float((index >= 0).sum() / len(index)), torch.cuda.max_memory_allocated()
        facts = {"ms": 50 * seconds, "ms_eager": 200 * eager, "molecules_per_second": 20 * count / seconds}
        return facts | {"captured": function.replay is not None, "reasons": reasons, "peak_MiB": peak / 2**20}

    note.attempt("check before training", check)
    if device.type == "cuda":
        for molecules in (90, 512, 2048):
            for name, how in PRECISIONS.items():
                note.attempt(f"rate, {molecules} molecules, {name}", partial(rate, molecules, *how))


def kernels(note: Notes, device: torch.device, quick: bool) -> None:
    """Note what the check before the first use finds of every tile, also of those that are not used by default."""
    if device.type != "cuda" and os.environ.get("TRITON_INTERPRET") != "1":
        note(what="kernels", needs="a GPU, or Triton's interpreter (TRITON_INTERPRET=1)")
        return
    ragged.LARGEST = 256
    kinds = [(torch.float32, C) for C in (8, 16, 32, 64, 128)]
    kinds += [(torch.bfloat16, 16), (torch.bfloat16, 64), (torch.float16, 16)]
    for dtype, C in kinds[:1] if quick else kinds:
        for tile in ragged.TILES[:1] if quick else ragged.TILES:
            if tile <= ragged.limit(C, dtype, device):
                verification.forget()
                shape = ((dtype,) * 3, (2 if quick else 8, C, C, 8 if quick else 32), (True, True, True, not quick))
                trial = partial(verification.verify, device, *shape, True, (tile,))
                note.attempt(f"{dtype}, {C} channels, tile {tile}: refused", trial)


def train(note: Notes, device: torch.device, quick: bool) -> None:
    """Note scores and seconds an epoch of `fit` in several ways, and whether a run is repeated to the last bit."""
    store = _molecules(120 if quick else 3000, quick)
    held_out = len(store) // 10
    rows, val = store.subset(torch.arange(held_out, len(store))), store.subset(torch.arange(held_out))

    def run(folder: str, stop: bool = False, **settings: Any) -> tuple[dict[str, Any], Tensor]:
        begin = TrainingModule.on_train_epoch_start

        def started(self: TrainingModule) -> None:
            begin(self)
            if stop and self.current_epoch == 1:
                raise KeyboardInterrupt

        accelerator = "gpu" if device.type == "cuda" else "cpu"
        given = {"epochs": 2 if quick else 6, "progress": False, "precision": "32-true", "accelerator": accelerator}
        task, _, _, model = default_model()
        TrainingModule.on_train_epoch_start = started
        try:
            (member,) = fit(model, task, rows, val, TrainSettings(**given | settings), folder)
        finally:
            TrainingModule.on_train_epoch_start = begin
        facts = {"score": member.best_score, "seconds_of_epochs": [line["seconds"] for line in member.history]}
        return facts, torch.cat([weight.detach().flatten().double().cpu() for weight in member.model.parameters()])

    def once(**settings: Any) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            return run(folder, **settings)[0]

    def again() -> dict[str, Any]:
        weights = []
        for stop in (False, False, True):
            with tempfile.TemporaryDirectory() as folder:
                if stop:
                    with suppress(KeyboardInterrupt):
                        run(folder, stop=True)
                weights.append(run(folder)[1])
        apart = [float((other - weights[0]).abs().max()) for other in weights[1:]]
        return {"repeated, largest difference of a weight": apart[0], "resumed": apart[1]}

    note.attempt("by default", once)
    if device.type == "cuda" or not quick:
        note.attempt("without capture", partial(once, capture=False))
        note.attempt("bfloat16", partial(once, precision="bf16-mixed"))
    note.attempt("repeated; killed and resumed", again)


PHASES = {"environment": environment, "step": step, "kernels": kernels, "train": train}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of the results")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--phases", nargs="+", default=[*PHASES], choices=PHASES)
    parser.add_argument("--quick", action="store_true", help="a few small cases")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for phase in options.phases:
        note = Notes(options.out / "results.jsonl", phase)
        note.attempt("phase", partial(PHASES[phase], note, torch.device(options.device), options.quick))
