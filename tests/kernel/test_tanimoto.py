"""The kernel is its definition, and the module keeps what it learned."""

from __future__ import annotations

import pickle
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch

import gtx.kernel.tanimoto
from gtx.closed_form import fit_closed_form
from gtx.data import MoleculeStore
from gtx.errors import InputError
from gtx.kernel import Counts
from gtx.kernel.counts import shared, shared_by_indices
from gtx.models import tanimoto
from gtx.tasks import Classification, Multiclass, Regression
from tests.molecules_for_tests import SMILES, renumbered, store, whole_batch
from tests.tables import molecules


@pytest.fixture(scope="module")
def many() -> MoleculeStore:
    table = molecules(120)
    return store(table["smiles"].tolist()).with_targets(table[["gap", "solvation_water"]].to_numpy())


def solved(train: MoleculeStore, task=None, **options):
    task = (task or Regression(("gap", "solvation_water"))).fitted(train)
    model = tanimoto(task.out_channels, **options)
    fit_closed_form(model, task, train)
    return model, task


def dense(model, batch) -> torch.Tensor:
    """Counts `[B, kinds]` of all kinds that occur."""
    counts = model.counts(batch)
    kinds = counts.kind.unique()
    table = torch.zeros(len(counts), len(kinds), dtype=torch.long)
    table[counts.owner, torch.searchsorted(kinds, counts.kind)] = counts.count
    return table


def test_counts_are_all_that_is_within_the_radius() -> None:
    model, batch = tanimoto(1, labels=[[{"radius": 2}, {"radius": 0, "atoms": [0]}]]), whole_batch()
    assert torch.equal(model.counts(batch).sizes, 4 * torch.bincount(batch.batch))
    again = model.counts(renumbered(batch)[0])
    for name in ("ptr", "kind", "count"):
        assert torch.equal(getattr(again, name), getattr(model.counts(batch), name))


def test_the_kernel_is_its_definition_and_positive(many: MoleculeStore) -> None:
    model, _ = solved(many)
    counts = dense(model, many.batch())
    least, most = (f(counts[:, None], counts[None]).sum(-1) for f in (torch.minimum, torch.maximum))
    kernel = model.similarity(many.batch())
    torch.testing.assert_close(kernel, least.double() / most)
    assert torch.equal(kernel, kernel.T) and (kernel.diag() == 1).all()
    assert torch.linalg.eigvalsh(kernel).min() > -1e-9


def test_what_training_did_not_show_makes_a_molecule_larger_and_no_more(many: MoleculeStore) -> None:
    model, _ = solved(many)
    both = torch.cat([dense(model, whole_batch()).sum(1), dense(model, many.batch()).sum(1)])
    counts, turned = model.counts(whole_batch()), model._turned[0]
    common = shared(counts.known(model.kind_label), turned, len(many))
    expected = common / (both[: len(SMILES), None] + both[len(SMILES) :] - common)
    torch.testing.assert_close(model.similarity(whole_batch()), expected)
    torch.testing.assert_close(common, shared_by_indices(counts.known(model.kind_label), turned, len(many)))
    none = Counts(torch.zeros(2, dtype=torch.long), *2 * [torch.zeros(0, dtype=torch.long)])
    assert (shared_by_indices(none, turned, len(many)) == 0).all()


def test_predictions_are_the_sum_over_training_molecules_in_any_order(many: MoleculeStore) -> None:
    model, _ = solved(many)
    batch = whole_batch()
    expected = model.offset.double() + model.similarity(batch) @ model.dual.double()
    torch.testing.assert_close(model(batch).double(), expected, rtol=1e-5, atol=1e-6)
    other, _ = solved(many.subset(torch.randperm(len(many), generator=torch.Generator().manual_seed(1))))
    torch.testing.assert_close(other(batch), model(batch), rtol=1e-3, atol=1e-3)
    alone = torch.cat([model(whole_batch([text])) for text in SMILES])
    torch.testing.assert_close(alone, model(batch))


