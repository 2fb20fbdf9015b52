"""The kernels of counts and of descriptors are their definitions, and counts that lead astray are refused."""

import numpy as np
import pytest
import torch
from sklearn.gaussian_process.kernels import Matern

from gtx.base.errors import InputError
from gtx.data import MoleculeStore
from gtx.kernel import DescriptorKernel, TanimotoKernel
from gtx.kernel.kernels import intersections
from tests.molecules_for_tests import SMILES, renumbered, store, whole_batch
from tests.tables import molecules

RADIUS_3 = [{"radius": 3, "atoms": [0], "bonds": [0]}, {"radius": 1}]


@pytest.fixture(scope="module")
def many() -> MoleculeStore:
    return store(molecules(120)["smiles"].tolist())


@pytest.fixture
def model(many: MoleculeStore) -> TanimotoKernel:
    made = TanimotoKernel(RADIUS_3)
    made.set_references(many)
    return made


def dense(model, batch) -> torch.Tensor:
    """Counts `[B, kinds]` of all kinds that occur."""
    return torch.from_numpy(model.counts(batch).table.toarray())


def test_counts_are_all_that_is_within_the_radius() -> None:
    model, batch = TanimotoKernel([{"radius": 2}, {"radius": 0, "atoms": [0]}]), whole_batch()
    assert torch.equal(dense(model, batch).sum(1), 4 * torch.bincount(batch.batch))
    again = renumbered(batch)[0]
    assert (model.counts(again).kinds == model.counts(batch).kinds).all()
    assert torch.equal(dense(model, again), dense(model, batch))


def test_the_kernel_is_its_definition_and_positive(model: TanimotoKernel, many: MoleculeStore) -> None:
    counts = dense(model, many.batch())
    least, most = (f(counts[:, None], counts[None]).sum(-1) for f in (torch.minimum, torch.maximum))
    kernel = model.similarity(many.batch())
    torch.testing.assert_close(kernel, least.double() / most)
    assert torch.equal(kernel, kernel.T) and (kernel.diag() == 1).all()
    assert torch.linalg.eigvalsh(kernel).min() > -1e-9


def test_what_is_not_held_makes_a_molecule_larger_and_no_more(model: TanimotoKernel, many: MoleculeStore) -> None:
    both = torch.cat([dense(model, whole_batch()).sum(1), dense(model, many.batch()).sum(1)])
    counts, inverted = model.counts(whole_batch()), model._inverted_index[0]
    common = torch.from_numpy(intersections(counts.restrict(model.kind_label.numpy()), inverted))
    expected = common / (both[: len(SMILES), None] + both[len(SMILES) :] - common)
    torch.testing.assert_close(model.similarity(whole_batch()), expected)


def test_the_nearest_are_those_that_are_held(model: TanimotoKernel, many: MoleculeStore) -> None:
    rows, similarity = model.nearest(many.subset([17]).batch(), 3)
    assert similarity[0, 0] == 1 and 17 in rows[0].tolist() and (similarity[0].diff() <= 0).all()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("kind", lambda t: t.fill_(10**6)),
        ("kind", lambda t: t.sub_(1)),
        ("ptr", lambda t: t[1].fill_(10**9)),
        ("ptr", lambda t: t.add_(1)),
        ("count", lambda t: t[0].fill_(0)),
        ("kind_label", lambda t: t.copy_(t.flip(0))),
    ],
)
def test_counts_that_lead_astray_are_refused(name: str, change, model: TanimotoKernel) -> None:
    state = {key: value.clone() for key, value in model.state_dict().items()}
    change(state[name])
    with pytest.raises(InputError, match="not in order"):
        TanimotoKernel(RADIUS_3, len(model.row), len(model.kind_label), len(model.kind)).load_state_dict(state)


# --- The kernel of descriptors is its definition.


def test_it_is_the_matern_kernel_of_clipped_scores_of_what_varies() -> None:
    draws = torch.randn(60, 7, generator=torch.Generator().manual_seed(0))
    draws[:, 3] = 2.0  # never varies, and is no descriptor then
    draws[0, 0], draws[1, 1] = 1e6, torch.nan
    model = DescriptorKernel(7)
    model.scaler.observe(draws)
    model.set_references(draws[:40])
    model.length.fill_(0.8)
    z = model.z_scores(draws).numpy()
    assert z[0, 0] == 5 and z[1, 1] == 0 and (z[:, 3] == 0).all()
    assert (model.z_scores(draws) - model.scaler(draws)).abs().max() <= 2**-13
    expected = Matern(0.8 * np.sqrt(6), nu=1.5)(z, z[:40])
    np.testing.assert_allclose(model(draws).numpy(), expected, atol=1e-6)
    np.testing.assert_allclose(model.gram(0.8).numpy(), expected[:40], atol=1e-6)
    assert torch.linalg.eigvalsh(model.gram(0.8)).min() > -1e-9
