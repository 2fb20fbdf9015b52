"""Scaled targets are z-scores of the training rows, and come back unchanged."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from gtx.tasks import TargetScaler
from gtx.tasks.regression import count_elements
from tests.molecules_for_tests import SMILES, store
from tests.tables import molecules


@pytest.mark.parametrize("scale", [1e-3, 1e4])
def test_z_scores_there_and_back(scale: float) -> None:
    y = scale * (torch.randn(50, 2).double() + 7)
    y[::4, 0] = torch.nan
    scaler = TargetScaler.fit(y)
    z = scaler.scale(y)
    assert torch.equal(z.isnan(), y.isnan())
    torch.testing.assert_close(z.double().nanmean(0), torch.zeros(2).double(), atol=1e-6, rtol=0)
    torch.testing.assert_close(z.double().square().nanmean(0), torch.ones(2).double(), atol=1e-5, rtol=0)
    torch.testing.assert_close(scaler.unscale(z), y, equal_nan=True, rtol=1e-6, atol=0)


def test_a_small_spread_about_a_large_mean_is_kept() -> None:
    y = 1e8 + 3 * torch.randn(50, 1).double()
    scaler = TargetScaler.fit(y)
    assert scaler.sd.item() == pytest.approx(y.std(correction=0).item())
    torch.testing.assert_close(scaler.unscale(scaler.scale(y)), y, rtol=0, atol=1e-5)


def test_a_target_that_never_varies_is_predicted_as_it_is() -> None:
    scaler = TargetScaler.fit(torch.tensor([[0.1], [0.1], [torch.nan]]))
    assert scaler.sd.tolist() == [0.0]
    assert scaler.unscale(torch.ones(1, 1)).item() == pytest.approx(0.1)
    assert scaler.scale(torch.tensor([[0.1], [7.0], [torch.nan]])).flatten().tolist()[:2] == [0.0, 0.0]
    assert scaler.scale(torch.tensor([[torch.nan]])).isnan().all()


def test_a_sum_over_elements_leaves_nothing_to_the_network() -> None:
    counts = count_elements(store(molecules(80)["smiles"].tolist()))
    weight = counts[:, [6]] * 12.011 + counts[:, [1]] * 1.008 + counts[:, [8]] * 15.999
    scaler = TargetScaler.fit(weight, counts, least=0.95)
    assert scaler.sd.item() == 0 and scaler.extensive == [0]
    assert scaler.scale(weight + 100, counts).eq(0).all()  # an element that training lacked is no huge error
    torch.testing.assert_close(scaler.unscale(torch.ones(len(counts), 1), counts), weight, rtol=0, atol=1e-6)


def test_composition_counts_implicit_and_explicit_hydrogens_alike() -> None:
    smiles = ["CCO", "[NH4+]", "[Na+].[Cl-]", "[H][H]"]
    counts = count_elements(store(smiles))
    assert {z: int(n) for z, n in enumerate(counts[0]) if n} == {1: 6, 6: 2, 8: 1}
    assert {z: int(n) for z, n in enumerate(counts[1]) if n} == {1: 4, 7: 1}
    assert {z: int(n) for z, n in enumerate(counts[2]) if n} == {11: 1, 17: 1}
    assert torch.equal(counts[:3], count_elements(store(smiles[:3], hydrogens=True)))
    assert counts[3, 1] == 2


def test_a_reference_per_element_takes_off_what_composition_explains() -> None:
    counts = count_elements(store(SMILES))
    energy = counts[:, [1]] * 100.0 + counts[:, [6]] * 170.0 + counts[:, [8]] * 50.0 + 3.0
    rest = 0.01 * torch.randn(len(counts), 1, generator=torch.Generator().manual_seed(0)).double()
    scaler = TargetScaler.fit(energy + rest, counts)
    assert scaler.sd.item() < 0.02  # of a spread of thousands
    z = scaler.scale(energy + rest, counts)
    torch.testing.assert_close(scaler.unscale(z, counts), energy + rest, rtol=0, atol=1e-6)
    with pytest.raises(ValueError, match="composition"):
        scaler.unscale(z)


def test_targets_that_composition_does_not_explain_keep_what_they_are() -> None:
    counts = count_elements(store(molecules(80)["smiles"].tolist()))
    noise = torch.randn(len(counts), 1, generator=torch.Generator().manual_seed(0)).double()
    energy = counts[:, [1]] * 100.0 + counts[:, [6]] * 170.0 + noise
    some = energy.clone()
    some[::3] = torch.nan
    scaler = TargetScaler.fit(torch.cat([energy, noise, some], 1), counts, least=0.95)
    assert scaler.extensive == [0, 2] and scaler.reference[:, 1].eq(0).all() and scaler.sd[1] == noise.std(correction=0)
    for t in (0, 2):
        assert scaler.reference[6, t] == pytest.approx(170, rel=0.1) and scaler.sd[t] < 2
    scaler = TargetScaler.fit(torch.cat([energy, 1e9 + noise], 1), counts, least=0.95)
    assert scaler.extensive == [0] and scaler.sd[1].item() == pytest.approx(noise.std(correction=0).item(), rel=1e-5)
    plain = TargetScaler.fit(noise, counts, least=0.95)
    assert plain.reference is None and plain.extensive == []
    # as many elements as molecules explain anything
    few = count_elements(store(["CO", "CN", "CF", "CCl", "CBr"]))
    assert TargetScaler.fit(noise[:5], few, least=0.95).reference is None
    assert TargetScaler.fit(torch.ones(5, 1), few, least=0.95).reference is None


def test_codes_of_another_kind_tell_no_elements() -> None:
    plain = store(["CC", "CCC", "CCCC", "CCCCC"])
    # ten columns, as gtx's own molecules have, but of something else
    other = replace(plain, atom_columns=tuple("abcdefghij"))
    with pytest.raises(ValueError, match=r"expected atoms with a column 'element', got columns \['a', 'b'"):
        count_elements(other)
    with pytest.raises(ValueError, match="columns \\[\\]"):
        count_elements(replace(other, atom_columns=()))
    # and the element alone, wherever it stands, is enough
    bare = count_elements(replace(plain, atoms=plain.atoms[:, [3, 0]], atom_columns=("degree", "element")))
    assert torch.equal(bare[:, 2:], count_elements(plain)[:, 2:]) and not bare[:, 1].any()


def test_an_element_unseen_in_training_has_no_reference() -> None:
    counts = count_elements(store(["C", "CC", "CCO", "CO"]))
    scaler = TargetScaler.fit(counts[:, [6]] * 5, counts)
    bromide = count_elements(store(["CBr"]))
    assert scaler.reference[35].item() == 0
    assert np.isfinite(scaler.unscale(torch.zeros(1, 1), bromide).item())
    assert scaler.without_reference(bromide).nonzero().tolist() == [[0, 35]]
    assert not scaler.without_reference(counts).any()
    assert not replace(scaler, reference=None).without_reference(bromide).any()
