"""Processes that train together in tests: forked from a server that has imported everything, so that each is cheap."""

import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

import gtx.cli.train  # noqa: F401
import gtx.workflow.run  # noqa: F401
from gtx.cli import main
from gtx.training import TrainingModule

from .task import LOGP, SMILES, SPLIT

FORKS = get_context("forkserver")
FORKS.set_forkserver_preload(["tests.training.warm"])

Status = tuple[int, str]
"""How a process ended, and what it said."""


def command(out: Path, *more: str) -> list[str]:
    """The words of a small training: 48 rows, 2 epochs, 16 molecules a batch."""
    table = out.with_suffix(".csv")
    parts = {row: part for part, rows in SPLIT.items() for row in rows}
    rows = [f"{smiles},{y:.4f},{parts[i]}" for i, (smiles, (y,)) in enumerate(zip(SMILES, LOGP, strict=True))]
    table.write_text("\n".join(["smiles,y,part", *rows]) + "\n")
    words = (
        f"train {table} --target-columns y --split-column part --out {out} --epochs 2 --batch-molecules 8 --threads 1"
    )
    tiny = "--accelerator cpu --blend no --no-baselines --no-report --model-arguments channels=16 layers=1 heads=2"
    slow = "--rates all=0.5 head=1 embedding.pairs=0"
    return [*words.split(), *tiny.split(), *slow.split(), *more]


def gtx_train(words: list[str], die: Path | None = None) -> None:
    """`gtx train`, as a process. The last of two ranks kills itself in its second epoch, once: it makes the file `die`.

    Beside the folder each rank notes the epochs and batches that it saw, and the files of molecules that it maps.
    """
    rank, out = os.environ.get("RANK", "0"), Path(words[words.index("--out") + 1])
    seen = out.with_suffix(f".seen-{rank}")

    def at(module: TrainingModule, batch: int) -> None:
        epoch = module.current_epoch
        mapped = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if str(out) in line}
        out.with_suffix(f".mapped-{rank}").write_text("\n".join(sorted(Path(name).name for name in mapped)))
        with seen.open("a") as file:
            file.write(f"{epoch}.{batch} ")
        if die is not None and rank == "1" and (epoch, batch) == (1, 1) and not die.exists():
            die.touch()
            os.kill(os.getpid(), signal.SIGKILL)

    _train(words, at)


def lightning_train(words: list[str], last: int) -> None:
    """`gtx train` whose other processes Lightning starts; this one gets SIGTERM in its training step number `last`."""
    steps = []

    def at(*where: Any) -> None:
        steps.append(where)
        if len(steps) == last:
            os.kill(os.getpid(), signal.SIGTERM)

    os.chdir(Path(__file__).parents[2])
    sys.modules["__main__"].__spec__ = find_spec("gtx.__main__")  # what Lightning starts anew
    sys.argv[1:] = words
    _train(words, at)


def _train(words: list[str], at: Callable[[TrainingModule, int], None]) -> None:
    step = TrainingModule.training_step

    def training_step(self: TrainingModule, batch: Any, index: int) -> Any:
        at(self, index)
        return step(self, batch, index)

    TrainingModule.training_step = training_step
    torch.set_num_threads(1)
    sys.exit(main(words))


def ranks(folder: Path, *functions: Callable[[], Any], devices: int = 1) -> list[Status]:
    """Each function as a rank of one training, in the environment that torchrun gives; `devices` of them a machine."""
    size = len(functions)
    shared = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": _port(),
        "WORLD_SIZE": size,
        "GROUP_WORLD_SIZE": size // devices,
    }
    shared |= {"TORCHELASTIC_RUN_ID": "test", "LOCAL_WORLD_SIZE": devices}
    own = [{"RANK": rank, "LOCAL_RANK": rank % devices, "GROUP_RANK": rank // devices} for rank in range(size)]
    return processes(folder, *functions, environments=[shared | mine for mine in own])


def torchrun(folder: Path, restarts: int, function: Callable[..., Any], *arguments: Any) -> list[Status]:
    """What torchrun does on two machines, simulated here: two agents that start one process each, as forks."""
    meeting = {"run_id": "test", "rdzv_backend": "c10d", "rdzv_endpoint": f"127.0.0.1:{_port()}"}
    config = LaunchConfig(
        *(2, 2, 1), **{**meeting, "max_restarts": restarts}, **{"start_method": "fork", "monitor_interval": 0.05}
    )
    agent = partial(_launch, config, function, arguments)
    return processes(folder, agent, agent, environments=[{"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": 1}] * 2)


def processes(
    folder: Path, *functions: Callable[[], Any], environments: Sequence[dict[str, Any]] = ({},)
) -> list[Status]:
    """The functions in processes of their own, at the same time."""
    folder.mkdir(parents=True, exist_ok=True)
    logs = [folder / f"said-{number}" for number in range(len(functions))]
    jobs = zip(logs, environments, functions, strict=True)
    started = [FORKS.Process(target=_run, args=job) for job in jobs]
    for process in started:
        process.start()
    for process in started:
        process.join(120)
        process.kill()
    return [(process.exitcode, log.read_text()) for process, log in zip(started, logs, strict=True)]


def _port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def _run(log: Path, environment: dict[str, Any], function: Callable[[], Any]) -> None:
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(file, stream)
    os.environ.update({name: str(value) for name, value in environment.items()})
    function()


def _launch(config: LaunchConfig, function: Callable[..., Any], arguments: Sequence[Any]) -> None:
    elastic_launch(config, function)(*arguments)
