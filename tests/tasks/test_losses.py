"""Losses, weights, metrics, scales, fractions, and what a task takes over of a trained model's."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.special import rel_entr
from sklearn import metrics as sk

from gtx.base.errors import InputError
from gtx.data import Row, RowLog
from gtx.data.batches import ConstantShapeStore
from gtx.tasks import BinaryClassification, FractionRegression, MulticlassClassification, Regression
from gtx.tasks.metrics import masked_mean, smoothed_cross_entropy
from gtx.tasks.regression import ELEMENTS, TargetScaler, count_elements
from tests.molecules_for_tests import SMILES, store
from tests.tables import load, molecules

PLAIN = {
    "mse": (Regression(("a", "b", "c"), loss="mse"), F.mse_loss),
    "mae": (Regression(("a", "b", "c"), loss="mae"), F.l1_loss),
    "huber": (Regression(("a", "b", "c"), loss="huber"), F.huber_loss),
    "own": (Regression(("a", "b", "c"), loss=lambda output, target: (output - target).abs() ** 3), None),
    "binary": (BinaryClassification(("a", "b", "c")), F.binary_cross_entropy_with_logits),
    "several": (replace(MulticlassClassification(("a", "b", "c")), classes=[("0", "1")] * 3), None),
}


@pytest.mark.parametrize("name", PLAIN)
def test_is_the_plain_loss_of_what_was_observed(name: str) -> None:
    task, plain = PLAIN[name]
    output = torch.randn(7, task.objective.out_channels, dtype=torch.float64, requires_grad=True)
    target = torch.rand(7, 3, dtype=torch.float64).round()
    blank = torch.rand(7, 3) < 0.4
    loss = masked_mean(task.objective.elementwise, output, target.masked_fill(blank, torch.nan))
    if name == "several":  # two outputs of each target
        expected = F.cross_entropy(output.view(7, 3, 2)[~blank], target[~blank].long())
        blank = blank.repeat_interleave(2, 1)
    else:
        own = (output[~blank] - target[~blank]).abs().pow(3).mean()
        expected = plain(output[~blank], target[~blank]) if plain else own
    torch.testing.assert_close(loss, expected)
    (got,) = torch.autograd.grad(loss, output)
    (gradient,) = torch.autograd.grad(expected, output)
    torch.testing.assert_close(got, gradient)
    assert not got[blank].any()
    alone = masked_mean(task.objective.elementwise, output, torch.full_like(target, torch.nan))
    assert alone.item() == 0 and not torch.autograd.grad(alone, output)[0].any()


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
def test_smoothed_cross_entropy_is_the_divergence_and_a_constant_without_padding(smoothing: float) -> None:
    logits = torch.randn(9, 6, dtype=torch.float64, requires_grad=True)
    labels = torch.randint(6, (9,)).index_fill(0, torch.tensor([1, 4]), -100)
    known = labels >= 0
    target = F.one_hot(labels[known], 6).double() * (1 - smoothing) + smoothing / 6
    divergence = F.kl_div(logits[known].log_softmax(-1), target, reduction="sum") / 7
    loss = smoothed_cross_entropy(logits, labels, smoothing)
    torch.testing.assert_close(loss, divergence - torch.xlogy(target, target).sum() / 7)
    (grad,) = torch.autograd.grad(loss, logits)
    assert grad.any(1).tolist() == known.tolist()
    alone = smoothed_cross_entropy(logits, torch.full((9,), -100), smoothing)
    assert alone.item() == 0 and not torch.autograd.grad(alone, logits)[0].any()


# --- Metrics agree with scikit-learn, leave out blanks and are None where they are not defined.


RNG = np.random.default_rng(0)


def test_scores_agree_with_scikit_learn_target_by_target() -> None:
    y, p = RNG.normal(1e3, 5, (40, 2)), RNG.normal(1e3, 5, (40, 2))
    y[::3, 1] = np.nan
    scores, seen = Regression(["a", "b"]).objective.evaluate(y, p), ~np.isnan(y[:, 1])
    each = {"rmse": sk.root_mean_squared_error, "mae": sk.mean_absolute_error, "r2": sk.r2_score}
    for name, score in each.items():
        a, b = scores["per_target"]["a"][name], scores["per_target"]["b"][name]
        assert b == pytest.approx(score(y[seen, 1], p[seen, 1])) and scores[name] == pytest.approx((a + b) / 2)
    y, p = RNG.integers(0, 2, (60, 1)).astype(float), RNG.random((60, 1)).round(1)  # ties
    scores = BinaryClassification(["a"]).objective.evaluate(y, p)
    assert scores["roc_auc"] == pytest.approx(sk.roc_auc_score(y, p))
    assert scores["pr_auc"] == pytest.approx(sk.average_precision_score(y, p))
    assert scores["accuracy"] == pytest.approx(sk.accuracy_score(y, p > 0.5))


def test_what_is_not_defined_is_none_and_left_out_of_the_mean() -> None:
    y = np.array([[0.0, 1.0, np.nan], [1.0, 1.0, np.nan]])
    p = np.array([[0.1, 0.9, 0.5], [0.8, 0.2, 0.5]])
    scores = BinaryClassification(["a", "one class", "blank"]).objective.evaluate(y, p)
    assert scores["roc_auc"] == 1.0 and scores["accuracy"] == 0.75
    assert scores["per_target"]["one class"] == {"roc_auc": None, "pr_auc": None, "accuracy": 0.5}
    assert set(scores["per_target"]["blank"].values()) == {None}
    one = Regression(["a"]).objective.evaluate(np.array([[2.0]]), np.array([[3.0]]))
    assert (one["rmse"], one["mae"], one["r2"]) == (1.0, 1.0, None)
    none = Regression(["a"]).objective.evaluate(np.zeros((0, 1)), np.zeros((0, 1)))
    assert none["rmse"] is None and none["r2"] is None
    with pytest.raises(ValueError, match=r"expected y \[n, 1\] and predictions \[n, 1\], got \[2, 2\] and \[2, 1\]"):
        Regression(["a"]).objective.evaluate(np.zeros((2, 2)), np.zeros((2, 1)))
    for prediction in np.nan, np.inf:
        scores = Regression(["a"]).objective.evaluate(np.array([[1.0], [2.0]]), np.array([[prediction], [2.0]]))
        assert json.loads(json.dumps(scores, allow_nan=False))["rmse"] is None


@pytest.mark.filterwarnings("error")
def test_classes_that_do_not_occur_have_no_say_and_no_warning() -> None:
    y, p = RNG.integers(0, 3, (60, 1)).astype(float), RNG.dirichlet(np.ones(4), 60)
    task = replace(MulticlassClassification("a"), classes=(("w", "x", "y", "z"),))
    shares = p[:, :3] / p[:, :3].sum(1, keepdims=True)
    each = [sk.roc_auc_score(y[:, 0] == k, p[:, k]) for k in range(3)]
    scores = task.objective.evaluate(y, p)
    assert scores["roc_auc"] == pytest.approx(np.mean(each))
    assert scores["accuracy"] == pytest.approx(sk.accuracy_score(y[:, 0], p.argmax(1)))
    assert scores["mcc"] == pytest.approx(sk.matthews_corrcoef(y[:, 0], p.argmax(1)))
    three = replace(task, classes=(("w", "x", "y"),)).objective.evaluate(y, shares)
    assert three["f1"] == pytest.approx(sk.f1_score(y[:, 0], shares.argmax(1), average="macro"))


# --- Weights of rows and targets: 0 is left out, 2 is twice, in every task of numbers.


NAMES = ("a", "b", "c")
TASKS = {
    "mse": Regression(NAMES),
    "mae": Regression(NAMES, loss="mae"),
    "censored": Regression(NAMES, censored=True),
    "classes": BinaryClassification(NAMES),
    "several": replace(MulticlassClassification(NAMES), classes=[("0", "1")] * 3),
    "fractions": FractionRegression(NAMES),
}
WEIGHTS = torch.tensor([1.0, 0, 2, 1, 3, 0, 1])


def examples(task: object) -> SimpleNamespace:
    generator = torch.Generator().manual_seed(0)
    y = torch.rand(7, 3, generator=generator)
    y = y / y.sum(1, keepdim=True) if isinstance(task, FractionRegression) else y.round()
    if not isinstance(task, FractionRegression):
        y[3, 1] = torch.nan
    output = torch.randn(7, task.objective.out_channels, generator=generator)
    made = SimpleNamespace(y=y, output=output, weights=WEIGHTS)
    if getattr(task, "censored", False):
        made.bounds = torch.full((7, 6), torch.nan)
        made.bounds[3, 1], made.bounds[4, 5], made.y[4, 2] = 0.5, 0.2, torch.nan
    return made


def cut(given: SimpleNamespace, rows: torch.Tensor) -> SimpleNamespace:
    return SimpleNamespace(**{name: value[rows] for name, value in vars(given).items() if name != "weights"})


@pytest.mark.parametrize("name", TASKS)
def test_a_row_of_weight_0_is_left_out_and_one_of_2_is_there_twice(name: str) -> None:
    task = TASKS[name]
    given = examples(task)
    repeated, plain = cut(given, torch.arange(7).repeat_interleave(WEIGHTS.long())), cut(given, torch.arange(7))
    weighed, twice, even = (task.objective.mean_loss(each.output, each) for each in (given, repeated, plain))
    torch.testing.assert_close(weighed, twice)
    assert not torch.allclose(weighed, even)
    given.weights = torch.ones(7)
    torch.testing.assert_close(task.objective.mean_loss(given.output, given), even)


@pytest.mark.parametrize("name", TASKS)
def test_a_target_of_weight_0_is_left_out_and_one_of_2_is_there_twice(name: str) -> None:
    task = replace(TASKS[name], target_weights={"a": 2, "c": 0})
    given = cut(examples(task), torch.tensor([0, 1, 2, 5, 6]))  # without blanks
    each = task.objective.elementwise(given.output, given.y).mean(0)
    torch.testing.assert_close(task.objective.mean_loss(given.output, given), (2 * each[0] + each[1]) / 3)
    assert task.config()["target_weights"] == {"a": 2, "c": 0} and "target_weights" not in task.to_dict()


def test_weights_of_targets_that_are_none_are_refused() -> None:
    with pytest.raises(InputError, match=r"no target 'aa'.*did you mean 'a'"):
        Regression(["a", "b"], target_weights={"aa": 1})
    for wrong in (-1, "much", float("inf"), None):
        with pytest.raises(InputError, match=r"target_weights\.b: expected a (finite )?number.*, got"):
            FractionRegression(["a", "b"], target_weights={"b": wrong})


def test_batches_carry_weights_and_bounds_and_those_of_constant_shape_nothing_for_nobody() -> None:
    count = len(SMILES)
    task = Regression("y", censored=True)
    y = torch.randn(count, 1, dtype=torch.float64)
    y[2] = torch.nan
    bounds = torch.full((count, 2), torch.nan, dtype=torch.float64)
    bounds[2, 0] = 0.3
    held = replace(store().with_targets(y), bounds=bounds, weights=torch.arange(count, dtype=torch.float64))
    index = torch.tensor([4, 2, 0])
    for batch in (held.batch(index), held.subset(index).batch()):
        assert batch.weights.tolist() == [4, 2, 0] and batch.bounds[1, 0].item() == pytest.approx(0.3)
    assert held.batch(index).to_data_list()[1].weights.tolist() == [2]
    assert task.objective.share(held) == sum(range(count)) and task.objective.share(held.batch(index)) == 6

    constant = ConstantShapeStore(held)
    output = torch.randn(count)
    share = 0.0
    for rows in constant.sampler(4).batches():
        batch = constant.batch(rows)
        said = torch.where(batch.row >= 0, output[batch.row], 1e3)[:, None]
        assert batch.weights[batch.row < 0].eq(0).all() and batch.bounds[batch.row < 0].isnan().all()
        plain = held.batch(batch.row[batch.row >= 0])
        expected = task.objective.mean_loss(output[plain.row][:, None], plain)
        torch.testing.assert_close(task.objective.mean_loss(said, batch), expected)
        share += float(task.objective.share(batch))
    assert share == sum(range(count))


def test_cells_that_are_no_weights_are_errors_of_their_rows(tmp_path) -> None:
    cells = ["1", "", "-1", "0", "heavy", "2.5", *["1"] * 14]
    rows = [["C" * (i + 1), i, cell] for i, cell in enumerate(cells)]
    data = load(tmp_path / "t.csv", rows, ["smiles", "y", "w"], target_columns=("y",), weight_column="w")
    errors = data.files[0].row_log.errors
    assert sorted(errors) == [2, 3, 5] and "expected" in errors[2] and 'column "w"' in errors[2]
    assert data.store.weights.tolist()[:3] == [1, 0, 2.5]
    assert 1 not in data.split["train"]  # the row of weight 0


# --- What a task takes over of a trained model's: by the names of targets, in any order, among others.


def scaler(*means: float, reference: bool = False) -> TargetScaler:
    mean = torch.tensor(means, dtype=torch.float64)
    return TargetScaler(mean, mean + 1, torch.ones(ELEMENTS, len(means)).double() * mean if reference else None)


def test_scales_are_kept_by_name() -> None:
    known = Regression(("a", "b"), scaler=scaler(1, 2, reference=True))
    own = Regression(("c", "b"), scaler=scaler(7, 8)).take_over(known).scaler
    assert own.mean.tolist() == [7, 2] and own.sd.tolist() == [8, 3]
    assert own.reference[0].tolist() == [0, 2] and own.extensive == [1]
    whole = Regression(("a", "b"), scaler=scaler(7, 8)).take_over(known).scaler
    assert whole.reference.equal(known.scaler.reference) and whole.mean.equal(known.scaler.mean)
    assert Regression(("c",), scaler=scaler(7)).take_over(known).scaler.mean.tolist() == [7]
    constant = Regression(("a",), scaler=scaler(-1))  # whose scale of 0 would leave nothing to learn
    assert Regression(("a",), scaler=scaler(7)).take_over(constant).scaler.sd.tolist() == [8]


def test_outputs_are_known_by_name_in_every_block() -> None:
    two, three = Regression(("a", "b")), Regression(("b", "c", "a"))
    assert three.outputs_of(two) == [1, -1, 0] and two.outputs_of(three) == [2, 0]
    wide = [replace(task, uncertainty="variance") for task in (two, three)]
    assert wide[1].outputs_of(wide[0]) == [1, -1, 0, 3, -1, 2]
    assert three.outputs_of(wide[0]) is None  # outputs of another kind
    assert two.outputs_of(two) is None and two.outputs_of(Regression(("x", "y"))) is None
    assert two.outputs_of(BinaryClassification(("a", "b"))) is None
    assert FractionRegression(("a", "b", "c")).outputs_of(FractionRegression(("a", "b"))) is None


def test_targets_that_cannot_be_learned_are_refused_before_training() -> None:
    molecules = store(["C", "CC"]).with_targets(torch.tensor([[1.0, 0], [1, 1]]))
    with pytest.raises(InputError, match=r"'a' has only the class '1' among the training molecules; class.* needs two"):
        BinaryClassification("a").fit(molecules.with_targets(torch.ones(2, 1)))
    with pytest.raises(InputError, match="target 'a' has only the class 'y' among the training molecules; multiclass"):
        MulticlassClassification(("a", "b"), classes=(("x", "y"), ("p", "q"))).fit(molecules)
    assert BinaryClassification(("a", "b"), class_weights="balanced").fit(molecules).weights == ((1, 1e-3), (1, 1))
    large = molecules.with_targets(torch.tensor([[1, 1], [1, torch.inf]]))
    for refuse in Regression(("a", "b")).fit, Regression(("a", "b"), scaler=scaler(1, 2)).objective.examples:
        with pytest.raises(InputError, match="target 'b' of molecule 1, counted from 0, is inf, which is too large: a"):
            refuse(large)
    with pytest.raises(InputError, match="these molecules have no targets of molecules: expected a store with y"):
        Regression("a").fit(store(["C", "CC"]))


def test_classes_must_be_those_of_the_model() -> None:
    many = MulticlassClassification(("a", "b"), classes=(("x", "y", "z"), ("p", "q", "r", "s")))
    alone = MulticlassClassification(("b",), classes=many.classes[1:])
    assert alone.take_over(many).outputs_of(many) == [3, 4, 5, 6]
    with pytest.raises(InputError, match="b: the model has the classes 'p', 'q', 'r', 's', the table 'p', 'q'"):
        MulticlassClassification(("b",), classes=(("p", "q"),)).take_over(many)
    known, own = (replace(task, uncertainty="evidential") for task in (many, alone))
    assert own.outputs_of(known) == [3, 4, 5, 6, 8]  # the logits of b, and its evidence
    two = BinaryClassification(("a",), classes=(("no", "yes"),))
    told = "a: the model has the classes 'no', 'yes', the table '0', '1'; `new_head` learns those of"
    with pytest.raises(InputError, match=told):
        BinaryClassification(("c", "a")).take_over(two)


# --- Scaled targets are z-scores of the training rows, and come back unchanged.


@pytest.mark.parametrize(("mean", "sd"), [(7e-3, 1e-3), (7e4, 1e4), (1e8, 3)])  # a small spread about a large mean
def test_z_scores_there_and_back(mean: float, sd: float) -> None:
    y = mean + sd * torch.randn(50, 2).double()
    y[::4, 0] = torch.nan
    scaler = TargetScaler.fit(y)
    z = scaler.scale(y)
    assert torch.equal(z.isnan(), y.isnan())
    torch.testing.assert_close(z.double().nanmean(0), torch.zeros(2).double(), atol=1e-6, rtol=0)
    torch.testing.assert_close(z.double().square().nanmean(0), torch.ones(2).double(), atol=1e-5, rtol=0)
    torch.testing.assert_close(scaler.unscale(z), y, equal_nan=True, rtol=0, atol=1e-5 * sd)


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
    nearly = weight + 0.01 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(0)).double()
    scaler = TargetScaler.fit(nearly, counts)
    z = scaler.scale(nearly, counts)
    torch.testing.assert_close(scaler.unscale(z, counts), nearly, rtol=0, atol=1e-6)
    with pytest.raises(ValueError, match="composition"):
        scaler.unscale(z)


def test_composition_counts_implicit_and_explicit_hydrogens_alike() -> None:
    smiles = ["CCO", "[NH4+]", "[Na+].[Cl-]", "[H][H]"]
    counts = count_elements(store(smiles))
    assert {z: int(n) for z, n in enumerate(counts[0]) if n} == {1: 6, 6: 2, 8: 1}
    assert {z: int(n) for z, n in enumerate(counts[1]) if n} == {1: 4, 7: 1}
    assert {z: int(n) for z, n in enumerate(counts[2]) if n} == {11: 1, 17: 1}
    assert torch.equal(counts[:3], count_elements(store(smiles[:3], hydrogens=True)))
    assert counts[3, 1] == 2


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


# --- Fractions add up to 1, whatever comes, and the loss is least at what was measured.


FRACTIONS = FractionRegression(["a", "b", "c"])
SHARES = torch.from_numpy(np.random.default_rng(0).dirichlet([0.3, 1.0, 2.0], 40))


def test_predictions_add_up_to_1_members_and_their_mean() -> None:
    molecules = store(["C"] * 40)
    outputs = torch.randn(40, 5, 3) * 20
    answers = FRACTIONS.answers.decode(outputs, molecules)
    np.testing.assert_allclose(answers.mean.sum(1), 1)
    assert (answers.mean >= 0).all() and answers.std.shape == (40, 3)
    np.testing.assert_allclose(FRACTIONS.project(np.array([[-1.0, 0.5, 1.5], [0, 0, 0]])).sum(1), 1)


def test_the_loss_is_the_divergence_and_least_where_the_shares_are_those_measured() -> None:
    output = torch.randn(40, 3, dtype=torch.float64, requires_grad=True)
    loss = masked_mean(FRACTIONS.objective.elementwise, output, SHARES)
    p = output.detach().softmax(-1).numpy()
    assert float(loss.detach()) == pytest.approx(rel_entr(SHARES.numpy(), p).sum(1).mean())
    assert FRACTIONS.objective.evaluate(SHARES, p)["kl"] == pytest.approx(float(loss.detach()), rel=1e-6)
    best = SHARES.log().requires_grad_()
    least = masked_mean(FRACTIONS.objective.elementwise, best, SHARES)
    assert float(least.detach()) == pytest.approx(0, abs=1e-12)
    assert torch.autograd.grad(least, best)[0].abs().max() < 1e-12
    one = torch.eye(3, dtype=torch.float64)[:1]  # fractions of 0 are no trouble
    assert masked_mean(FRACTIONS.objective.elementwise, output[:1], one).isfinite()


CELLS = [
    *(["0.2", "0.3", "0.5"], ["2", "3", "5"], ["", "", ""], ["0.5", "", "0.5"]),
    *(["0.5", "-0.1", "0.6"], ["0", "0", "0"], ["0.33", "0.33", "0.33"]),
]


@pytest.mark.parametrize(("normalise", "wrong"), [(False, [2, 4, 5, 6]), (True, [4, 5, 6])])
def test_rows_that_are_no_shares_are_errors(normalise: bool, wrong: list[int]) -> None:
    rows = [Row(i + 1, cells, "C") for i, cells in enumerate(CELLS)]
    row_log = RowLog()
    y = FractionRegression(["a", "b", "c"], normalise=normalise).columns.parse(rows, ["a", "b", "c"], row_log).y
    assert sorted(row_log.errors) == wrong
    known = ~np.isnan(y).any(1)
    assert known.tolist() == [i + 1 not in (*wrong, 3) for i in range(len(rows))]
    np.testing.assert_allclose(y[known].sum(1), 1)
    assert row_log.errors[5] == 'row 5, column "b", value "-0.1": is not a number of 0 or more, nor blank'
    assert "'b' has no value; write 0 for nothing" in row_log.errors[4]
    if not normalise:
        assert row_log.errors[2].endswith("add up to 10, not to 1; --normalise divides each by that")


def test_a_truth_in_the_table_is_scored_as_it_was_learned() -> None:
    task = FractionRegression(["a", "b", "c"], normalise=True)
    scores = task.answers.scores(["a", "b", "c"])
    outputs = torch.tensor([[0.2, 0.3, 0.5]] * 7).log()[:, None]
    rows = [Row(i + 1, cells, "C") for i, cells in enumerate(CELLS)]
    scores.add(rows, task.answers.decode(outputs, store(["C"] * 7)))
    found = scores.metrics()
    third = rel_entr([1 / 3] * 3, [0.2, 0.3, 0.5]).sum() / 3  # of three rows that can be used, one is wrong
    assert found["kl"] == pytest.approx(third, rel=1e-5)


def test_one_share_alone_or_training_rows_that_are_none_are_refused() -> None:
    with pytest.raises(InputError, match=r"two target columns or more, .* got 'a'"):
        FractionRegression("a")
    with pytest.raises(InputError, match="molecule 1, counted from 0: the 3 fractions from 'a' to 'c' add up to 3"):
        FRACTIONS.fit(store(["C", "CC"]).with_targets(torch.tensor([[1.0, 0, 0], [1, 1, 1]])))
