"""Every named model keeps the guarantees: renumbering, batch-mates, layouts, edge cases, gradients."""

import inspect
from functools import partial

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch

import gtx.models
from gtx.attention import ScaledDotScore, Score
from gtx.encodings import ExpNormDistance, FourierDistance, ShortestPathLength
from gtx.graph import CompleteGraph
from gtx.models import ARCHITECTURES, GraphTransformer, LayerSettings, graph_transformer
from gtx.molecules import Featuriser
from gtx.nn import GraphTransformerLayer
from gtx.testing import check_model, example_batch, renumbered
from tests.molecules_for_tests import CODE_SIZES, SMILES, in_double, store, whole_batch

FEATURISER = Featuriser()
NAMES = list(ARCHITECTURES)
IN_SPACE = [name for name, each in ARCHITECTURES.items() if each.coordinates != "none"]
PUBLISHED = (
    "transformer gat gatv2 gaan mat rmat graphormer egt grit gps exphormer torchmd_net tgt transformer_m tokengt"
)
LEVELS = [("atom", "bond"), ("bond", "atom")]
USES = {"needed": [True], "optional": [False, True], "none": [False]}
SMALLER = {"tgt": {"pair_channels": 4, "triplet_heads": 1}}  # its time grows with the cube of the atoms


def make(name: str, seed: int = 0, **arguments: object) -> GraphTransformer:
    torch.manual_seed(seed)
    usual = {"channels": 16, "layers": 2, "heads": 4, "num_descriptors": FEATURISER.num_descriptors}
    usual |= {"coordinates": ARCHITECTURES[name].coordinates == "needed"} | SMALLER.get(name, {})
    arguments = usual | arguments
    model = ARCHITECTURES[name].make(2, **CODE_SIZES, **arguments)
    for module in model.modules():  # what starts at a neutral value must take part in what is tested
        if isinstance(module, gtx.nn.LearnedDegreeScaling):
            torch.nn.init.normal_(module.weight)
    model.observe(store())
    return model.eval()


@pytest.fixture(scope="module")
def batch() -> Batch:
    return example_batch(positions="partial")


def close(one: Tensor, other: Tensor, tolerance: float) -> None:
    torch.testing.assert_close(one, other, atol=tolerance * float(other.detach().abs().max()), rtol=0)


def test_each_has_the_name_promised_and_says_what_it_is_and_where_it_comes_from() -> None:
    assert ["standard", *PUBLISHED.split()] == NAMES
    for name, entry in ARCHITECTURES.items():
        assert getattr(gtx.models, name) is entry.make
        assert 10 < len(entry.about) < 150 and "\\" not in entry.about, name
        assert entry.source == "gtx" if name == "standard" else entry.source.endswith(")"), name
        documented = inspect.getdoc(entry.make)
        assert "Args:" in documented and (name == "standard" or "arXiv:" in documented)
    assert ARCHITECTURES["gps"].source == "Rampášek et al. 2022 (arXiv:2205.12454)"


@pytest.mark.parametrize(
    ("name", "coordinates"), [(name, use) for name in NAMES for use in USES[ARCHITECTURES[name].coordinates]]
)
def test_the_guarantees(name: str, coordinates: bool) -> None:
    check_model(make(name, coordinates=coordinates), positions="partial")


@pytest.mark.parametrize(
    ("name", "levels"),
    [
        *((name, {"molecule": 2, "atom": 3, "bond": 1}) for name in ("standard", "graphormer", "tokengt")),
        *((name, {first: 2, other: 3}) for name in ("gat", "torchmd_net") for first, other in LEVELS),
    ],
)
def test_molecules_atoms_and_bonds_of_one_model(name: str, levels: dict[str, int], batch: Batch) -> None:
    """Renumbered as they are alone, and the same in both directions of a bond; batch-mates do not matter; every
    parameter has a gradient.
    """
    first, *others = levels
    model = make(name, per=first, also={level: levels[level] for level in others})
    other, order = renumbered(batch)
    outputs = dict(zip(levels, model(batch), strict=True))
    rows = {"molecule": torch.arange(batch.num_graphs), "atom": order, "bond": torch.arange(batch.num_edges)}
    for (level, out), found in zip(outputs.items(), model(other), strict=True):
        assert out.shape == (len(rows[level]), levels[level])
        close(found, out[rows[level]], 1e-5)
    close(outputs["bond"][0::2], outputs["bond"][1::2], 1e-5)
    one = store().batch(torch.tensor([0]))
    one.pos = batch.pos[batch.batch == 0]
    for found, every in zip(model(one), outputs.values(), strict=True):
        close(found, every[: len(found)], 1e-5)
    sum(out.square().sum() for out in outputs.values()).backward()
    assert [key for key, p in model.named_parameters() if p.grad is None] == []


@pytest.mark.parametrize("name", NAMES)
def test_it_tells_its_attention(name: str, batch: Batch) -> None:
    model = make(name)
    seen = model.attention(batch)
    out = model.head(seen.embedding)
    close(out, model(batch), 1e-5)
    assert len(seen.weights) == 2
    assert all(w.shape == (seen.edge_index.shape[1], 4) for w in seen.weights)
    gradients = torch.autograd.grad(out.sum(), seen.weights)
    assert all(g.isfinite().all() and g.ne(0).any() for g in gradients)
    assert seen.place.shape == (batch.num_nodes,)


