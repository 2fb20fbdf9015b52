"""Every model without coordinates on reactions: invariance and layouts; the kernel of changes."""

import pytest
import torch
from rdkit import Chem

import gtx
from gtx.data import MoleculeStore, featurise
from gtx.data.similarity import nearest_similarity
from gtx.encodings import BothSides, ShortestPathLength
from gtx.encodings.sides import UNCHANGED, label_environments, split_sides
from gtx.graph import CompleteGraph
from gtx.models import ARCHITECTURES, GraphTransformer, build_model
from gtx.models.standard import kernel_ridge
from gtx.molecules import Featuriser
from gtx.molecules.reactions import read_sides
from gtx.prediction.foundation_embedding import embed_reactions
from tests.molecules.test_reactions import ESTER, REACTIONS, rewritten

MODELS = [name for name, each in ARCHITECTURES.items() if each.coordinates != "needed"]


def store_of(texts: list[str], mode: str = "reactants-products") -> MoleculeStore:
    return featurise(Featuriser(reaction=mode, descriptors=False), texts, workers=0).store


def sizes(mode: str = "reactants-products") -> dict[str, object]:
    featuriser = Featuriser(reaction=mode)
    return featuriser.input_sizes


@pytest.mark.parametrize("name", MODELS)
def test_prediction_does_not_depend_on_writing_or_layout(name: str) -> None:
    mode = "reactants-difference-balanced"
    model = build_model(
        {"name": name, "arguments": {"out_channels": 1, "channels": 16, "heads": 4, "layers": 2, **sizes(mode)}}
    ).eval()
    assert isinstance(model, GraphTransformer)
    store, other = (store_of(texts, mode) for texts in (REACTIONS, [rewritten(text, 3) for text in REACTIONS]))
    with torch.no_grad():
        expected = model(store.batch())
        assert expected.std() > 0
        torch.testing.assert_close(model(other.batch()), expected, atol=2e-5, rtol=0)
        model.edge_list = True
        torch.testing.assert_close(model(store.batch()), expected, atol=2e-5, rtol=0)


@pytest.mark.parametrize("mode", ["reactants-products", "reactants-difference", "products-difference"])
def test_sides_of_a_batch_are_the_molecules_of_each(mode: str) -> None:
    batch, codes = store_of([ESTER], mode).batch(), sizes(mode)
    sides = split_sides(batch, codes["atom_sizes"], codes["bond_sizes"])  # type: ignore[arg-type]
    both = store_of([ESTER]).batch()
    before, after = sides if mode.startswith("reactants") else sides[::-1]
    for side, half in ((before, both.x[:, :10]), (after, both.x[:, 10:])):
        assert torch.equal(side.x, half)
        assert side.edge_index.shape[1] == 2 * 5
    encoding = BothSides(ShortestPathLength(), codes["atom_sizes"], codes["bond_sizes"])  # type: ignore[arg-type]
    graph = CompleteGraph.from_batch(batch.batch)
    _, pair = encoding(batch, graph)
    assert pair is not None
    first, second = pair[graph.pair_of(torch.tensor([[1], [3]]))].flatten().tolist()
    near, apart = (first, second) if mode.startswith("reactants") else (second, first)
    assert near == 1
    assert apart == 22  # water is not connected


def test_kernel_counts_what_a_reaction_destroys_and_forms() -> None:
    kernel = kernel_ridge(1, **sizes())  # type: ignore[arg-type]
    batch = store_of([ESTER]).batch()
    *_, destroyed, formed = label_environments(batch, kernel.labels)
    assert (destroyed[0] == UNCHANGED).all()  # no element changes
    assert (destroyed[1] != UNCHANGED).tolist() == [False, False, False, True, False, False, True]
    assert not set(destroyed[1].tolist()) & set(formed[1].tolist()) - {UNCHANGED}
    kernel.set_references(store_of(REACTIONS))
    similarity = kernel.similarity(store_of([rewritten(text, 5) for text in REACTIONS]).batch())
    assert torch.equal(similarity.diagonal(), torch.ones(4, dtype=torch.float64))
    assert similarity[0, 1:].max() < 1


@pytest.mark.parametrize("mode", ["reactants-difference", "products-difference"])
def test_embedding_is_that_of_the_molecules_of_both_sides(mode: str) -> None:
    network, codes = gtx.load("foundation").members[0].eval(), sizes(mode)
    assert isinstance(network, GraphTransformer)
    expected = []
    for reaction in REACTIONS:
        sides = []
        for mol in read_sides(reaction):
            molecules = featurise(Featuriser(descriptors=False), Chem.MolToSmiles(mol).split("."), workers=0).store
            sides.append(network.embed(molecules.batch()).sum(0))
        first, second = sides if mode.startswith("reactants") else sides[::-1]
        expected.append(torch.cat([first, second - first]))
    both = codes["atom_sizes"], codes["bond_sizes"]
    found = embed_reactions(network.embed, store_of(REACTIONS, mode).batch(), both)  # type: ignore[arg-type]
    torch.testing.assert_close(found, torch.stack(expected), atol=2e-5, rtol=0)


def test_similarity_to_training_reactions_reads_both_sides() -> None:
    other = "[Br-:1].[CH3:2][CH:3]([Cl:4])[CH2:5][CH3:6]>>"
    twice = [
        other + "[BrH:1].[CH3:2][CH:3]=[CH:5][CH3:6].[Cl-:4]",
        other + "[BrH:1].[CH3:2][C:3][CH2:5][CH3:6].[Cl-:4]",
    ]
    first, second = (store_of([text], "reactants-difference") for text in twice)
    assert nearest_similarity(first, first)[0] == 1
    assert nearest_similarity(first, second)[0] < 1
