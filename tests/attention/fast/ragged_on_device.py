"""The kernels against the definition: on a GPU, or under triton's interpreter (then run in a process of its own).

`tests/attention/fast/test_ragged.py` runs this file; by itself, with triton:

    TRITON_INTERPRET=1 python -m pytest tests/attention/fast/ragged_on_device.py     # or without, on a GPU
"""

import os
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from gtx.attention import AttentionRule, BilinearScore, Hardmax, ScaledDotScore, Softmax, attend
from gtx.attention.definition import ProjectedEdgeFeatures
from gtx.attention.fast import ragged, verification
from gtx.graph import BipartiteGraph, CompleteGraph
from gtx.graph.constant_shape import BatchShape, ConstantShapeGraph
from gtx.graph.packing import MoleculesBySize, SizeBucket
from tests.attention.by_hand import close, complete
from tests.attention.fast import problem
from tests.attention.fast.problem import agree, inputs

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cpu" if INTERPRETED else "cuda"
SIZES = [3, 0, 16, 17, 33, 65]
H, C, D = 2, 16, 12
PRECISIONS = {torch.float32: 1e-5, torch.bfloat16: 3e-2} | ({} if INTERPRETED else {torch.float16: 4e-3})


made = partial(problem.made, device=DEVICE)


def run(graph: CompleteGraph, given: tuple[Tensor | None, ...], dropout: float = 0.0) -> Tensor:
    q, k, v, *edges, _ = given
    return ragged.attention(graph, q, k, v, ProjectedEdgeFeatures(*edges), dropout)


def rule(edges: ProjectedEdgeFeatures, dropout: float = 0.0) -> AttentionRule:
    return AttentionRule(ScaledDotScore(1.0), Softmax(), edges, dropout)


@pytest.mark.parametrize("dtype", PRECISIONS, ids=str)
def test_equals_the_definition(dtype: torch.dtype) -> None:
    graph = made([3, 0, 1, 17], masked=dtype != torch.float32)
    given = inputs(graph, dtype=dtype, key=8)
    out = run(graph, given)
    assert out.dtype == dtype and out.isfinite().all()
    agree(graph, given, out, PRECISIONS[dtype])


@pytest.mark.parametrize(
    ("sizes", "parts", "widths"),
    [
        ([4, 2], "", (2, 16, 12, 5)),
        ([4, 2], "s", (1, 1, 1, 1)),
        ([4, 2], "kb", (3, 5, 20, 33)),
        (SIZES, "b", (H, C, D)),
    ],
)
def test_any_parts_widths_and_tiles(sizes: list[int], parts: str, widths: tuple[int, ...]) -> None:
    graph = made(sizes, masked=sizes == SIZES)
    given = inputs(graph, parts, torch.float32, *widths)
    agree(graph, given, run(graph, given))


def test_large_molecules_beside_small_ones(monkeypatch) -> None:
    monkeypatch.setattr(ragged, "shared_memory", lambda device: 8 * 16 * C * 4)  # nothing above 16 atoms
    graph = made([3, 17, 0, 5, 18, 20], masked=True)
    given = inputs(graph)
    agree(graph, given, run(graph, given))
    assert ragged.plan(graph, 16)[1][2].num_graphs == 3
    monkeypatch.setattr(ragged, "shared_memory", lambda device: 0)  # nothing at all
    agree(graph, given, run(graph, given))


def test_compiled_code_holds_the_operator() -> None:
    """`attend` is one graph for the compiler, and the plan that it leaves with the batch serves uncompiled code."""
    graph, codes = made([4], masked=True), []
    q, k, v, *edges, upstream = inputs(graph)

    def collect(q: Tensor, k: Tensor, v: Tensor, edges: ProjectedEdgeFeatures) -> Tensor:
        return attend(graph, q, k, v, rule(edges)).out

    def backend(module: torch.fx.GraphModule, examples: list[Tensor]) -> Callable:
        codes.append(module.code)
        return torch._dynamo.lookup_backend("aot_eager")(module, examples)

    torch._dynamo.reset()
    out = torch.compile(collect, fullgraph=True, backend=backend)(q, k, v, ProjectedEdgeFeatures(*edges))
    assert [code.count("gtx.ragged_attention") for code in codes] == [1]
    agree(graph, (q, k, v, *edges, upstream), out)
    close(collect(q, k, v, ProjectedEdgeFeatures(*edges)), out, 1e-6)


