"""The ragged kernel: what needs no device here; what does, in a process of its own, since triton settles at import."""

import importlib.util
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from gtx.attention import AttentionRule, ScaledDotScore, Softmax
from gtx.attention.fast import ragged
from gtx.graph import CompleteGraph

ROOT = Path(__file__).parents[3]


needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="triton is not installed (it is for Linux only)"
)


def _version(package: str) -> tuple[int, ...]:
    return tuple(map(int, version(package).split(".")[:2]))


@pytest.mark.slow
@needs_triton
@pytest.mark.parametrize("where", ["interpreter", "cuda"])
def test_the_kernel_against_the_definition(where: str) -> None:
    """Runs `ragged_on_device.py`."""
    if where == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    if where == "interpreter" and _version("triton") < (3, 7) and _version("numpy") >= (2, 4):
        pytest.skip("the interpreter of triton 3.6 does not run with numpy 2.4; that of 3.7 does")
    environment = os.environ | {"TRITON_INTERPRET": "1" if where == "interpreter" else "0"}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore"]
    command += ["--noconftest", "tests/attention/fast/ragged_on_device.py"]  # which imports all of gtx
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-20000:] + done.stderr[-2000:]


@pytest.mark.slow
@needs_triton
@pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") == "1", reason="triton interprets")
@pytest.mark.parametrize("name", ["forward", "backward", "spread", "collect", "outer"])
def test_the_kernels_compile_for_a_gpu_that_is_not_here(name: str, monkeypatch, tmp_path) -> None:
    """The interpreter runs what the compiler may refuse."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from gtx.attention.fast import triton_kernels

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")  # triton's own, of which it warns
    kernel = getattr(triton_kernels, name)

    def compiled(target: GPUTarget, kind: str, precision: str, T: int, C: int, H: int = 8, K: int = 32) -> Any:
        rows, warps = ragged._SHAPES[T]
        constants = {"H": H, "T": T, "SUMS": triton.language.float32, "PRECISION": precision}
        if "Q" in kernel.arg_names:
            constants |= {"C": C, "D": C, "C_TILE": C, "D_TILE": C, "R": rows}
        else:
            constants |= {"K": K, "H_TILE": max(H, 16), "K_TILE": K, "R": 8}
        types = {"MOLECULES": "*i64", "SEED": "*i64", "MASK": "*u8", "dropout": "fp32"}
        types |= {x: "*fp32" for x in ("BIAS", "DBIAS", "GRAD_WEIGHTS", "W")}
        types |= {x: "constexpr" for x in constants}
        signature = {x: types.get(x, f"*{kind}" if x.isupper() else "i32") for x in kernel.arg_names}
        places = {(kernel.arg_names.index(x),): value for x, value in constants.items()}
        return triton.compile(ASTSource(kernel, signature, places), target, {"num_warps": warps, "num_stages": 1})

    if name in ("forward", "outer"):  # of tiles and of features; the others have no other operations
        assert compiled(GPUTarget("hip", "gfx942", 64), "bf16", "ieee", 16, 16).asm["hsaco"]
    # what a card with 99 KiB of shared memory is given fits into it
    of_tile = compiled(GPUTarget("cuda", 86, 32), "fp32", "tf32x3", 32, 64, H=64, K=64)
    assert of_tile.metadata.shared <= min(ragged._COPIES * 32 * 64 * 4, 101_376)


@pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") == "1", reason="triton interprets")
def test_it_does_not_run_on_a_cpu() -> None:
    """That all can be imported without triton is tested in `tests/test_rooms.py`."""
    x = torch.zeros(3, 2, 4)
    graph = CompleteGraph.from_ptr(torch.tensor([0, 3]))
    assert not ragged.can_run(graph, x, x, AttentionRule(ScaledDotScore(), Softmax()))


def test_the_largest_tile_by_width_type_and_card(monkeypatch) -> None:
    """Of a card with 227 KiB of shared memory, of those with 99 (sm_86, sm_89) and of one with 64 (sm_75)."""

    def largest(dtype: torch.dtype, *channels: int, shared: int) -> list[int]:
        card = SimpleNamespace(shared_memory_per_block_optin=shared)
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: card)
        return [ragged.limit(c, dtype, torch.device("cuda")) for c in channels]

    assert largest(torch.bfloat16, 1, 32, 64, 65, 128, 129, shared=232_448) == [64, 64, 64, 64, 64, 0]
    assert largest(torch.float32, 1, 16, 64, 65, 128, 129, shared=232_448) == [64, 64, 64, 32, 32, 0]
    assert largest(torch.float32, 16, 32, 64, 128, shared=101_376) == [64, 64, 32, 16]
    assert largest(torch.bfloat16, 32, 64, 128, shared=65_536) == [64, 64, 32]
