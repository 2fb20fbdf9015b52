"""The compiled loop against its definition: every part, every gradient, any number of heads, threads and atoms."""

import logging
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence

import pytest
import torch
from torch import Tensor

from gtx.attention import AttentionRule, ScaledDotScore, Softmax, attend
from gtx.attention.definition import ProjectedEdgeFeatures
from gtx.attention.fast import building, compiled
from gtx.graph import CompleteGraph
from tests.attention.fast.problem import agree, gradients, inputs, made

SIZES = [9, 1, 23, 0, 38, 2, 17]
RULE = AttentionRule(ScaledDotScore(), Softmax())
needs_compiler = pytest.mark.skipif(building.compiler() is None, reason="there is no C compiler")


def fast(graph: CompleteGraph, given: Sequence[Tensor | None], dropout: float = 0.0) -> Tensor:
    q, k, v, *edges = given[:8]
    return compiled.attention(graph, q, k, v, ProjectedEdgeFeatures(*edges), dropout)


SHAPES = [  # parts, whether there is a mask, and heads, channels of key and value, and features
    *(("", False, 4, 8, 6, 5), ("b", True, 4, 8, 6, 5), ("kv", True, 4, 8, 6, 5), ("sv", False, 4, 8, 6, 5)),
    *(("kvs", False, 1, 3, 5, 7), ("kvs", False, 16, 4, 4, 16), ("kvs", False, 8, 64, 1, 1)),
]
IN_BOTH = [("kvsb", True, H, 8, 8, 32) for H in (1, 4, 16)]


@needs_compiler
@pytest.mark.parametrize(
    ("shape", "dtype", "tolerance"),
    [
        *((shape, torch.float64, 1e-10) for shape in (*SHAPES, IN_BOTH[1])),
        *((shape, torch.float32, 1e-5) for shape in IN_BOTH),
    ],
)
def test_output_and_every_gradient(shape: tuple, dtype: torch.dtype, tolerance: float) -> None:
    parts, masked, *widths = shape
    graph = made(SIZES, masked)
    given = inputs(graph, parts, dtype, *widths)
    agree(graph, given, fast(graph, given), tolerance)


@needs_compiler
def test_dropout_is_a_factor_on_the_weights() -> None:
    graph = made(SIZES)
    given = inputs(graph, "kvs", torch.float64, 4, 8, 6, 5)
    torch.manual_seed(0)
    factor = torch.nn.functional.dropout(torch.ones(graph.num_pairs, 4, dtype=torch.float64), 0.3)
    torch.manual_seed(0)
    agree(graph, given, fast(graph, given, 0.3), 1e-10, factor)


@needs_compiler
def test_gradients_of_gradients() -> None:
    graph = made([3, 1, 2])
    *tensors, _ = inputs(graph, "kvsb", torch.float64, 2, 2, 3, 2)
    turned = [x.detach().mT.contiguous().mT.requires_grad_() for x in tensors]  # not contiguous
    for given in (tensors, turned):
        assert torch.autograd.gradgradcheck(lambda *given: fast(graph, given), given, fast_mode=True)


@needs_compiler
def test_threads_and_turns_change_nothing() -> None:
    graph = made([*SIZES * 4, 150])
    given = inputs(graph, "kvsb", torch.float32, 8, 8, 8, 32)
    found, before = [], torch.get_num_threads()
    try:
        for threads in (1, 2, 2, 3):
            torch.set_num_threads(threads)
            out = fast(graph, given)
            found.append([out, *gradients(out, given)])
    finally:
        torch.set_num_threads(before)
    for one, other in zip(found[1], found[2], strict=True):
        assert torch.equal(one, other)
    for other in found[1:]:
        for i, (one, two) in enumerate(zip(found[0], other, strict=True)):
            if i >= 6:  # maps are summed range by range
                torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-3)
            else:
                assert torch.equal(one, two)


@needs_compiler
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_large_scores_stay_finite_and_exact(dtype: torch.dtype) -> None:
    graph = made([5])
    tensors = [torch.randn(5, 4, 3, dtype=dtype, generator=torch.Generator().manual_seed(i)) for i in range(3)]
    bias = torch.zeros(25, 4, dtype=dtype)
    bias[0], bias[7], bias[12] = 3e4, -3e4, -torch.inf  # pairs (0, 0), (1, 2), (2, 2)
    out = fast(graph, [*tensors, None, bias])
    torch.testing.assert_close(out[0], tensors[2][0])
    without = compiled.attend_by_definition(*tensors, *[None] * 4, bias, graph=graph)
    torch.testing.assert_close(out, without)


@needs_compiler
def test_rows_of_a_fused_projection_are_read_in_place() -> None:
    graph = made(SIZES)
    fused = torch.randn(graph.num_nodes, 3, 4, 8, dtype=torch.float64)
    tensors = fused.unbind(1)
    found = compiled.attention(graph, *tensors, ProjectedEdgeFeatures())
    torch.testing.assert_close(found, compiled.attend_by_definition(*tensors, *[None] * 5, graph=graph))


