"""All that only a GPU can tell of gtx, in one call of less than ten minutes.

    python -m experiments.gpu_check --out check/                         # everything
    python -m experiments.gpu_check --out check/ --phases step kernels
    python -m experiments.gpu_check --out check/ --device cpu --quick    # what a processor can run of it, minutes

Each phase is a process with a time limit of its own. Every single result is a line of `results.jsonl` as soon as it is
there, so that a crash costs one phase at most; what a phase prints is in `<phase>.log`. What needs a GPU says so on a
processor. What decides whether the defaults work at all comes first:

    environment   versions, the card, its shared memory, compiler and headers
    step          the check before training; steps captured, eager and plain; their rates; what a replayed step spends
    kernels       each tile, type and width against float64; times beside matrix products
    train         `fit` by default, without capture, in bfloat16; repeated; killed and resumed
    predict       rows a second and memory, of a network alone and with a kernel beside it
    tests         the tests of the Triton kernels
"""

from __future__ import annotations

import argparse
import io
import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from experiments.archive import ROOT
from experiments.speed.measure import captured, default_model, featurised, timed
from gtx.attention import EdgeFeatures, ScaledDot, Softmax
from gtx.attention.complete import attend_pairs
from gtx.attention.fast import ragged, size_classes, verification
from gtx.data import CapacityStore, MoleculeStore, keep
from gtx.graph import CompleteGraph
from gtx.kernel import KernelRidge
from gtx.models.kernel import kernel
from gtx.prediction import ModelHeader, Predictor
from gtx.prediction.kernel_member import KernelMember
from gtx.training import TrainSettings, fit
from gtx.training.capture import Captured, CapturedModule, WholeStep
from gtx.training.data import MoleculeData
from gtx.training.module import PropertyModule
from gtx.training.start_check import check_capture

LIMITS = {"environment": 40, "step": 140, "kernels": 110, "train": 120, "predict": 70, "tests": 70}
"""Seconds of each phase, all together less than ten minutes."""
NEEDS_GPU = {"needs": "a GPU"}


class Notes:
    """Results of a phase, a line of JSON each, written as they come."""

    def __init__(self, file: Path, phase: str) -> None:
        self.file, self.phase = file, phase

    def __call__(self, **facts: Any) -> None:
        with self.file.open("a") as lines:
            lines.write(json.dumps({"phase": self.phase, **facts}, default=str) + "\n")

    def attempt(self, what: str, function: Callable[[], Any]) -> Any:
        """Note what a function gives, or why it failed and where."""
        begun = time.time()
        try:
            found = function()
        except Exception as error:
            places = [f"{Path(at.filename).name}:{at.lineno}" for at in traceback.extract_tb(error.__traceback__)]
            failed = f"{type(error).__name__}: {str(error)[:300]}"
            self(what=what, failed=failed, at=places[-4:], seconds=round(time.time() - begun, 2))
            return None
        facts = found if isinstance(found, dict) else {"found": found}
        self(what=what, seconds=round(time.time() - begun, 2), **facts)
        return found