KINDS = [(torch.bfloat16, None)]
if not INTERPRETED:
    KINDS += [(torch.float32, None), (torch.float16, None), (torch.float32, "high")]


@pytest.mark.parametrize(("dtype", "products"), KINDS, ids=str)
def test_the_kernels_pass_their_trial(dtype: torch.dtype, products: str | None) -> None:
    """Every part, in each precision; bias and features may be wider than the rest, as under autocast."""
    verification.forget()
    torch.set_float32_matmul_precision(products or "highest")
    try:
        wide = (dtype, torch.promote_types(dtype, torch.float32), torch.promote_types(dtype, torch.float32))
        for dtypes, widths, parts, tiles in (
            ((dtype,) * 3, (2, 16, 16, 5), (True, True, True, True), (16,)),
            (wide, (1, 8, 12, 3), (True, False, False, False), (16,) if INTERPRETED else (16, 64)),
        ):
            assert verification.verify(torch.device(DEVICE), dtypes, widths, parts, True, tiles) is None
    finally:
        torch.set_float32_matmul_precision("highest")


def no_compiler(launch: Callable) -> Callable:
    def broken(self, *arguments: Any) -> None:
        raise RuntimeError("Failed to find C compiler. Please specify via CC environment variable\nor set more")

    return broken


def is_off_by_a_hundredth(launch: Callable) -> Callable:
    def broken(self, name: str, each: Any, programs: int, rows: int, tensors: tuple, *others: Any) -> None:
        launch(self, name, each, programs, rows, tensors, *others)
        if name == "backward":
            tensors[8].mul_(1.01)  # the gradient of the queries, or of a weight that is not wanted

    return broken