@pytest.mark.parametrize("per", ["atom", "bond"])
def test_every_atom_of_a_model_of_atoms_or_bonds_is_read(per: str, batch: Batch) -> None:
    assert make("standard", per=per).attention(batch).readers.tolist() == list(range(batch.num_nodes))


@pytest.mark.parametrize("name", NAMES)
def test_an_atom_without_edges_is_not_seen(name: str, batch: Batch) -> None:
    """Masking an atom's pairs makes its own features matter no more to other atoms."""
    model = make(name)
    graph = model.graph(batch)
    lost = int(batch.ptr[3])
    graph = graph.masked(~(graph.pair_index == lost).any(0))
    other = batch.clone()
    other.x[lost, 0] = (batch.x[lost, 0] + 1) % 50
    other.edge_index = other.edge_index[:, ~(other.edge_index == lost).any(0)]
    other.edge_attr = other.edge_attr[: other.edge_index.shape[1]]
    here = other.clone()
    here.x = batch.x
    rest = torch.arange(batch.num_nodes) != lost
    close(model.nodes(other, graph)[rest], model.nodes(here, graph)[rest], 1e-6)


READING_SPACE = {name: partial(make, name, coordinates=True) for name in IN_SPACE}
READING_SPACE["moments"] = partial(make, "standard", coordinates=True, moments=8)
READING_SPACE["other distances"] = lambda: graph_transformer(
    2, **CODE_SIZES, encodings=[FourierDistance(4), ExpNormDistance(6, learned=True)], channels=16, layers=2, heads=4
).eval()


@pytest.mark.parametrize("name", READING_SPACE)
def test_forces_and_what_trains_on_them_are_right(name: str, batch: Batch) -> None:
    """The first derivative by positions, and that of a loss on it, against central differences in one direction."""
    model = READING_SPACE[name]().double()
    here = in_double(batch)
    known = here.pos.isfinite()
    along = torch.randn(here.pos.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(2)) * known

    def energy_and_loss(step: float) -> tuple[Tensor, Tensor, Tensor]:
        here.pos = (batch.pos.double() + step * along).requires_grad_()
        energy = model(here).sum()
        (slope,) = torch.autograd.grad(energy, here.pos, create_graph=True)
        return energy, slope, slope.square().sum()

    h = 1e-5
    (before, _, loss_before), (after, _, loss_after) = energy_and_loss(-h), energy_and_loss(h)
    _, slope, loss = energy_and_loss(0.0)
    assert slope[known].ne(0).any()  # coordinates are read
    torch.testing.assert_close((slope * along).sum(), (after - before) / (2 * h), rtol=1e-5, atol=1e-7)
    curvature, *weights = torch.autograd.grad(loss, [here.pos, *model.parameters()], allow_unused=True)
    torch.testing.assert_close((curvature * along).sum(), (loss_after - loss_before) / (2 * h), rtol=1e-4, atol=1e-7)
    assert all(weight is None or weight.isfinite().all() for weight in weights)


def test_in_space_alone_the_bonds_of_transformer_m_do_not_count(batch: Batch) -> None:
    other = batch.clone()
    keep = batch.pos[batch.edge_index[0]].isnan().any(1) | (torch.arange(batch.num_edges) % 2 == 0)
    other.edge_index, other.edge_attr = batch.edge_index[:, keep], batch.edge_attr[keep]
    for modes, same in (((0, 1, 0), True), ((0, 0, 1), False)):
        model = make("transformer_m", coordinates=True, modes=modes, dropout=0.0).train()
        assert torch.allclose(model(other), model(batch), atol=1e-6) == same


def test_coordinates_are_asked_for_and_refused() -> None:
    with pytest.raises(ValueError, match="model mat needs coordinates"):
        gtx.models.mat(1, **CODE_SIZES, coordinates=False)
    with pytest.raises(ValueError, match="model egt uses no coordinates; `gtx models` lists those that do"):
        gtx.models.egt(1, **CODE_SIZES, coordinates=True)
    assert set(IN_SPACE) == {"standard", "mat", "rmat", "torchmd_net", "tgt", "transformer_m"}
    with pytest.raises(ValueError, match=r"expected pos \[N, 3\] in Å, got None"):
        make("rmat")(whole_batch())


def test_virtual_nodes_by_name(batch: Batch) -> None:
    assert make("standard", virtual_nodes=2, readout=())(batch).shape == (len(store()), 2)
    with pytest.raises(ValueError, match="a readout or virtual nodes"):
        make("standard", readout=())


# --- The standard model: its variants, other parts and arguments, and codes that training never saw.


