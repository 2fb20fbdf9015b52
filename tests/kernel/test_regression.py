"""Predictions are sums over training molecules, left-out rows choose the kernel, and what is learned is kept."""

import pickle
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.gaussian_process.kernels import Matern
from torch_geometric.data import Batch

import gtx.kernel.regression
import gtx.kernel.ridge
from gtx.base.errors import InputError
from gtx.data import MoleculeStore
from gtx.kernel import DescriptorKernel, KernelRidge, LearningCurve, TanimotoKernel
from gtx.kernel.kernels import intersections
from gtx.kernel.regression import DESCRIPTOR_TERMS, FEWEST, DescriptorTerm, measure_learning_curve
from gtx.kernel.ridge import RIDGES, cost, leave_one_out, rows_of_equal_cost, solve_kernel_ridge
from gtx.models import kernel_ridge
from gtx.tasks import BinaryClassification, MulticlassClassification, Regression
from gtx.tasks.closed_form import fit_closed_form
from tests.molecules_for_tests import SMILES, renumbered, store, whole_batch
from tests.tables import molecules


@pytest.fixture(scope="module")
def many() -> MoleculeStore:
    table = molecules(120)
    return store(table["smiles"].tolist()).with_targets(table[["gap", "solvation_water"]].to_numpy())


def solved(train: MoleculeStore, task=None, **options):
    task = (task or Regression(("gap", "solvation_water"))).fit(train)
    model = kernel_ridge(task.objective.out_channels, **{"num_descriptors": train.descriptors.shape[1]} | options)
    fit_closed_form(model, task, train)
    return model, task


@pytest.mark.parametrize("blends", [DESCRIPTOR_TERMS, (DescriptorTerm(0.5, 2),), (DescriptorTerm(0, 2),)])
def test_predictions_are_the_sum_over_training_molecules_in_any_order(blends, many, monkeypatch) -> None:
    monkeypatch.setattr(gtx.kernel.regression, "DESCRIPTOR_TERMS", blends)
    monkeypatch.setattr(gtx.kernel.regression, "CHUNK", 50)  # of 120 molecules
    model, _ = solved(many)
    assert (model.descriptors is None) == (blends[-1].share == 0)
    batch = whole_batch()
    expected = model.offset.double() + model.kernel(batch) @ model.dual.double()
    torch.testing.assert_close(model(batch).double(), expected, rtol=1e-5, atol=1e-6)
    parts = torch.cat([*model._kernels(model.counts(many.batch()), {"descriptors": many.descriptors})])
    torch.testing.assert_close(parts, model.kernel(many.batch()))
    other, _ = solved(many.subset(torch.randperm(len(many), generator=torch.Generator().manual_seed(1))))
    torch.testing.assert_close(other(batch), model(batch), rtol=1e-3, atol=1e-3)


def test_descriptors_have_a_share_where_the_target_follows_them_and_none_where_it_does_not(many: MoleculeStore) -> None:
    train, test = many.subset(np.arange(0, 120, 2)), many.subset(np.arange(1, 120, 2))
    task, weight = Regression(("y",), element_reference=False), many.descriptors[:, :1].double()
    errors = []
    for num_descriptors in (many.descriptors.shape[1], 0):
        model, fitted = solved(train.with_targets(weight[::2]), task, num_descriptors=num_descriptors)
        assert (model.descriptors is None) == (num_descriptors == 0)
        errors.append((model(test.batch()) - fitted.objective.scale(test.with_targets(weight[1::2]))).square().mean())
    assert errors[0] < 0.5 * errors[1]
    noise = torch.randn(120, 1, generator=torch.Generator().manual_seed(0))
    assert solved(replace(many, descriptors=many.descriptors * 0 + noise))[0].descriptors is None


def test_descriptors_that_are_not_there_are_asked_for(many: MoleculeStore) -> None:
    model, _ = solved(many)
    width = many.descriptors.shape[1]
    with pytest.raises(ValueError, match=rf"expected {width} descriptors for each molecule.* got shape \[9, 0\]"):
        model(whole_batch(descriptors=False))


def test_the_variance_is_small_where_there_is_data(many: MoleculeStore) -> None:
    train = many.subset(np.arange(0, 120, 2))
    model, _ = solved(train)
    known, new = model.variance(train.batch()), model.variance(many.subset(np.arange(1, 120, 2)).batch())
    assert (known >= 0).all() and (known <= model.ridge * model.scale + 1e-9).all()
    assert (known.mean(0) < new.mean(0)).all() and (new <= model.scale + 1e-9).all()
    alone, _ = solved(train, num_descriptors=0)
    torch.testing.assert_close(alone.variance(whole_batch(["[Na+]"])), alone.scale.double()[None])


