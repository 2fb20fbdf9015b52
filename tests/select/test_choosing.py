"""Molecules are chosen by the posterior of a Gaussian process, as if each had been measured."""

from __future__ import annotations

import pytest
import torch

from gtx.data import MoleculeStore
from gtx.kernel import KernelRidge
from gtx.models import kernel_ridge
from gtx.select.selecting import choose_for_accuracy, choose_for_best, posterior, replay
from gtx.tasks import Regression
from gtx.tasks.closed_form import fit_closed_form
from tests.molecules_for_tests import store
from tests.tables import molecules

RIDGE = 0.1


@pytest.fixture(scope="module")
def many() -> MoleculeStore:
    table = molecules(90)
    return store(table["smiles"].tolist()).with_targets(table[["gap"]].to_numpy())


@pytest.fixture(scope="module")
def model(many: MoleculeStore) -> KernelRidge:
    found = kernel_ridge(1, num_descriptors=many.descriptors.shape[1])
    fit_closed_form(found, Regression(("gap",)).fit(many), many)
    return found


@pytest.fixture(scope="module")
def similar(model: KernelRidge) -> torch.Tensor:
    return model.gram()


def variance(similar: torch.Tensor, known: list[int], asked: list[int]) -> torch.Tensor:
    """The posterior covariance of `asked` after `known` were measured, straight from its equation."""
    inner = similar[known][:, known] + RIDGE * torch.eye(len(known), dtype=similar.dtype)
    return similar[asked][:, asked] - similar[asked][:, known] @ torch.linalg.inv(inner) @ similar[known][:, asked]


def covariance(similar: torch.Tensor, known: list[int], asked: list[int]) -> torch.Tensor:
    factor = torch.linalg.cholesky(similar[known][:, known] + RIDGE * torch.eye(len(known), dtype=similar.dtype))
    return posterior(similar[asked][:, asked], similar[asked][:, known], factor)


def test_each_choice_removes_most_variance_after_those_before_it(similar: torch.Tensor) -> None:
    known, asked = list(range(30)), list(range(30, 90))
    picks = list(choose_for_accuracy(covariance(similar, known, asked), RIDGE, 4))
    before = variance(similar, known, asked).trace()
    total = before
    for pick in picks:
        left = torch.tensor([variance(similar, [*known, one], asked).trace() for one in asked])
        assert int(left.argmin()) == pick.place
        known.append(asked[pick.place])
        assert pick.gain == pytest.approx(float((total - left.min()) / before), rel=1e-6)
        total = left.min()
    assert len({pick.place for pick in picks}) == 4


def test_the_best_predictions_come_first_with_their_chance(similar: torch.Tensor) -> None:
    found = covariance(similar, list(range(30)), list(range(30, 90)))
    mean = torch.linspace(-1, 1, 60, dtype=torch.float64)
    mean[17] = 9.0
    picks = list(choose_for_best(mean, found, 60, best=1.0))
    assert picks[0].place == 17 and picks[0].gain > 0.99
    assert [pick.place for pick in picks[1:4]] == [59, 58, 57] and picks[1].gain == pytest.approx(0.5)
    assert sorted(pick.place for pick in picks) == list(range(60))


def test_the_values_and_the_kernel_of_other_molecules_come_out_of_a_solved_kernel(
    many: MoleculeStore, model: KernelRidge
) -> None:
    scaled = Regression(("gap",)).fit(many).objective.scale(many).double()
    torch.testing.assert_close(model.values(), scaled, atol=1e-4, rtol=0)
    some = many.subset(torch.arange(20, 50).numpy())
    torch.testing.assert_close(model.with_references(some).gram(), model.gram()[20:50, 20:50])


@pytest.mark.parametrize("goal", ["accuracy", "best"])
def test_a_replay_ends_where_all_strategies_have_measured_all(model: KernelRidge, goal: str) -> None:
    y = model.values().flatten()
    found = replay(model.gram(), y, float(model.ridge), goal, starts=2)
    ends = [heights[-1] for heights in found.curves.values()]
    starts = [heights[0] for heights in found.curves.values()]
    assert ends == pytest.approx([ends[0]] * len(ends)) and starts == pytest.approx([starts[0]] * len(starts))
    assert found.measured == sorted(found.measured) and len(found.measured) == len(found.curves["choice"])
    if goal == "best":
        assert ends[0] == 1.0 and found.area("choice") > found.area("random")
