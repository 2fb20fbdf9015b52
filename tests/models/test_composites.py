"""Several molecules a row, several conformers a molecule: one prediction."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch

from gtx.base.errors import InputError
from gtx.data import MoleculeStore, featurise
from gtx.data.batches import make_constant_shape_batch, precompute_encodings
from gtx.graph.constant_shape import BatchShape
from gtx.models import ARCHITECTURES, MultiComponentModel, MultiConformerModel, build_model
from gtx.molecules import Featuriser, make_conformer
from tests.models.test_architectures import make
from tests.molecules_for_tests import CODE_SIZES, store

NAMES = ("solute", "solvent")
ROWS = [("CCO", "O"), ("c1ccccc1", "CS(C)=O"), ("CC(", "C(C"), ("[Na+].[Cl-]", "C[C@H](O)F")]
ALONE, PAIRS = Featuriser(), Featuriser(components=NAMES)


@pytest.fixture(scope="module")
def rows() -> MoleculeStore:
    return featurise(PAIRS, ROWS).store.with_features(torch.tensor([[280.0], [290.0], [300.0]]))


@pytest.fixture(scope="module")
def singles() -> MoleculeStore:
    """The molecules of the rows that can be read, each a row, with what is known of their row."""
    texts = [text for row in ROWS if "CC(" not in row for text in row]
    known = torch.tensor([[280.0], [280], [290], [290], [300], [300]])
    return featurise(ALONE, texts).store.with_features(known)


def model(separate: bool, seed: int = 0) -> MultiComponentModel:
    torch.manual_seed(seed)
    small = {"channels": 8, "layers": 1, "heads": 2, "pair_channels": 4, "substructures": {"least": 1}}
    arguments = {"out_channels": 2, "num_descriptors": ALONE.num_descriptors + 1, **CODE_SIZES, **small}
    components = {"count": 2, "separate": separate, "further": 1}
    return build_model({"name": "standard", "arguments": arguments, "components": components}).eval()


def test_a_row_without_one_of_its_molecules_is_an_error_that_names_it() -> None:
    done = featurise(PAIRS, ROWS)
    assert done.smiles == ["CCO.O", "c1ccccc1.CS(C)=O", None, "[Cl-].[Na+].C[C@H](O)F"]
    solute, solvent = done.errors[2].split("; solvent ")
    assert solute.startswith('solute "CC(": cannot be read') and solvent.startswith('"C(C": cannot be read')
    assert done.good.tolist() == [0, 1, 3]
    for names, wrong in ((("a",), "expected 2 to 10 columns, got 1"), (("a", "a"), "'a' is named twice")):
        with pytest.raises(InputError, match=wrong):
            Featuriser(components=names)
    assert Featuriser.from_dict(PAIRS.to_dict()) == PAIRS and PAIRS.hash != ALONE.hash


def test_a_cache_of_rows_holds_their_molecules(tmp_path, rows: MoleculeStore) -> None:
    first, again = (featurise(PAIRS, ROWS, cache=tmp_path) for _ in range(2))
    assert len(list(tmp_path.iterdir())) == 1 and again.errors == first.errors
    assert torch.equal(again.store.component_sizes, rows.component_sizes) and torch.equal(
        again.store.as_molecules().atoms, first.store.atoms
    )


@pytest.mark.parametrize("separate", [False, True])
def test_embeddings_of_the_molecules_go_to_the_head_side_by_side(separate, rows, singles) -> None:
    made = model(separate)
    made.observe(rows)
    encoders = [made.encoders[k if separate else 0] for k in range(2)]
    expected = [f.embed(singles.subset([k, k + 2, k + 4]).batch()) for k, f in enumerate(encoders)]
    assert torch.allclose(made.embed(rows.batch()), torch.cat(expected, -1), atol=1e-6)
    out = made(rows.batch())
    assert torch.allclose(out, made.head(torch.cat(expected, -1)), atol=1e-6) and out.shape == (3, 2)
    assert torch.allclose(out[1:2], made(rows.batch([1])), atol=1e-5)
    assert made(rows.batch(torch.zeros(0, dtype=torch.long))).shape == (0, 2)
    out.sum().backward()
    assert all(p.grad is not None for p in made.parameters())


def test_every_architecture_can_be_the_encoder() -> None:
    arguments = {"out_channels": 1, **CODE_SIZES, "channels": 16, "layers": 1, "heads": 2}
    in_space = Featuriser(descriptors=False, conformers=True, components=NAMES)
    plain, space = (featurise(f, ROWS[:2]).store.batch() for f in (PAIRS, in_space))
    for name, entry in ARCHITECTURES.items():
        needed = entry.coordinates == "needed"
        spec = {"name": name, "arguments": arguments | {"coordinates": needed}, "components": {"count": 2}}
        assert build_model(spec).eval()(space if needed else plain).isfinite().all(), name


def test_an_encoder_of_its_own_knows_what_its_molecules_had(rows: MoleculeStore) -> None:
    shared, separate = model(False), model(True)
    for made in (shared, separate):
        made.observe(rows)
    encoders = [*shared.encoders, *separate.encoders]
    sulphur = [bool(encoder.embedding.vocabularies.atoms.seen[16]) for encoder in encoders]
    assert sulphur == [True, False, True]  # a solvent had some, no solute
    of_solutes = rows.as_molecules(1).subset(torch.arange(0, 6, 2))
    scale = separate.encoders[0].readout.descriptors.mean
    assert torch.allclose(scale, of_solutes.descriptors.nanmean(0), rtol=1e-3, atol=1e-3)


def test_what_does_not_fit_is_said(rows: MoleculeStore) -> None:
    with pytest.raises(InputError, match=r"batch.component_sizes: expected .* 2 components, .*; got none"):
        model(False)(featurise(ALONE, ["CCO"]).store.batch())
    with pytest.raises(InputError, match="Linear has no embedding of a molecule"):
        MultiComponentModel(partial(torch.nn.Linear, 2, 2), 2)
    with pytest.raises(ValueError, match="got a store of single molecules"):
        featurise(ALONE, ["CCO"]).store.as_molecules()


# --- Several conformers are one molecule, whatever their order, and unknown ones do not count.


SMILES = ["CCCO", "CC(=O)NC", "C"]
POOLS = pytest.mark.parametrize("pool", ["mean", "attention"])


@pytest.fixture(scope="module")
def molecules() -> MoleculeStore:
    """Three conformers of each; of the second molecule the last is unknown."""
    read = [Featuriser().read(smiles) for smiles in SMILES]
    positions = np.concatenate(
        [np.concatenate([make_conformer(mol, number).positions for number in range(3)], 1) for mol in read]
    )
    made = replace(store(SMILES), positions=torch.from_numpy(positions))
    made.positions[made.atom_ptr[1] : made.atom_ptr[2], 6:] = torch.nan
    return made


@pytest.fixture(scope="module")
def batch(molecules: MoleculeStore) -> Batch:
    return molecules.batch(torch.arange(3))


def pooled(pool: str, name: str = "torchmd_net") -> MultiConformerModel:
    return MultiConformerModel(make(name, coordinates=True), pool).eval()


def of(batch: Batch, *numbers: int) -> Batch:
    """Some of the conformers, in the order given."""
    other = batch.clone()
    other.pos = torch.cat([batch.pos.split(3, 1)[number] for number in numbers], 1)
    return other


@POOLS
@pytest.mark.parametrize("name", ["torchmd_net", "standard"])
def test_it_is_its_equation(pool: str, name: str, batch: Batch) -> None:
    """head(Σ_k a_k z_k) over the known conformers of a molecule alone, or over its unknown one if there is no other."""
    net, expected = pooled(pool, name), []
    for molecule, known in enumerate((3, 2, 3)):
        alone = Batch.from_data_list([batch.get_example(molecule)])
        each = torch.cat([net.model.embed(of(alone, number)) for number in range(known)])
        score = torch.zeros(known) if net.weigh is None else net.weigh(each)[:, 0]
        expected.append(net.model.head(score.softmax(0) @ each))
    torch.testing.assert_close(net(batch), torch.stack(expected))
    assert (net(of(batch, 0))[0] - expected[0]).abs().max() > 1e-5
    nothing = of(batch, 0, 1)
    nothing.pos = torch.full_like(nothing.pos, torch.nan)
    torch.testing.assert_close(net(nothing), net.model(of(nothing, 0)))


@POOLS
def test_gradients_reach_every_weight(pool: str, batch: Batch) -> None:
    net = pooled(pool).train()
    net(batch).square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in net.parameters())
    if pool == "attention":
        assert net.weigh.weight.grad.abs().sum() > 0


def test_it_learns_from_training_molecules_and_reads_batches_of_constant_shape_as_its_model(molecules, batch) -> None:
    net = MultiConformerModel(ARCHITECTURES["standard"].make(1, **CODE_SIZES, coordinates=True, num_descriptors=105))
    net.eval().observe(molecules)
    assert net.model.readout.descriptors.mean.any() and net.constant_shapes
    index, shape = torch.tensor([1, 0, 2, -1]), BatchShape(20, 120, 40, ((4, 6),))
    kept = precompute_encodings(molecules, net.compute_encodings, list(net.fixed), torch.device("cpu"), 1 << 30)
    out = net(make_constant_shape_batch(molecules, index, shape, kept))
    torch.testing.assert_close(out[:3], net(batch)[index[:3]])


def test_what_is_wrong_is_named(batch: Batch) -> None:
    with pytest.raises(ValueError, match='expected the pool "mean" or "attention", got \'sum\''):
        pooled("sum")
    for levels, got in (({"per": "atom"}, "atom"), ({"also": {"bond": 1}}, "molecule and bond")):
        with pytest.raises(ValueError, match=f"expected a model per molecule, got per {got}"):
            MultiConformerModel(make("standard", coordinates=True, **levels))
    other = batch.clone()
    other.pos = batch.pos[:, :4]
    with pytest.raises(ValueError, match=r"expected pos \[N, 3 K\] of K conformers, got \[10, 4\]"):
        pooled("mean")(other)
