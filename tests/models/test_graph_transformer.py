"""The model keeps the guarantees: renumbering, batch-mates, layouts, edge cases, unseen codes."""

from functools import partial

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch

from gtx.attention import ScaledDotScore, Score
from gtx.encodings import ShortestPathLength
from gtx.graph import CompleteGraph
from gtx.models import LayerSettings, graph_transformer
from gtx.nn import GraphTransformerLayer
from gtx.testing import check_model
from tests.molecules_for_tests import CODE_SIZES, SMILES, in_double, store, whole_batch

from .test_architectures import FEATURISER, close
from .test_architectures import make as make_named

make = partial(make_named, "standard", channels=32)


@pytest.fixture(scope="module")
def batch() -> Batch:
    return whole_batch()


VARIANTS = [
    {"norm_first": False},
    {"local": False, "edge_value": False},
    {"readout": ("attention",)},
    {"num_descriptors": 0},
    {"substructures": FEATURISER.constitution},
    {"encodings": ("bonds", "path", "walk", "degree", "ring")},
]


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_the_guarantees(variant: dict) -> None:
    check_model(make(**variant))


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_pairs_in_portions_are_what_they_are_at_once(variant, batch, monkeypatch) -> None:
    model, batch = make(**variant).double(), in_double(batch)
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

    plain, swapped = make(score=ScaledDotScore()), make(score=Negative())
    swapped.load_state_dict(plain.state_dict())
    assert not torch.allclose(plain(batch), swapped(batch))
    few = graph_transformer(1, **CODE_SIZES, encodings=[ShortestPathLength(3)], channels=16, layers=1, heads=2).eval()
    assert few(batch).shape == (len(SMILES), 1)
    none = graph_transformer(1, **CODE_SIZES, channels=16, layers=1, heads=2)
    assert none(batch).shape == (len(SMILES), 1)


def test_coordinates_enter_when_asked(batch: Batch) -> None:
    model = make(coordinates=True, moments=8)
    check_model(model, positions="partial")
    with pytest.raises(ValueError, match="needs coordinates"):
        model(batch)
    with pytest.raises(ValueError, match="need coordinates, got moments=8 without"):
        make(moments=8)


def test_a_head_that_starts_at_zero_says_zero_and_learns(batch: Batch) -> None:
    model = make(zero_head=True)
    out = model(batch)
    assert out.shape == make()(batch).shape and not out.any() and make()(batch).all()
    (out - 1).square().sum().backward()
    assert model.head[-1].weight.grad.any() and model.head[-1].bias.grad.any()


def test_an_unseen_code_is_other() -> None:
    model = make()
    unseen = whole_batch(["CCO", "CC[Se]"])
    other = unseen.clone()
    other.x[other.x[:, 0] == 34, 0] = 0
    close(model(other), model(unseen), 1e-7)


def test_descriptors_are_scaled_by_the_training_rows_and_unknown_says_nothing(batch: Batch) -> None:
    model = make()
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