def test_left_out_rows_decide_what_is_counted(many: MoleculeStore) -> None:
    coarse, fine = [{"radius": 0, "atoms": []}], [{"radius": 2, "atoms": [0], "bonds": [0]}]
    for labels in ([coarse, fine], [fine, coarse]):
        assert solved(many, labels=labels, num_descriptors=0)[0].labels == fine


@pytest.mark.parametrize(("limit", "value"), [("MOST_EXACT", 100), ("MOST_COST", 1e6)])
def test_of_many_rows_some_stand_for_all(limit: str, value: float, many: MoleculeStore, monkeypatch) -> None:
    exact, task = solved(many)
    monkeypatch.setattr(gtx.kernel.regression, limit, value)
    monkeypatch.setattr(gtx.kernel.regression, "INDUCING", 60)
    some, _ = solved(many)
    assert len(some.row) == 60 and len(exact.row) == 120
    y = task.objective.scale(many)
    assert ((some(many.batch()) - y).square().mean(0) < 0.5).all()
    assert (some.variance(many.batch()) >= 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("several", [False, True])
def test_classes_have_the_probabilities_of_new_molecules(several: bool, many: MoleculeStore) -> None:
    gap = many.y[:, 0]
    cuts = gap.quantile(torch.tensor([0.3, 0.7] if several else [0.5], dtype=torch.float64))
    y = torch.bucketize(gap, cuts).double()[:, None]
    y[::7] = torch.nan
    labels = (("low", "middle", "high") if several else ("low", "high"),)
    task = replace((MulticlassClassification if several else BinaryClassification)(("gap",)), classes=labels)
    train = many.subset(np.arange(0, 120, 2)).with_targets(y[::2])
    model, task = solved(train, task)
    test = many.subset(np.arange(1, 120, 2))
    found = task.objective.evaluate(y[1::2], task.objective.unscale(model(test.batch()), test))
    assert found["roc_auc"] > 0.8
    loss = float(task.objective.elementwise(model(test.batch()), y[1::2].nan_to_num())[~y[1::2].isnan()].mean())
    assert loss < np.log(3 if several else 2)


FOUNDATION = {"sha256": "0", "width": 16}


def embed(batch: Batch) -> torch.Tensor:
    """Any function of a molecule's descriptors that has noise of its own."""
    generator = torch.Generator().manual_seed(3)
    return torch.sin(torch.nan_to_num(batch.u[:, :8]) @ torch.randn(8, 16, generator=generator))


def solved_with_embeddings(train: MoleculeStore, **options):
    model = kernel_ridge(2, num_descriptors=train.descriptors.shape[1], foundation=FOUNDATION, **options)
    model.embed = embed
    fit_closed_form(model, Regression(("a", "b")).fit(train), train)
    return model


@pytest.fixture
def always(monkeypatch) -> None:
    """Every kernel has a share, whatever left-out rows prefer."""
    monkeypatch.setattr(KernelRidge, "_choose_embeddings", lambda model, *_: model.embeddings.share.fill_(0.5))
    monkeypatch.setattr(gtx.kernel.regression, "DESCRIPTOR_TERMS", (DescriptorTerm(0.5, 2),))


@pytest.mark.usefixtures("always")
def test_three_kernels_are_mixed_by_their_shares_and_solved_as_one(many: MoleculeStore) -> None:
    train = many.subset(np.arange(30))
    model, batch = solved_with_embeddings(train), train.batch()
    assert model.kernel_names == ["substructures", "descriptors", "foundation"]
    k, share = model.kernel(batch), model.descriptors.share
    found = solve_kernel_ridge(k, torch.arange(30), Regression(("a", "b")).fit(train).objective.scale(train).double())
    torch.testing.assert_close(model(batch).double(), found.centre + k @ found.dual, rtol=1e-4, atol=1e-4)
    both = (1 - share) * model.similarity(batch) + share * model.descriptors(batch.u)
    torch.testing.assert_close(k, 0.5 * both + 0.5 * model.embeddings(embed(batch)))
    torch.testing.assert_close(k.diag(), torch.ones(30, dtype=torch.float64))  # 1 for a molecule that is held
    assert (model.variance(batch) <= model.ridge * model.scale + 1e-9).all()


@pytest.fixture(params=["substructures", "descriptors", "foundation"])
def ridge(request, many: MoleculeStore) -> KernelRidge:
    """A kernel of substructures alone, with descriptors, or with embeddings too."""
    if request.param == "foundation":
        request.getfixturevalue("always")
        return solved_with_embeddings(many)
    return solved(many, num_descriptors=many.descriptors.shape[1] * (request.param == "descriptors"))[0]


def test_it_predicts_alike_alone_and_is_copied_pickled_and_read_from_its_tensors(ridge: KernelRidge) -> None:
    model, batch = ridge, whole_batch()
    found = model(batch)
    alone = torch.cat([model(whole_batch([text])) for text in SMILES])
    torch.testing.assert_close(alone, found, rtol=1e-5, atol=1e-5)
    again = kernel_ridge(2, **model.learned_arguments)
    again.load_state_dict(model.state_dict())
    again.embed = model.embed
    for other in (deepcopy(model), pickle.loads(pickle.dumps(model)), again, deepcopy(model).double()):
        assert torch.equal(other(batch).float(), found)


@pytest.mark.usefixtures("always")
def test_a_third_kernel_needs_its_network_and_its_numbers(many: MoleculeStore) -> None:
    model = solved_with_embeddings(many)
    again = kernel_ridge(2, **model.learned_arguments)
    again.load_state_dict(model.state_dict())
    with pytest.raises(ValueError, match="compares embeddings, and has no network"):
        again(whole_batch())
    wrong = {"share": (2, "expected 0 to 1, got 2"), "length": (0, "expected a positive number, got 0")}
    for name, (value, message) in wrong.items():
        with pytest.raises(InputError, match=f"{name} of embeddings: {message}"):
            again.load_state_dict(model.state_dict() | {f"embeddings.{name}": torch.tensor(float(value))})


def test_embeddings_have_a_share_where_the_target_follows_them_and_none_where_it_does_not(many: MoleculeStore) -> None:
    few = many.subset(np.arange(60))
    assert solved_with_embeddings(few.with_targets(embed(few.batch())[:, :2])).kernel_names[-1] == "foundation"
    noise = torch.randn(60, 16, generator=torch.Generator().manual_seed(5))
    model = kernel_ridge(2, num_descriptors=few.descriptors.shape[1], foundation=FOUNDATION)
    model.solve(few, few.y, noise)
    assert model.embeddings is None and model.learned_arguments["foundation"] is None


def test_contributions_of_atoms_and_of_the_whole_sum_to_the_prediction(ridge: KernelRidge) -> None:
    """With the mean; atoms that are alike bring the same, and a molecule that shares nothing with those held has
    none."""
    model, texts = ridge.double(), ["CC(C)(C)O", "c1ccncc1", "[He]", "C.CO"]
    for text in texts:
        batch = whole_batch([text])
        atoms, brought = model.contributions(batch)
        torch.testing.assert_close(atoms.sum(0) + brought, model(batch)[0] - model.offset, rtol=0, atol=1e-9)
        assert brought.any() == (model.kernel_names != ["substructures"]) and atoms.any() == (text != "[He]")
    alike = model.contributions(whole_batch(texts[:1]))[0]
    torch.testing.assert_close(alike[[0, 2]], alike[[3, 3]], rtol=0, atol=1e-12)
    assert (alike[0] - alike[4]).abs().max() > 1e-3


# --- The kernel of counts is its definition, and counts that lead astray are refused.


RADIUS_3 = [{"radius": 3, "atoms": [0], "bonds": [0]}, {"radius": 1}]


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


# --- The closed form is what refitting gives.


def problem(n: int = 40, columns: int = 2) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    x = torch.rand(n, 3, dtype=torch.float64)
    kernel = torch.exp(-torch.cdist(x, x).square())
    y = torch.stack([x[:, 0] + 0.1 * torch.randn(n), x[:, 1].sin() + 0.2 * torch.randn(n)], 1)[:, :columns].double()
    return kernel, y


def test_each_row_is_predicted_as_if_it_were_left_out() -> None:
    kernel, y = problem()
    found = solve_kernel_ridge(kernel, torch.arange(40), y)
    for i in (0, 7, 39):
        rest = torch.arange(40) != i
        for column in range(2):
            inverse = torch.linalg.inv(kernel[rest][:, rest] + found.ridge[column] * torch.eye(39))
            refitted = found.centre[column] + kernel[i, rest] @ inverse @ (y[rest, column] - found.centre[column])
            assert found.left_out[i, column] == pytest.approx(float(refitted), rel=1e-6)
    for column in range(2):
        errors = leave_one_out(kernel, y - found.centre, found.ridge[column])[1]
        torch.testing.assert_close(y[:, column] - errors[:, column], found.left_out[:, column])


def test_the_ridge_is_the_one_that_predicts_left_out_rows_best() -> None:
    kernel, y = problem(columns=1)
    errors = []
    for ridge in RIDGES:
        inverse = torch.linalg.inv(kernel + ridge * torch.eye(40))
        errors.append(float((inverse @ (y - y.mean()) / inverse.diag()[:, None]).square().mean()))
    assert solve_kernel_ridge(kernel, torch.arange(40), y).ridge[0] == RIDGES[torch.tensor(errors).argmin()]


def test_blanks_are_as_rows_that_are_not_there() -> None:
    kernel, y = problem()
    y[::3, 1] = torch.nan
    found, rows = solve_kernel_ridge(kernel, torch.arange(40), y), (~y[:, 1].isnan()).nonzero().flatten()
    alone = solve_kernel_ridge(kernel[rows][:, rows], torch.arange(len(rows)), y[rows, 1:])
    assert rows_of_equal_cost(1000, y) == int(1000 / 2 ** (1 / 3)) and cost(y) == 40**3 + 26**3
    torch.testing.assert_close(found.dual[rows, 1], alone.dual[:, 0])
    torch.testing.assert_close(found.dual[:, 0], solve_kernel_ridge(kernel, torch.arange(40), y[:, :1]).dual[:, 0])
    assert (found.dual[::3, 1] == 0).all() and found.left_out[::3, 1].isnan().all()
    torch.testing.assert_close(found.scale[1], alone.scale[0])


def test_of_many_rows_some_choose_the_ridge_and_all_are_learned_from(monkeypatch) -> None:
    kernel, y = problem()
    y[::3, 1] = torch.nan
    monkeypatch.setattr(gtx.kernel.ridge, "MOST_SPECTRUM", 20)
    found = solve_kernel_ridge(kernel, torch.arange(40), y)
    for column in range(2):
        rows = (~y[:, column].isnan()).nonzero().flatten()
        inner = kernel[rows][:, rows] + found.ridge[column] * torch.eye(len(rows), dtype=torch.float64)
        expected = torch.linalg.solve(inner, y[rows, column] - y[rows, column].mean())
        torch.testing.assert_close(found.dual[rows, column], expected)
    assert found.left_out[::3, 1].isnan().all() and (found.dual[::3, 1] == 0).all()


def test_with_some_rows_in_place_of_all_it_leaves_out_alike() -> None:
    kernel, y = problem()
    chosen = torch.arange(0, 40, 3)
    some = solve_kernel_ridge(kernel[:, chosen], chosen, y)
    between = kernel[:, chosen] @ torch.linalg.inv(kernel[chosen][:, chosen] + 1e-9 * torch.eye(14)) @ kernel[chosen]
    rest = torch.arange(40) != 5
    inverse = torch.linalg.inv(between[rest][:, rest] + some.ridge[0] * torch.eye(39))
    refitted = some.centre[0] + between[5, rest] @ inverse @ (y[rest, 0] - some.centre[0])
    assert some.left_out[5, 0] == pytest.approx(float(refitted), rel=1e-3)
    assert ((kernel[:, chosen] @ some.dual + some.centre - y).square().mean(0) < 0.6 * y.var(0)).all()


def test_a_target_that_does_not_vary_is_its_mean() -> None:
    kernel, y = problem()
    y[:, 0] = 3.0
    found = solve_kernel_ridge(kernel, torch.arange(40), y)
    assert found.centre[0] == 3 and (found.dual[:, 0] == 0).all() and found.scale[0] == 0


# --- The learning curve of a kernel: laws that are known.


def points(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A Gaussian kernel between points of a line, and a smooth function of them."""
    x = torch.rand(n, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 10
    return torch.exp(-((x[:, None] - x) ** 2) / (2 * 0.3**2)), torch.sin(3 * x)


def test_a_power_law_is_recovered_and_an_error_that_does_not_fall_stays() -> None:
    law = LearningCurve((100, 200, 400), tuple(2.0 * n**-0.3 for n in (100, 200, 400)))
    assert law.exponent == pytest.approx(0.3)
    assert law.errors[-1] * law.ratio(1600) == pytest.approx(2.0 * 1600**-0.3)
    flat = LearningCurve((100, 200, 400), (0.5, 0.52, 0.51))
    assert flat.exponent == 0 and flat.ratio(1600) == 1


def test_more_molecules_help_a_smooth_function_and_not_a_noise() -> None:
    kernel, y = points(400)
    smooth = measure_learning_curve(kernel, y, 0.01)
    assert smooth is not None and smooth.rows == (100, 200, 400) and smooth.errors[0] > 2 * smooth.errors[-1]
    y = torch.randn(400, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    noise = measure_learning_curve(kernel, y, 10.0)
    assert noise is not None and noise.ratio(800) > 0.95


def test_repeated_measurements_do_not_predict_one_another() -> None:
    kernel, y = points(150)
    twice = torch.arange(150).repeat(2)
    repeated = measure_learning_curve(kernel[twice][:, twice], y[twice], 0.1)
    assert repeated == measure_learning_curve(kernel, y, 0.1) is not None


def test_a_few_molecules_have_no_curve() -> None:
    assert measure_learning_curve(*points(FEWEST - 1), 0.1) is None
    twice, (kernel, y) = torch.arange(FEWEST - 1).repeat(2), points(FEWEST - 1)
    assert measure_learning_curve(kernel[twice][:, twice], y[twice], 0.1) is None
    assert measure_learning_curve(points(FEWEST)[0], torch.ones(FEWEST, dtype=torch.float64), 0.1) is None  # no error
