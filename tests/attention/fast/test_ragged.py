"""The ragged kernel: what needs no device here; what does, in a process of its own, since triton settles at import."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import torch

from gtx.attention import EdgeFeatures, ScaledDot, Softmax
from gtx.attention.fast import ragged
from gtx.attention.fast.size_classes import limit, plan
from gtx.graph import CompleteGraph

ROOT = Path(__file__).parents[3]


needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="triton is not installed (it is for Linux only)"
)


def _version(package: str) -> tuple[int, ...]:
    return tuple(map(int, version(package).split(".")[:2]))


@needs_triton
@pytest.mark.parametrize("where", ["interpreter", "cuda"])
def test_the_kernel_against_the_definition(where: str) -> None:
    """Runs `ragged_on_device.py`."""
    if where == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    if where == "interpreter" and _version("triton") < (3, 9) and _version("numpy") >= (2, 4):
        pytest.skip("the interpreter of triton 3.6 does not run with numpy 2.4; that of 3.9 does")
    environment = os.environ | {"TRITON_INTERPRET": "1" if where == "interpreter" else "0"}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore"]
    command += ["tests/attention/fast/ragged_on_device.py"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-20000:] + done.stderr[-2000:]


@needs_triton
@pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") == "1", reason="triton interprets")
@pytest.mark.parametrize("name", ["forward", "backward", "spread", "collect", "outer"])
def test_the_kernels_compile_for_a_gpu_that_is_not_here(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The interpreter runs what the compiler may refuse."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from gtx.attention.fast import triton_kernels

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")  # triton's own, of which it warns
    kernel = getattr(triton_kernels, name)
    constants = {"H": 8, "T": 32, "SUMS": triton.language.float32, "PRECISION": "tf32x3"}
    if "Q" in kernel.arg_names:
        constants |= {"C": 16, "D": 16, "C_TILE": 16, "D_TILE": 16, "R": 32}
    else:
        constants |= {"K": 32, "H_TILE": 16, "K_TILE": 32, "R": 8}
    types = {"MOLECULES": "*i64", "SEED": "*i64", "MASK": "*u8", "dropout": "fp32"}
    types |= {x: "*fp32" for x in ("BIAS", "DBIAS", "GRAD_WEIGHTS", "W")}
    types |= {x: "constexpr" for x in constants}
    signature = {x: types.get(x, "*bf16" if x.isupper() else "i32") for x in kernel.arg_names}
    places = {(kernel.arg_names.index(x),): value for x, value in constants.items()}
    done = triton.compile(ASTSource(kernel, signature, places), GPUTarget("cuda", 90, 32), {"num_warps": 2})
    assert done.asm["cubin"]


def test_without_triton_nothing_breaks_before_it_is_called() -> None:
    code = (
        "import sys; sys.modules['triton'] = None; import torch, gtx.nn; from gtx.attention.fast import ragged; "
        "from gtx.graph import CompleteGraph; torch.cuda.is_available = lambda: True; x = torch.zeros(3, 2, 4); "
        "print(ragged.available()); ragged.attention(CompleteGraph.from_ptr(torch.tensor([0, 3])), x, x, x)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "False"
    assert done.stderr.strip().endswith("RuntimeError: expected triton and a CUDA device (or TRITON_INTERPRET=1)")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a device it can run on")
def test_without_a_device_it_says_so() -> None:
    graph = CompleteGraph.from_ptr(torch.tensor([0, 3]))
    x = torch.zeros(3, 2, 4)
    assert not ragged.available()
    assert not ragged.can_run(graph, x, x, ScaledDot(), Softmax(), EdgeFeatures())
    with pytest.raises(RuntimeError, match="expected triton and a CUDA device"):
        ragged.attention(graph, x, x, x)


@pytest.mark.parametrize("most", [1, 2, 4])
@pytest.mark.parametrize("largest", [16, 64, 256])
@pytest.mark.parametrize(
    "sizes", [[3, 0, 1, 16, 17, 64, 5, 65, 300, 33, 0], [9, 38, 20, 31] * 40, [80, 120, 300], [0, 0, 7]]
)
def test_every_molecule_is_worked_through_once(sizes: list[int], largest: int, most: int) -> None:
    """In the smallest tile that holds it; its nodes and pairs are where the plan says."""
    graph = CompleteGraph.from_ptr(torch.tensor([0, *sizes]).cumsum(0), max_buckets=most)
    work = plan(graph, largest)
    assert plan(graph, largest) is work
    done = []
    for tile, least, first, count in work.classes:
        for node, pair, size in work.molecules[:, first : first + count].T.tolist():
            if least < size <= tile:  # else its program ends at once
                assert tile == 16 or 2 * size > tile
                assert graph.batch[node] == graph.batch[node + size - 1]
                assert graph.pair_index[:, pair].tolist() == [node, node]
                done.append((node, size))
    small = [(lo, n) for lo, n in zip(graph.ptr.tolist(), sizes, strict=False) if 0 < n <= largest]
    assert sorted(done) == small
    if work.large is None:
        assert max(sizes) <= largest
    else:
        nodes, pairs, rest = work.large
        assert rest.ptr.diff().tolist() == [n for n in sizes if n > largest]
        assert nodes[rest.pair_index].equal(graph.pair_index[:, pairs])


def test_the_largest_tile_by_width_and_type() -> None:
    assert [limit(c, torch.bfloat16) for c in (1, 16, 32, 33, 64, 128, 129)] == [256, 256, 256, 128, 128, 64, 0]
    assert [limit(c, torch.float32) for c in (1, 16, 32, 64, 128, 129)] == [256, 256, 128, 64, 32, 0]