def main(words: Sequence[str]) -> None:
    """Run the phases one after the other, each in a process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of the results")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--phases", nargs="+", default=[*LIMITS], choices=LIMITS)
    parser.add_argument("--quick", action="store_true", help="a few small cases")
    parser.add_argument("--only", choices=LIMITS, help=argparse.SUPPRESS)  # in the process of a phase
    read = parser.parse_args(words)
    read.out.mkdir(parents=True, exist_ok=True)
    results = read.out / "results.jsonl"
    if read.only:
        PHASES[read.only](Notes(results, read.only), torch.device(read.device), read.quick)
        return
    command = [sys.executable, "-u", "-m", "experiments.gpu_check", "--out", str(read.out.resolve())]
    command += ["--device", read.device, *["--quick"] * read.quick]
    begun = time.time()
    for phase in read.phases:
        left = sum(LIMITS.values()) - (time.time() - begun)
        if left <= 0:
            Notes(results, phase)(ended="no time was left")
            continue
        started = time.time()
        with (read.out / f"{phase}.log").open("w") as log:
            try:
                done = subprocess.run(
                    [*command, "--only", phase], cwd=ROOT, stdout=log, stderr=log, timeout=min(LIMITS[phase], left)
                )
                ended = f"exit status {done.returncode}"
            except subprocess.TimeoutExpired:
                ended = "killed at its time limit"
        Notes(results, phase)(ended=ended, seconds=round(time.time() - started, 1))
    print(results.read_text(), end="")


def environment(note: Notes, device: torch.device, quick: bool) -> None:
    """What there is."""
    packages = ("triton", "torch-geometric", "pytorch-lightning", "rdkit", "numba", "numpy")
    note(python=platform.python_version(), torch=torch.__version__, cuda=torch.version.cuda, hip=torch.version.hip)
    for name in packages:
        note.attempt(name, lambda name=name: version(name))
    headers = Path(sysconfig.get_paths()["include"], "Python.h").exists()
    note(compiler=shutil.which("cc") or shutil.which("gcc"), headers=headers)
    if device.type != "cuda":
        note(what="card", **NEEDS_GPU)
        return
    card = torch.cuda.get_device_properties(0)
    facts = {"capability": torch.cuda.get_device_capability(), "shared_memory": size_classes.shared_memory(device)}
    note(what="card", name=card.name, memory=card.total_memory, **facts)


def _molecules(count: int, quick: bool) -> MoleculeStore:
    return featurised("xtb9" if quick else "zinc12k", count)  # the former comes with gtx


def _training(store: MoleculeStore, molecules: int, device: torch.device, **settings: Any) -> tuple:
    """The default model, a module to train it, what cuts its batches, and these."""
    task, _, _, model = default_model()
    examples = task.examples(store)
    model.observe(examples)
    module = CapturedModule(model, task, TrainSettings(epochs=1, **settings)).to(device)
    tables = keep(examples, model.fixed_features, list(model.fixed), device, 1 << 33)
    cutter = CapacityStore(examples.to(device), tables)
    return module, cutter, torch.stack(cutter.sampler(molecules).batches()).to(device)


def step(note: Notes, device: torch.device, quick: bool) -> None:
    """The check before training, whether steps are captured and right, and how long they take."""
    from pytorch_lightning.plugins import Precision  # of no other phase

    store, gpu = _molecules(200 if quick else 4096, quick), device.type == "cuda"
    module, cutter, index = _training(store, 16 if quick else 90, device)
    data = MoleculeData(module.task, store, store.subset(torch.arange(0)), settings=module.settings)
    note.attempt("check before training", lambda: {"refused": check_capture(module, data, Precision(), device)})
    before = {name: weight.detach().clone() for name, weight in module.named_parameters()}

    def run(capture: bool) -> dict[str, Any]:
        with torch.no_grad():
            for name, weight in module.named_parameters():
                weight.copy_(before[name])
        optimiser, said = module.optimiser(), []
        whole = WholeStep(module, cutter, optimiser, torch.tensor(90.0, device=device))
        function = Captured(whole, said.append) if capture else whole
        torch.manual_seed(1)
        losses = [float(function(index[i % len(index)])) for i in range(3 if quick else 12)]
        return {"losses": losses, "said": said, "captured": capture and function.replay is not None}

    note.attempt("steps, eager", lambda: run(False))
    if not gpu:
        note(what="steps, captured; their rates and their parts", **NEEDS_GPU)
        return
    note.attempt("steps, captured", lambda: run(True))

    def rate(molecules: int, precision: torch.dtype, products: str) -> dict[str, Any]:
        torch.set_float32_matmul_precision(products)
        module, cutter, index = _training(store, molecules, device)
        whole = WholeStep(module, cutter, module.optimiser(), torch.tensor(float(molecules), device=device))

        def one(rows: Tensor) -> Tensor:
            with torch.autocast("cuda", torch.bfloat16, enabled=precision == torch.bfloat16, cache_enabled=False):
                return whole(rows)

        said = []
        function = Captured(one, said.append)
        torch.cuda.reset_peak_memory_stats()
        for _ in range(5):
            function(index[0])
        seconds, _ = timed(lambda: [function(index[i % len(index)]) for i in range(20)], "cuda")
        eager, _ = timed(lambda: [one(index[i % len(index)]) for i in range(5)], "cuda")
        count, peak = float((index >= 0).sum() / len(index)), torch.cuda.max_memory_allocated()
        facts = {"ms": 50 * seconds, "ms_eager": 200 * eager, "molecules_per_second": 20 * count / seconds}
        return facts | {"captured": function.replay is not None, "said": said, "peak_MiB": peak / 2**20}

    for molecules in (90, 512, 2048):
        for name, how in {
            "float32": (torch.float32, "highest"), "TF32": (torch.float32, "high"), "bfloat16": (torch.bfloat16, "high")
        }.items():  # fmt: skip
            note.attempt(f"rate, {molecules} molecules, {name}", lambda m=molecules, how=how: rate(m, *how))

    def parts() -> dict[str, Any]:
        torch.set_float32_matmul_precision("highest")
        module, cutter, index = _training(store, 90, device)
        whole = WholeStep(module, cutter, module.optimiser(), torch.tensor(90.0, device=device))
        function = Captured(whole, print)
        for _ in range(5):
            function(index[0])
        torch.cuda.synchronize()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            for _ in range(5):
                function(index[0])
            torch.cuda.synchronize()
        events = sorted(profile.key_averages(), key=lambda event: -event.self_device_time_total)
        each = [(event.key[:60], event.count / 5, event.self_device_time_total / 5e3) for event in events]
        return {"ms": sum(ms for *_, ms in each), "launches": sum(n for _, n, _ in each), "first": each[:20]}

    note.attempt("parts of a replayed step", parts)


def kernels(note: Notes, device: torch.device, quick: bool) -> None:
    """What the check before the first use finds of every tile, also of those that are not used by default."""
    if device.type != "cuda" and os.environ.get("TRITON_INTERPRET") != "1":
        note(what="kernels", needs="a GPU, or Triton's interpreter (TRITON_INTERPRET=1)")
        return
    size_classes.LARGEST = 256
    kinds = [(torch.float32, C) for C in (8, 16, 32, 64, 128)]
    kinds += [(torch.bfloat16, 16), (torch.bfloat16, 64), (torch.float16, 16)]
    for dtype, C in kinds[:1] if quick else kinds:
        for tile in size_classes._TILES[: 1 if quick else None]:
            if tile <= size_classes.limit(C, dtype, device):
                verification.forget()
                shape = ((dtype,) * 3, (2 if quick else 8, C, C, 8 if quick else 32), (True, True, True, not quick))
                trial = partial(verification.verify, device, *shape, True, (tile,))
                note.attempt(f"{dtype}, {C} channels, tile {tile}: refused", trial)
    if device.type != "cuda":
        note(what="times", **NEEDS_GPU)
        return
    for kind, (count, least, most) in {"drug-like": (128, 9, 38), "tiny": (512, 4, 9), "large": (16, 65, 256)}.items():
        sizes = torch.randint(least, most + 1, (count,), generator=torch.Generator().manual_seed(0))
        for dtype in (torch.float32, torch.bfloat16):
            for how in ("kernels", "matrix products"):
                what = f"captured, forward and backward, {kind}, {dtype}, {how}"
                note.attempt(what, partial(_clock, how, dtype, sizes, device))


def _clock(how: str, dtype: torch.dtype, sizes: Tensor, device: torch.device) -> dict[str, float]:
    graph = CompleteGraph.from_ptr(torch.cat([sizes.new_zeros(1), sizes.cumsum(0)]).to(device))
    N, P, H, C, K = graph.num_nodes, graph.num_pairs, 8, 16, 32
    shapes = [(N, H, C)] * 3 + [(P, K), (H, K), (H, C, K)]
    leaves = [torch.randn(shape, device=device, dtype=dtype, requires_grad=True) for shape in shapes]
    upstream = torch.randn(N, H, C, device=device, dtype=dtype)
    q, k, v, e, of_score, of_value = leaves
    edges = EdgeFeatures(e, score=of_score, value=of_value)

    def both() -> tuple[Tensor, ...]:
        if how == "kernels":
            out = ragged.attention(graph, q, k, v, edges)
        else:
            out = attend_pairs(graph, q, k, v, ScaledDot(1.0), Softmax(), edges).out
        return torch.autograd.grad(out, leaves, upstream)

    replay = captured(both)
    replay()
    seconds, _ = timed(lambda: [replay() for _ in range(50)], "cuda")
    return {"ms": 20 * seconds}


def train(note: Notes, device: torch.device, quick: bool) -> None:
    """`fit` in several ways: scores, seconds an epoch, and whether a run is repeated to the last bit."""
    store = _molecules(120 if quick else 3000, quick)
    held = len(store) // 10
    rows, val = store.subset(torch.arange(held, len(store))), store.subset(torch.arange(held))

    def run(folder: str | None = None, stop: int | None = None, **settings: Any) -> dict[str, Any] | None:
        """A training, perhaps ended as if by a user at the beginning of an epoch."""
        begin, said = PropertyModule.on_train_epoch_start, io.StringIO()

        def started(self: PropertyModule) -> None:
            begin(self)
            if self.current_epoch == stop:
                raise KeyboardInterrupt

        given = {"epochs": 2 if quick else 6, "progress": False, "precision": "32-true"}
        given |= {"accelerator": "gpu" if device.type == "cuda" else "cpu"} | settings
        task, _, _, model = default_model()
        PropertyModule.on_train_epoch_start = started
        try:
            with redirect_stderr(said), tempfile.TemporaryDirectory() as own:
                (member,) = fit(model, task, rows, val, TrainSettings(**given), folder or own)
        except KeyboardInterrupt:
            return None
        finally:
            PropertyModule.on_train_epoch_start = begin
        weights = [weight.detach().flatten().double().cpu() for weight in member.model.parameters()]
        facts = {"score": member.best_score, "seconds_of_epochs": [line["seconds"] for line in member.history]}
        return facts | {"said": said.getvalue().splitlines()[:6], "weights": torch.cat(weights)}

    def told(**settings: Any) -> dict[str, Any]:
        return {name: value for name, value in run(**settings).items() if name != "weights"}

    note.attempt("by default", told)
    if device.type == "cuda" or not quick:
        note.attempt("without capture", lambda: told(capture=False))
        note.attempt("bfloat16", lambda: told(precision="bf16-mixed"))

    def again() -> dict[str, Any]:
        one, two = run(), run()
        with tempfile.TemporaryDirectory() as folder:
            run(folder, stop=1)
            three = run(folder)
        apart = [float((other["weights"] - one["weights"]).abs().max()) for other in (two, three)]
        return {"repeated, largest difference of a weight": apart[0], "resumed": apart[1]}

    note.attempt("repeated; killed and resumed", again)
    if device.type == "cuda":
        with tempfile.TemporaryDirectory() as folder:
            note.attempt("begun on a processor", lambda: run(folder, stop=1, accelerator="cpu"))
            note.attempt("and resumed on the GPU", lambda: {"score": run(folder)["score"]})


def predict(note: Notes, device: torch.device, quick: bool) -> None:
    """Rows a second and memory at the peak, of molecules that are read already."""
    held, rows = (50, 100) if quick else (8000, 4000)
    store = _molecules(held + rows, quick)
    task, featuriser, spec, model = default_model()
    beside: KernelRidge = kernel(1)
    beside.hold(store.subset(torch.arange(held)))
    shapes = {"measured": (held, 1), "dual": (held, 1), "offset": (1,), "ridge": (1,), "scale": (1,)}
    for name, shape in shapes.items():
        beside._hold(name, torch.ones(shape, dtype=torch.bool) if name == "measured" else torch.zeros(shape))
    rest = store.subset(torch.arange(held, len(store)))
    for what, kernel_member in (("network", None), ("network and kernel", KernelMember(beside, torch.tensor([0.5])))):
        predictor = Predictor([model], ModelHeader(task, featuriser, spec), str(device), kernel_member)
        for count in (100, 1000, 4000):
            if count > len(rest):
                continue
            some = rest.subset(torch.arange(count))
            note.attempt(f"{what}, {count} rows", partial(_prediction, predictor, some))


def _prediction(predictor: Predictor, store: MoleculeStore) -> dict[str, float]:
    device = predictor.device.type
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    predictor.predict_store(store)
    seconds, _ = timed(lambda: predictor.predict_store(store), device)
    peak = {"peak_GiB": torch.cuda.max_memory_allocated() / 2**30} if device == "cuda" else {}
    return {"rows_per_second": len(store) / seconds} | peak


def tests(note: Notes, device: torch.device, quick: bool) -> None:
    """The tests of the kernels, on the device."""
    if device.type != "cuda":
        note(what="tests of the kernels", **NEEDS_GPU)
        return
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore"]
    done = subprocess.run([*words, "tests/attention/fast/ragged_on_device.py"], capture_output=True, text=True)
    failed = [line[:200] for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    note(what="tests of the kernels", status=done.returncode, failed=failed)


PHASES = {"environment": environment, "step": step, "kernels": kernels}
PHASES |= {"train": train, "predict": predict, "tests": tests}

if __name__ == "__main__":
    main(sys.argv[1:])