@needs_compiler
def test_what_it_declines_goes_the_plain_way() -> None:
    graph = made(SIZES)
    q, k, v, *_ = inputs(graph, heads=4, key=8, value=8)
    assert compiled.can_run(graph, q, k, v, RULE)
    assert not compiled.can_run(graph, q, k, v, RULE._replace(normaliser=Softmax(2.0)))
    assert not compiled.can_run(graph, *(x[:, :3] for x in (q, k, v)), RULE)
    assert not compiled.can_run(graph, *(x.half() for x in (q, k, v)), RULE)
    in_double = ProjectedEdgeFeatures(torch.zeros(graph.num_pairs, 5), score=torch.zeros(4, 5).double())
    assert not compiled.can_run(graph, q, k, v, RULE._replace(edges=in_double))
    with torch.autocast("cpu", torch.bfloat16):
        assert not compiled.can_run(graph, q, k, v, RULE)
    plain = torch.func.grad(lambda x: attend(graph, x, k, v, RULE).out.sum())(q)
    ours = torch.autograd.grad(attend(graph, q, k, v, RULE).out.sum(), q)[0]
    torch.testing.assert_close(plain, ours, rtol=1e-4, atol=1e-5)
    forward = torch.func.jacfwd(lambda x: attend(graph, x, k, v, RULE).out.sum())(q)
    torch.testing.assert_close(forward, ours, rtol=1e-4, atol=1e-5)


def test_shapes_that_do_not_fit_are_named_before_memory_is_read() -> None:
    graph = made([4])
    q, k, v, e, bias, _, _, value, _ = (x.detach() for x in inputs(graph))
    wrong = [
        ((q[:3], k, v), {}, r"expected 4 senders and 4 receivers, as in CompleteGraph.*, got 4 and 3"),
        ((q, k[:, :1], v), {}, r"query \[4, H, C\], key .* got \[4, 2, 16\], \[4, 1, 16\], \[4, 2, 12\]"),
        ((q, k, v), {"bias": bias[1:]}, r"expected edges with bias \[16, 2\], got \[15, 2\]"),
        ((q, k, v), {"features": e, "value": value[:, :3]}, r"expected edges with value \[2, 12, 5\], got \[2, 3, 5\]"),
    ]
    for tensors, edges, message in wrong:
        with pytest.raises(ValueError, match=message):
            attend(graph, *tensors, RULE._replace(edges=ProjectedEdgeFeatures(**edges)))
    with pytest.raises(ValueError, match=r"expected 0 <= dropout < 1, got 1\.0"):
        attend(graph, q, k, v, RULE._replace(dropout=1.0))


def test_without_a_compiler_the_plain_form_runs(monkeypatch, tmp_path) -> None:
    graph = made(SIZES)
    q, k, v, *_ = inputs(graph, dtype=torch.float64, heads=4, key=8, value=8)
    before = attend(graph, q, k, v, RULE).out
    monkeypatch.setenv("GTX_COMPILED", "0")
    building.build.cache_clear()
    try:
        assert not compiled.can_run(graph, q, k, v, RULE)
        torch.testing.assert_close(attend(graph, q, k, v, RULE).out, before, rtol=1e-10, atol=1e-10)
    finally:
        building.build.cache_clear()


@needs_compiler
def test_a_compiler_that_fails_is_told_of(monkeypatch, tmp_path, caplog) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    source = tmp_path / "broken.c"
    source.write_text("#error no such machine\n")
    with caplog.at_level(logging.WARNING):
        assert building.build(source) is None
    assert "broken.c cannot be compiled, so the plain form runs" in caplog.text
    assert not list(tmp_path.rglob("*.so"))


@needs_compiler
def test_it_is_compiled_once(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    source = tmp_path / "answer.c"
    source.write_text("int answer(void) { return ANSWER; }\n")
    assert building.build(source, ANSWER=42).answer() == 42
    made = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.so")}
    building.build.cache_clear()
    assert building.build(source, ANSWER=42).answer() == 42
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.so")} == made
    assert building.build(source, ANSWER=43).answer() == 43
    source.write_text("int answer(void) { return ANSWER + 1; }\n")
    building.build.cache_clear()
    assert building.build(source, ANSWER=42).answer() == 43


@pytest.fixture
def answer(monkeypatch, tmp_path) -> Iterator[Callable[[], int | None]]:
    """What a small library says that is looked for anew at every call; its cache and temporary folders are below
    `tmp_path`, under `cache` and `scratch`."""
    source, scratch = tmp_path / "answer.c", tmp_path / "scratch"
    source.write_text("int answer(void) { return 42; }\n")
    scratch.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))

    def ask() -> int | None:
        building.build.cache_clear()
        library = building.build(source)
        return None if library is None else library.answer()

    yield ask
    building.build.cache_clear()


@needs_compiler
def test_no_library_is_loaded_from_a_folder_that_others_may_write_to(answer, tmp_path, caplog) -> None:
    assert answer() == 42
    (file,) = tmp_path.rglob("*.so")
    planted = tmp_path / "planted.c"
    planted.write_text("int answer(void) { return 666; }\n")
    subprocess.run([building.compiler(), "-shared", "-fPIC", str(planted), "-o", str(tmp_path / "p.so")], check=True)
    file.unlink()
    os.replace(tmp_path / "p.so", file)
    assert answer() == 666  # so far nobody else could have put it there
    os.chmod(file.parent, 0o777)
    with caplog.at_level(logging.WARNING):
        assert answer() == 42
    assert f"cannot be kept in {file.parent}: others may write to it" in caplog.text


@needs_compiler
def test_a_damaged_library_is_compiled_again(answer: Callable[[], int | None], tmp_path) -> None:
    assert answer() == 42
    (file,) = tmp_path.rglob("*.so")
    file.unlink()  # a new file, as the old one is mapped into this process
    file.write_bytes(b"")
    assert answer() == 42 and file.stat().st_size > 0


@needs_compiler
def test_where_nothing_can_be_kept_a_loop_is_compiled_all_the_same(answer, tmp_path, caplog) -> None:
    (tmp_path / "cache").write_text("a file, not a folder")
    with caplog.at_level(logging.WARNING):
        assert answer() == 42
    assert "compiled code cannot be kept in" in caplog.text and not list((tmp_path / "scratch").iterdir())
