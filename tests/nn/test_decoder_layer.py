"""The layer is torch's decoder layer and its encoder layer with their weights; a step is a row of it."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from gtx.attention import GATv2Score, LinearHeadMerge, Sigmoid
from gtx.graph import BipartiteGraph, CausalEdges, CompleteGraph
from gtx.nn import DecoderLayer, EdgeAttention
from gtx.nn.decoder_layer import KeyValueCache
from tests.attention.family import CASES

D, H, HIDDEN = 12, 3, 20
TOKENS, ATOMS = torch.tensor([0, 5, 6, 13]), torch.tensor([0, 2, 9, 12])


def attention(inputs: int | tuple[int, int] = D) -> EdgeAttention:
    return EdgeAttention(inputs, D // H, H, project=True)


def layer(norm_first: bool = True, cross: bool = True, gelu: bool = False) -> DecoderLayer:
    torch.manual_seed(0)
    activation = nn.GELU() if gelu else None
    made = DecoderLayer(attention(), attention() if cross else None, D, HIDDEN, 0.0, norm_first, activation)
    for p in made.parameters():
        nn.init.normal_(p, std=0.5)
    return made.double()


def copy_attention(ours: EdgeAttention, theirs: nn.MultiheadAttention) -> None:
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([m.weight for m in (ours.lin_query, ours.lin_key, ours.lin_value)]))
        theirs.in_proj_bias.copy_(torch.cat([m.bias for m in (ours.lin_query, ours.lin_key, ours.lin_value)]))
    theirs.out_proj.load_state_dict(ours.lin_out.state_dict())


def copy(ours: DecoderLayer, theirs: nn.Module) -> None:
    copy_attention(ours.attention, theirs.self_attn)
    if ours.cross is not None:
        copy_attention(ours.cross, theirs.multihead_attn)
    theirs.linear1.load_state_dict(ours.mlp[0].state_dict())
    theirs.linear2.load_state_dict(ours.mlp[2].state_dict())
    for i, norm in enumerate(ours.norms):
        getattr(theirs, f"norm{i + 1}").load_state_dict(norm.state_dict())


def test_what_does_not_fit_is_named() -> None:
    for wrong, message in (
        (EdgeAttention(D, 2, H), "expected attention that gives 12 channels, got 6"),
        (EdgeAttention(D, D // H, H, edge_dim=3), r"no edge features or gate, got EdgeAttention\(12, 4, heads=3\)"),
    ):
        with pytest.raises(ValueError, match=message):
            DecoderLayer(attention(), wrong, D)
    made, x = layer(), torch.randn(2, D).double()
    with pytest.raises(ValueError, match="expected a source and edges from it, got None"):
        made(x, causal(torch.tensor([0, 2])))
    with pytest.raises(ValueError, match="expected keys and values of a source, got None"):
        made.step(x, KeyValueCache.empty(made.attention, 2, 3))


def causal(ptr: Tensor) -> CompleteGraph:
    graph = CompleteGraph.from_ptr(ptr)
    return graph.masked(CausalEdges()(None, graph))


@pytest.mark.parametrize("gelu", [False, True])
@pytest.mark.parametrize("norm_first", [False, True])
def test_is_torch_s_transformer_decoder(norm_first: bool, gelu: bool) -> None:
    ours = [layer(norm_first, gelu=gelu) for _ in range(2)]
    name = "gelu" if gelu else "relu"
    one = nn.TransformerDecoderLayer(D, H, HIDDEN, 0.0, name, batch_first=True, norm_first=norm_first)
    theirs = nn.TransformerDecoder(one, 2).double()
    for a, b in zip(ours, theirs.layers, strict=True):
        copy(a, b)
    x, atoms = torch.randn(13, D).double(), torch.randn(12, D).double()
    out, edges = x, BipartiteGraph.between(ATOMS, TOKENS).edge_index
    for part in ours:
        out = part(out, causal(TOKENS), atoms, edges)
    for i in range(3):
        of, read = slice(TOKENS[i], TOKENS[i + 1]), slice(ATOMS[i], ATOMS[i + 1])
        n = len(x[of])
        expected = theirs(x[None, of], atoms[None, read], nn.Transformer.generate_square_subsequent_mask(n).double())
        torch.testing.assert_close(out[of], expected[0], rtol=0, atol=1e-10)


@pytest.mark.parametrize("norm_first", [False, True])
def test_over_all_pairs_without_cross_attention_it_is_torch_s_encoder_layer(norm_first: bool) -> None:
    ours = layer(norm_first, cross=False)
    theirs = nn.TransformerEncoderLayer(D, H, HIDDEN, 0.0, batch_first=True, norm_first=norm_first).double()
    copy(ours, theirs)
    x = torch.randn(7, D).double()
    out = ours(x, CompleteGraph.from_ptr(torch.tensor([0, 7])))
    torch.testing.assert_close(out, theirs(x[None])[0], rtol=0, atol=1e-10)


def same_step_by_step(made: DecoderLayer) -> None:
    """Six tokens of two rows, at once and one after the other."""
    x, atoms = torch.randn(2, 6, D).double(), torch.randn(2, 4, D).double()
    ptr, read = torch.tensor([0, 6, 12]), torch.tensor([0, 4, 8])
    joined = BipartiteGraph.between(read, ptr)
    whole = made(x.flatten(0, 1), causal(ptr), atoms.flatten(0, 1), joined).view(2, 6, D)
    past, source = KeyValueCache.empty(made.attention, 2, 9, like=x), None
    if made.cross is not None:
        of_atoms = made.cross.keys_and_values(atoms.flatten(0, 1))
        source = KeyValueCache(*(part.unflatten(0, (2, 4)).transpose(1, 2) for part in of_atoms))
    for t in range(6):
        if t == 3:  # rows change places
            turned = torch.tensor([1, 0])
            past, x, whole = past.select(turned), x[turned], whole[turned]
            source = None if source is None else source.select(turned)
        torch.testing.assert_close(made.step(x[:, t], past, source), whole[:, t], rtol=0, atol=1e-10)


@pytest.mark.parametrize("norm_first", [False, True])
def test_a_step_is_a_row_of_the_whole(norm_first: bool) -> None:
    same_step_by_step(layer(norm_first))
    same_step_by_step(layer(norm_first, cross=False))


def takes_steps(made: EdgeAttention) -> bool:
    return made.edge_dim is None and made.gate is None and made.width == D


def with_parts(projections: str, **parts: object) -> Callable[[], EdgeAttention]:
    return lambda: EdgeAttention(D, D // H, H, projections=projections, **parts)


@pytest.mark.parametrize(
    "make",
    [
        *(case.make for case in CASES.values() if takes_steps(case.make())),
        with_parts("none", value_activation=nn.LeakyReLU(0.1)),
        with_parts("separate", value_activation=nn.LayerNorm(D)),
        with_parts("key_value", edge_value="state", score=GATv2Score(H, D // H)),
        with_parts("shared", project=True, bias=False, normaliser=Sigmoid()),
        with_parts("key_value", merge=LinearHeadMerge(H, D // H, D)),
    ],
)
def test_a_step_is_a_row_of_the_whole_with_every_attention(make: Callable[[], EdgeAttention]) -> None:
    torch.manual_seed(0)
    same_step_by_step(DecoderLayer(make(), make(), D).double())
