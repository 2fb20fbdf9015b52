"""Compiled layers against their plain forms: the embedding of features, and messages over bonds."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch_geometric.nn import GINEConv

from gtx.attention.fast import building
from gtx.encodings import CategoricalFeatureSpec, ContinuousFeatureSpec
from gtx.molecules import Featuriser
from gtx.nn import BondMessagePassing, CategoricalEmbedding, PairEmbedding, compiled
from gtx.nn.bonds import LazyBondEmbedding
from tests.molecules_for_tests import featurised

needs_compiler = pytest.mark.skipif(building.compiler() is None, reason="there is no C compiler")

FEATURES = [
    CategoricalFeatureSpec((4, 2, 5)),
    ContinuousFeatureSpec(3),
    CategoricalFeatureSpec((7,)),
    ContinuousFeatureSpec(16),
]


def features(count: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    made = []
    for feature in FEATURES:
        if isinstance(feature, CategoricalFeatureSpec):
            made.append(torch.stack([torch.randint(size, (count,), generator=generator) for size in feature.sizes], 1))
        else:  # laid out as random walks are, and not
            values = torch.randn(feature.channels, count, generator=generator).T
            made.append(values if feature.channels == 16 else values.contiguous())
    return made


def fast(layer: PairEmbedding, given: list[Tensor]) -> Tensor | None:
    return compiled.embed_features(layer.parts, layer.mlp, given)


@needs_compiler
@pytest.mark.parametrize(
    ("count", "channels", "mlp"), [(0, 16, True), (1, 32, False), (8, 48, True), (1003, 128, True), (1003, 16, False)]
)
def test_is_the_plain_form(count: int, channels: int, mlp: bool, monkeypatch) -> None:
    torch.manual_seed(1)
    layer, given = PairEmbedding(FEATURES, channels, mlp), features(count)
    with torch.no_grad():
        found = fast(layer, given)
        monkeypatch.setattr("gtx.nn.embedding.embed_features", lambda *_: None)
        torch.testing.assert_close(found, layer(given), rtol=1e-5, atol=2e-6)


def gradients(out: Tensor, wanted: list[Tensor], twice: bool) -> list[Tensor]:
    """Of the output, or of the norm of these gradients."""
    towards = torch.linspace(-1, 2, out.numel()).view(out.shape).to(out)
    grads = torch.autograd.grad(out, wanted, towards, create_graph=twice)
    return [*torch.autograd.grad(sum(grad.square().sum() for grad in grads), wanted)] if twice else [*grads]


@needs_compiler
@pytest.mark.parametrize(
    ("count", "channels", "threads", "twice"),
    [(0, 16, 1, False), (1, 48, 2, False), (1003, 128, 2, False), (1003, 16, 1, False), (9, 16, 1, True)],
)
def test_gradients_are_those_of_the_plain_form(count: int, channels: int, threads: int, twice: bool) -> None:
    torch.manual_seed(1)
    layer, given, before = PairEmbedding(FEATURES, channels), features(count), torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        assert fast(layer, given).requires_grad
        found = gradients(layer(given), list(layer.parameters()), twice)
    finally:
        torch.set_num_threads(before)
    in_double = [x.double() if x.is_floating_point() else x for x in given]
    expected = gradients(layer.double()(in_double), list(layer.parameters()), twice)
    for one, exact in zip(found, expected, strict=True):
        assert (one - exact).norm() <= (1e-5 if twice else 2e-6) * exact.norm()


@needs_compiler
def test_gelu_is_within_single_precision_everywhere() -> None:
    layer = PairEmbedding([ContinuousFeatureSpec(1)], 16)
    x = torch.cat([torch.linspace(-12, 12, 4001), torch.tensor([0.0, 1e-30, -1e30, 1e30])])
    with torch.no_grad():
        layer.parts[0].weight.fill_(1.0)
        layer.parts[0].bias.zero_()
        layer.mlp[1].weight.copy_(torch.eye(16))
        layer.mlp[1].bias.zero_()
        found = fast(layer, [x[:, None]])[:, 0]
    gelu = torch.nn.functional.gelu
    exact = gelu(gelu(x.double())).float()
    torch.testing.assert_close(found, exact, rtol=3e-7, atol=1e-6)


@needs_compiler
@pytest.mark.parametrize(
    ("feature", "other"),
    [
        (1, lambda values: values.long()),
        (1, lambda values: values[:, :2]),
        (1, lambda values: values.repeat(1, 2)),
        (0, lambda codes: codes.float()),
        (0, lambda codes: codes[:, :2]),
        (0, lambda codes: codes.repeat(1, 2)),
        *((0, lambda codes, wrong=wrong: codes.index_fill(1, torch.tensor([1]), wrong)) for wrong in (-1, 2, 2**40)),
    ],
)
def test_features_that_their_module_does_not_read_are_refused(feature: int, other: Callable) -> None:
    """Compiled loops would read what lies beside them in memory."""
    layer, given = PairEmbedding(FEATURES, 16), features(9)
    given[feature] = other(given[feature])
    with torch.no_grad(), pytest.raises(ValueError, match=r"expected (codes|real values)"):
        layer(given)
    with torch.no_grad(), pytest.raises(RuntimeError, match="must match"):
        layer([x[:5] if i == feature else x for i, x in enumerate(features(9))])


@needs_compiler
def test_where_it_does_not_run() -> None:
    layer, given = PairEmbedding(FEATURES, 16), features(3)
    learned = [x.clone().requires_grad_() if x.is_floating_point() else x for x in given]
    assert fast(layer, learned) is None  # gradients of the values are wanted
    with torch.no_grad():
        assert fast(layer, learned) is not None
        assert fast(PairEmbedding(FEATURES, 6), given) is None  # not whole registers
        with torch.autocast("cpu"):
            assert fast(layer, given) is None
        in_double = [x.double() if x.is_floating_point() else x for x in given]
        assert fast(layer.double(), in_double) is None


# --- Messages over the bonds by codes, compiled, against PyG's GINEConv of the bonds' vectors.


def drawn(channels: int = 32) -> tuple[BondMessagePassing, torch.Tensor, torch.Tensor, LazyBondEmbedding]:
    torch.manual_seed(0)
    batch, sizes = featurised().store.batch(), list(Featuriser().bond_sizes)
    layer, x = BondMessagePassing(channels), torch.randn(batch.num_nodes, channels)
    layer.eps.fill_(0.3)
    return layer, x, batch.edge_index, LazyBondEmbedding(batch.edge_attr, CategoricalEmbedding(sizes, channels))


@needs_compiler
@pytest.mark.parametrize("channels", [16, 128])
def test_messages_are_those_of_the_plain_form(channels: int, monkeypatch) -> None:
    layer, x, bonds, codes = drawn(channels)
    expected = GINEConv.forward(layer, x, bonds, codes.rows)
    with torch.no_grad():
        torch.testing.assert_close(layer(x, bonds, codes), expected, rtol=1e-5, atol=1e-5)
        monkeypatch.setattr(GINEConv, "forward", lambda *_: pytest.fail("the plain form ran"))
        layer(x, bonds, codes)
        torch.testing.assert_close(layer(x, bonds.int(), codes), expected, rtol=1e-5, atol=1e-5)


@needs_compiler
@pytest.mark.parametrize(("channels", "twice"), [(48, False), (128, False), (16, True)])
def test_gradients_of_messages_are_those_of_the_plain_form(channels: int, twice: bool, monkeypatch) -> None:
    layer, x, bonds, codes = drawn(channels)

    def of_messages(x: Tensor) -> list[Tensor]:
        wanted = [x.requires_grad_(), *layer.parameters(), *codes.embedding.parameters()]
        return gradients(layer(x, bonds, codes).square(), wanted, twice)

    with monkeypatch.context() as patched:
        patched.setattr(GINEConv, "forward", lambda *_: pytest.fail("the plain form ran"))
        found = of_messages(x)
    layer.double()
    codes = LazyBondEmbedding(codes.codes, codes.embedding.double())
    for one, other in zip(found, of_messages(x.detach().double()), strict=True):
        assert (one - other).norm() <= 2e-6 * other.norm()


@needs_compiler
def test_what_there_is_not_is_left_to_the_plain_form() -> None:
    layer, x, bonds, codes = drawn()
    with torch.no_grad():
        for wrong in (-1, len(x)):
            for end in (0, 1):
                moved = bonds.clone()
                moved[end, 7] = wrong
                with pytest.raises((IndexError, RuntimeError, ValueError)):
                    layer(x, moved, codes)
        for wrong in (codes.codes.index_fill(0, torch.tensor([5]), 99), codes.codes[1:], codes.codes[:, 1:]):
            with pytest.raises((IndexError, RuntimeError, ValueError)):
                layer(x, bonds, LazyBondEmbedding(wrong, codes.embedding))