NO_COMPILER = "do not run here (RuntimeError: Failed to find C compiler. Please specify via CC environment variable)"
FAULTS = {
    "no compiler": (no_compiler, NO_COMPILER),
    "off by a hundredth": (is_off_by_a_hundredth, "wrong numbers here (off by 0.00"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_kernels_that_do_not_run_cost_a_line_and_no_number(fault: str, monkeypatch, caplog) -> None:
    """Whatever is wrong with them, `attend` gives the definition's output and gradients."""
    verification.forget()
    breaking, words = FAULTS[fault]
    monkeypatch.setattr(ragged._Launches, "_launch", breaking(ragged._Launches._launch))
    graph = made([3, 5], masked=True)
    for _ in range(2):
        given = inputs(graph, "svb")
        q, k, v, *edges, _ = given
        agree(graph, given, attend(graph, q, k, v, rule(ProjectedEdgeFeatures(*edges))).out)
    lines = [record.getMessage() for record in caplog.records if "Triton" in record.getMessage()]
    assert len(lines) == 1 and lines[0].startswith(
        f"attention on {DEVICE} runs as matrix products: the Triton kernels "
    )
    assert words in lines[0] and "\n" not in lines[0]
    verification.forget()


def test_fake_tensors_pass_forward_and_backward() -> None:
    graph, mode = made([2]), FakeTensorMode()
    given = inputs(graph)
    out = run(graph, given, 0.5)
    real = [out, *torch.autograd.grad(out, given[:-1], given[-1])]
    faked = tree_map_only(Tensor, mode.from_tensor, graph)
    given = [mode.from_tensor(x.detach()).requires_grad_() for x in given]
    with mode:
        out = run(faked, given, 0.5)
        fake = [out, *torch.autograd.grad(out, given[:-1], given[-1])]
    for one, other in zip(fake, real, strict=True):
        assert (one.shape, one.dtype, one.stride()) == (other.shape, other.dtype, other.stride())


class Asked(TorchDispatchMode):
    """Which operators run."""

    def __init__(self) -> None:
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func: Callable, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        self.names.append(func.__name__)
        return func(*args, **(kwargs or {}))


def test_a_graph_of_constant_shape_has_a_plan_of_its_own_and_a_ghost() -> None:
    """Nothing is read back from the device; the ghost's atoms get zeros, and so do all their gradients."""
    sizes, atoms, pairs = [4, 2, 1, 0], 12, 30
    solid, batch_shape = made(sizes), BatchShape(atoms, pairs, 0, ((1, 20), (3, 6)))
    n, p = solid.num_nodes, solid.num_pairs
    graph = ConstantShapeGraph.from_sizes(torch.tensor(sizes, device=DEVICE), batch_shape)
    given = inputs(graph)
    with torch.no_grad():
        for x in (given[3], given[4]):
            x[p:] = torch.nan  # nobody looks there
    with Asked() as asked:
        assert ragged.can_run(graph, given[0], given[2], rule(ProjectedEdgeFeatures(*given[3:-1])))
        out = run(graph, given)
        grads = torch.autograd.grad(out, given[:-1], given[-1])
    assert "ragged_attention_backward.default" in asked.names
    readers = ("sort", "nonzero", "_local_scalar_dense", "item", "_to_copy")
    assert not [name for name in asked.names if name.startswith(readers)]
    alike = [x[:p] if x.shape[0] == pairs else x[:n] if x.shape[0] == atoms else x for x in given]
    expected = run(solid, alike)
    close(out, torch.cat([expected, out.new_zeros(atoms - n, H, D)]), 1e-6)
    for one, other in zip(grads, torch.autograd.grad(expected, alike[:-1], alike[-1]), strict=True):
        close(one[: len(other)], other, 1e-5)
        assert one[len(other) :].eq(0).all()
    assert "packed" not in graph.shared  # no bucket is needed
    large = MoleculesBySize(
        graph.size_order.molecules, (SizeBucket(0, 1, 0, 300), SizeBucket(1, 4, 0, 6)), complete=False
    )
    assert not ragged.fits(SimpleNamespace(size_order=large), 256)  # they cannot be picked out
    assert ragged.fits(SimpleNamespace(size_order=large._replace(complete=True)), 256)


def test_each_tensor_is_read_by_strides_of_its_own() -> None:
    graph = made([3, 5])
    q, k, v, *edges, upstream = inputs(graph, "kb")
    expected = run(graph, (q, k, v, *edges, upstream))
    apart = torch.autograd.grad(expected, [q, k, v], upstream)
    wide_q, wide_k = (torch.cat([x, x[:, :more]], 1).detach().requires_grad_() for x, more in ((q, 1), (k, 2)))
    by_head = v.detach().transpose(0, 1).contiguous().requires_grad_()
    views = (wide_q[:, :H], wide_k[:, :H], by_head.transpose(0, 1))
    assert len({stride for x in views for stride in x.stride()[:2]}) == 5  # C twice, of two
    out = run(graph, (*views, *edges, upstream))
    assert out.equal(expected)
    for one, other in zip(torch.autograd.grad(out, views, upstream), apart, strict=True):
        assert one.equal(other)


def test_pairs_are_numbered_beyond_32_bits(tmp_path) -> None:
    """A molecule of 5 atoms behind two thousand million pairs, whose mask says who hears whom."""
    pair, n = 2**31 + 100, 5
    mask = torch.from_file(str(tmp_path / "mask"), shared=True, size=pair + n * n, dtype=torch.bool)  # takes no room
    mask[pair:] = True
    mask[pair + 1 : pair + n] = False  # the first atom hears itself alone
    q, k, v = (torch.randn(n, H, C, device=DEVICE) for _ in range(3))
    molecules = torch.tensor([[0], [pair], [n]], device=DEVICE)
    work = molecules, [0, 1, 1, 16], True, len(mask)
    out, _ = ragged.attend_tiles(q, k, v, None, None, None, mask.to(DEVICE), None, *work, False, 0.0)
    small = complete([n]).to(DEVICE).masked(mask[pair:].to(DEVICE))
    close(out, ragged.attention(small, q, k, v), 1e-6)
    close(out[0], v[0], 1e-6)


def dropped(graph: CompleteGraph, p: float, seed: int, heads: int = H) -> Tensor:
    """The dropout factors, `[num_pairs, H]`: equal weights, and values that say which sender they are."""
    most = int(graph.ptr.diff().max())
    local = torch.arange(graph.num_nodes, device=DEVICE) - graph.ptr[graph.batch]
    zeros = torch.zeros(graph.num_nodes, heads, 1, device=DEVICE)
    one_hot = torch.nn.functional.one_hot(local, most).float()[:, None].expand(-1, heads, -1)
    torch.manual_seed(seed)
    out = ragged.attention(graph, zeros, zeros, one_hot, dropout=p)
    sender, receiver = graph.pair_index
    size = graph.ptr.diff()[graph.batch[receiver]]
    return out[receiver, :, local[sender]] * size[:, None]


def test_dropout_keeps_its_share_and_follows_the_seed() -> None:
    graph, p = made([64, 30, 3]), 0.25
    factor = dropped(graph, p, 0)
    kept = factor != 0
    close(factor[kept], torch.full_like(factor[kept], 1 / (1 - p)), 1e-5)
    sender, expected = graph.pair_index[0], 1 - p

    def share(which: Tensor) -> None:
        sigma = (expected * p / which.numel()) ** 0.5
        assert abs(float(which.float().mean()) - expected) < 4 * sigma

    share(kept)
    for i in range(4):  # the four draws of one call
        share(kept[sender % 4 == i])
    for one, other in ((kept[:, 0], kept[:, 1]), (kept[:-1], kept[1:]), (kept[:-4], kept[4:]), (kept[:-64], kept[64:])):
        both = (one & other).float().mean()  # neither heads, nor senders, nor receivers repeat each other
        assert abs(float(both) - expected**2) < 5 * (expected**2 * (1 - expected**2) / one.numel()) ** 0.5
    twins = dropped(made([17, 17]), p, 0)
    assert not twins[: 17 * 17].equal(twins[17 * 17 :])  # nor molecules of one size
    assert dropped(graph, p, 0).equal(factor)
    assert not dropped(graph, p, 1).equal(factor)


def test_dropout_is_the_same_backward_and_for_features() -> None:
    sizes = [3, 0, 17]
    graph = made(sizes, masked=True)
    factor = dropped(complete(sizes).to(DEVICE), 0.5, 7).double()
    given = inputs(graph, "svb")
    torch.manual_seed(7)
    agree(graph, given, run(graph, given, 0.5), factor=factor)


@pytest.mark.parametrize("sizes", [[], [0, 4, 0]])
def test_graphs_without_nodes(sizes: list[int]) -> None:
    graph = made(sizes)
    *leaves, upstream = inputs(graph)
    out = run(graph, (*leaves, upstream))
    assert out.shape == (sum(sizes), H, D)
    assert [g.shape for g in torch.autograd.grad(out, leaves, upstream)] == [x.shape for x in leaves]


def test_no_second_derivative_in_silence() -> None:
    graph = made([4])
    given = inputs(graph, "b")
    first = torch.autograd.grad(run(graph, given).square().sum(), given[2], create_graph=True)[0]
    with pytest.raises(RuntimeError, match="first derivatives only; for others set GTX_COMPILED=0"):
        first.sum().backward()


def test_says_what_it_can_run() -> None:
    graph = made([3, 0, 1, 17, 5])
    q, _, v, *edges, _ = inputs(graph)
    none, edges = ProjectedEdgeFeatures(), ProjectedEdgeFeatures(*edges)

    def can(graph=graph, query=q, value=v, score=None, normaliser=None, edges=none) -> bool:
        return ragged.can_run(
            graph, query, value, AttentionRule(score or ScaledDotScore(), normaliser or Softmax(), edges)
        )

    assert can() and can(edges=edges) and can(query=q.bfloat16(), score=BilinearScore(H, C))
    assert not can(edges=edges._replace(state_value=torch.zeros(H, D, 1)))
    assert can(edges=ProjectedEdgeFeatures(torch.zeros(1, 65), score=torch.zeros(H, 65)))  # as a bias
    assert not can(edges=ProjectedEdgeFeatures(torch.zeros(1, 65), value=torch.zeros(H, D, 65)))
    assert not can(normaliser=Hardmax()) and not can(normaliser=Softmax(2.0))
    assert not can(score=SimpleNamespace(bilinear=False))
    assert not can(query=q.int())
    assert not can(made([300])) and not can(made([]))
    assert not can(value=torch.zeros(1, H, 129))
    assert not can(BipartiteGraph.between(graph.ptr, graph.ptr))


def test_autocast_is_followed() -> None:
    graph = made([4])
    given = inputs(graph)
    with torch.autocast(DEVICE, torch.bfloat16):
        out = run(graph, given)
        assert (
            verification.why_not(graph, *given[:3], ProjectedEdgeFeatures(*given[3:-1])) is None
        )  # its trial is not cast
    assert out.dtype == torch.bfloat16
    leaves = given[:-1]
    assert [g.dtype for g in torch.autograd.grad(out.float().sum(), leaves)] == [torch.float32] * len(leaves)