def test_the_variance_is_small_where_there_is_data(many: MoleculeStore) -> None:
    train = many.subset(np.arange(0, 120, 2))
    model, _ = solved(train)
    known, new = model.variance(train.batch()), model.variance(many.subset(np.arange(1, 120, 2)).batch())
    assert (known >= 0).all() and (known <= model.ridge * model.scale + 1e-9).all()
    assert (known.mean(0) < new.mean(0)).all() and (new <= model.scale + 1e-9).all()
    far = model.variance(whole_batch(["[Na+]"]))
    torch.testing.assert_close(far, model.scale.double()[None])


def test_the_nearest_are_those_that_are_held(many: MoleculeStore) -> None:
    model = tanimoto(0, labels=[[{"radius": 2}]])
    model.hold(many)
    rows, similarity = model.nearest(many.subset([17]).batch(), 3)
    assert similarity[0, 0] == 1 and 17 in rows[0].tolist() and (similarity[0].diff() <= 0).all()


def test_left_out_rows_decide_what_is_counted(many: MoleculeStore) -> None:
    coarse, fine = [{"radius": 0, "atoms": []}], [{"radius": 2, "atoms": [0], "bonds": [0]}]
    for labels in ([coarse, fine], [fine, coarse]):
        assert solved(many, labels=labels)[0].labels == [fine]


def test_of_many_rows_some_stand_for_all(many: MoleculeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    exact, task = solved(many)
    monkeypatch.setattr(gtx.kernel.tanimoto, "EXACT", 100)
    monkeypatch.setattr(gtx.kernel.tanimoto, "INDUCING", 60)
    some, _ = solved(many)
    assert len(some.row) == 60 and len(exact.row) == 120
    y = task.scaled(many)
    assert ((some(many.batch()) - y).square().mean(0) < 0.5).all()
    assert (some.variance(many.batch()) >= 0).all()


@pytest.mark.parametrize("several", [False, True])
def test_classes_have_the_probabilities_of_new_molecules(several: bool, many: MoleculeStore) -> None:
    gap = many.y[:, 0]
    cuts = gap.quantile(torch.tensor([0.3, 0.7] if several else [0.5], dtype=torch.float64))
    y = torch.bucketize(gap, cuts).double()[:, None]
    y[::7] = torch.nan
    labels = (("low", "middle", "high") if several else ("low", "high"),)
    task = replace((Multiclass if several else Classification)(("gap",)), classes=labels)
    train = many.subset(np.arange(0, 120, 2)).with_targets(y[::2])
    model, task = solved(train, task)
    test = many.subset(np.arange(1, 120, 2))
    found = task.evaluate(y[1::2], task.unscaled(model(test.batch()), test))
    assert found["roc_auc"] > 0.8
    loss = float(task.elementwise(model(test.batch()), y[1::2].nan_to_num())[~y[1::2].isnan()].mean())
    assert loss < np.log(3 if several else 2)


def test_blanks_of_one_target_leave_the_others_alone(many: MoleculeStore) -> None:
    y = many.y.clone()
    y[::3, 1] = torch.nan
    model, _ = solved(many.with_targets(y))
    whole, _ = solved(many, labels=model.labels)
    torch.testing.assert_close(model(whole_batch())[:, 0], whole(whole_batch())[:, 0])
    assert (model.dual[::3, 1] == 0).all()


def test_it_is_copied_pickled_and_read_from_its_tensors(many: MoleculeStore) -> None:
    model, _ = solved(many)
    batch = whole_batch()
    found = model(batch)
    again = tanimoto(2, **model.learned)
    again.load_state_dict(model.state_dict())
    for other in (deepcopy(model), pickle.loads(pickle.dumps(model)), again, deepcopy(model).double()):
        assert torch.equal(other(batch).float(), found)


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
def test_counts_that_lead_astray_are_refused(name: str, change, many: MoleculeStore) -> None:
    model, _ = solved(many)
    state = model.state_dict()
    change(state[name])
    with pytest.raises(InputError, match="not in order"):
        tanimoto(2, **model.learned).load_state_dict(state)