standard = partial(make, "standard", channels=32)
VARIANTS = [
    {"norm_first": False},
    {"local": False, "edge_value": False},
    {"readout": ("attention",)},
    {"num_descriptors": 0},
    {"substructures": FEATURISER.constitution},
    {"encodings": ("bonds", "path", "walk", "degree", "ring")},
]


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_the_guarantees_of_its_variants(variant: dict) -> None:
    check_model(standard(**variant))


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_pairs_in_portions_are_what_they_are_at_once(variant, batch, monkeypatch) -> None:
    model, batch = standard(**variant).double(), in_double(batch)
    expected, rows = model(batch), []
    monkeypatch.setattr("gtx.nn.embedding.PORTION", 100)
    model.embedding.pairs.parts[0].register_forward_hook(lambda _, features, pairs: rows.append(len(pairs)))
    with torch.no_grad():
        close(model(batch), expected, 1e-12)
    assert max(rows) <= 100 and sum(rows) == CompleteGraph.from_batch(batch.batch).num_pairs


def test_swapping_a_score_or_an_encoding_is_passing_another_module(batch: Batch) -> None:
    class Negative(Score):
        def forward(self, query: Tensor, key: Tensor, edge: Tensor | None = None) -> Tensor:
            return -(query - key).square().sum(-1)

    plain, swapped = standard(score=ScaledDotScore()), standard(score=Negative())
    swapped.load_state_dict(plain.state_dict())
    assert not torch.allclose(plain(batch), swapped(batch))
    few = graph_transformer(1, **CODE_SIZES, encodings=[ShortestPathLength(3)], channels=16, layers=1, heads=2).eval()
    assert few(batch).shape == (len(SMILES), 1)
    none = graph_transformer(1, **CODE_SIZES, channels=16, layers=1, heads=2)
    assert none(batch).shape == (len(SMILES), 1)


def test_coordinates_enter_when_asked() -> None:
    model = standard(coordinates=True, moments=8)
    check_model(model, positions="partial")
    with pytest.raises(ValueError, match="needs coordinates"):
        model(whole_batch())
    with pytest.raises(ValueError, match="need coordinates, got moments=8 without"):
        standard(moments=8)


def test_a_head_that_starts_at_zero_says_zero_and_learns(batch: Batch) -> None:
    model = standard(zero_head=True)
    out = model(batch)
    assert out.shape == standard()(batch).shape and not out.any() and standard()(batch).all()
    (out - 1).square().sum().backward()
    assert model.head[-1].weight.grad.any() and model.head[-1].bias.grad.any()


def test_an_unseen_code_is_other() -> None:
    model = standard()
    unseen = whole_batch(["CCO", "CC[Se]"])
    other = unseen.clone()
    other.x[other.x[:, 0] == 34, 0] = 0
    close(model(other), model(unseen), 1e-7)


def test_descriptors_are_scaled_by_the_training_rows_and_unknown_says_nothing(batch: Batch) -> None:
    model = standard()
    scaled = model.readout.descriptors(store().descriptors)
    assert scaled.abs().max() <= 5.0 and scaled.isfinite().all()
    unknown, average = batch.clone(), batch.clone()
    unknown.u = batch.u.clone()
    unknown.u[0, 3] = torch.nan
    average.u = batch.u.clone()
    average.u[0, 3] = model.readout.descriptors.mean[3]
    close(model(unknown), model(average), 1e-6)


def test_a_layer_of_ones_own_is_told_the_sizes_and_what_it_would_ignore_is_refused() -> None:
    made = []

    def layer(of: LayerSettings) -> GraphTransformerLayer:
        made.append(of)
        return GraphTransformerLayer(of.attention(), None, of.channels)

    own = {"channels": 32, "heads": 4, "local": False, "layer": layer}
    model = graph_transformer(1, **CODE_SIZES, **own, dropout=0.3, layers=3, attention_dropout=0.1)
    assert len(model.layers) == 3 and model(whole_batch()).shape == (len(SMILES), 1)
    assert [(of.index, of.last) for of in made] == [(0, False), (1, False), (2, True)]
    assert made[0] == LayerSettings(0, False, 32, 4, None, 0.3, 0.1) and model.layers[0].attention.dropout == 0.1
    ignored = {"score": ScaledDotScore(), "edge_value": False}
    for name, value in ignored.items():
        with pytest.raises(ValueError, match=f"^layer makes the layers and decides {name} itself: leave them out$"):
            graph_transformer(1, **CODE_SIZES, **own, **{name: value})
    with pytest.raises(ValueError, match="decides score, edge_value itself"):
        graph_transformer(1, **CODE_SIZES, **own, **ignored)


@pytest.mark.parametrize(
    "wrong",
    [
        *({"out_channels": 0}, {"channels": 0}, {"layers": 0}, {"pair_channels": 0}, {"heads": 0}, {"heads": 5}),
        *({"edges": 3}, {"per": "ring"}, {"also": {"molecule": 1}}, {"pair_channels": None, "virtual_nodes": 1}),
    ],
)
def test_sizes_that_make_no_model_are_refused(wrong: dict) -> None:
    with pytest.raises(ValueError, match=f"expected {next(iter(wrong))}"):
        graph_transformer(**{"out_channels": 1, **CODE_SIZES, **wrong})
