"""Evidence for classes, on data of which it is known where rows are."""

import pytest
import torch
from torch import Tensor, nn
from torch.distributions import Dirichlet, kl_divergence

from gtx.tasks import BinaryClassification, MulticlassClassification
from gtx.tasks.classification import PENALTY, ClassTask, evidence_loss


def drawn(classes: int) -> tuple[Tensor, Tensor, Tensor]:
    """A number x from -1 to 1, the true probabilities of its class, and the class."""
    random = torch.Generator().manual_seed(0)
    x = 2 * torch.rand(500, 1, generator=random) - 1
    logits = [0 * x, 6 * (3 * x).sin()] if classes == 2 else [4 * (3 * x).sin(), 4 * (5 * x).cos(), -2 * x]
    p = torch.cat(logits, 1).softmax(1)
    return x, p, torch.multinomial(p, 1, generator=random)


@pytest.fixture(scope="module", params=[2, 3])
def learned(request) -> tuple[ClassTask, nn.Module]:
    """A task of classes and a small network that learned by its loss."""
    kind, labels = (
        (BinaryClassification, ("a", "b")) if request.param == 2 else (MulticlassClassification, ("a", "b", "c"))
    )
    task = kind("y", classes=(labels,), uncertainty="evidential")
    torch.manual_seed(0)
    x, _, y = drawn(request.param)
    network = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, task.objective.out_channels))
    optimiser = torch.optim.Adam(network.parameters(), 0.02)
    for _ in range(300):
        optimiser.zero_grad()
        task.objective.elementwise(network(x), y.float()).mean().backward()
        optimiser.step()
    return task, network.requires_grad_(False)


def test_the_true_probabilities_are_found(learned: tuple[ClassTask, nn.Module]) -> None:
    task, network = learned
    x, p, _ = drawn(len(task.columns.labels(0)))
    found = task.objective.unscale(network(x), None)
    assert (found - p[:, -found.shape[1] :]).abs().mean() < 0.1
    assert found.min() > 0 and found.max() < 1


def test_the_loss_is_the_cross_entropy_of_what_is_drawn_and_the_divergence() -> None:
    torch.manual_seed(0)
    alpha = torch.tensor([[1.5, 3.0, 1.0], [4.0, 1.0, 2.0]], dtype=torch.float64)
    y = torch.tensor([1, 2])
    true = torch.eye(3, dtype=torch.float64)[y]
    surprise = -(Dirichlet(alpha).sample((200_000,)).log() * true).sum(-1).mean(0)
    others = torch.where(true == 1, 1.0, alpha)
    flat = kl_divergence(Dirichlet(others), Dirichlet(torch.ones_like(others)))
    torch.testing.assert_close(evidence_loss(alpha, y), surprise + PENALTY * flat, atol=0.02, rtol=0)
    alpha.requires_grad_()
    assert torch.autograd.gradcheck(evidence_loss, (alpha, y))


def test_without_evidence_all_classes_are_as_likely_and_nothing_is_known() -> None:
    task = MulticlassClassification("y", classes=(("a", "b", "c"),), uncertainty="evidential")
    shares = torch.tensor([[0.7, 0.2, 0.1]])
    outputs = torch.cat([shares.log().expand(2, -1), torch.tensor([[-50.0], [1e4]])], 1)
    torch.testing.assert_close(task.objective.unscale(outputs)[0], torch.full((3,), 1 / 3).double(), atol=1e-4, rtol=0)
    torch.testing.assert_close(task.objective.unscale(outputs)[1:], shares.double(), atol=1e-3, rtol=0)
    nothing, much = task.answers.vacuity(outputs[:, None])[:, 0]
    assert nothing == pytest.approx(1, abs=1e-4) and much < 1e-3


def test_logits_alone_are_plain_probabilities_and_members_are_averaged() -> None:
    task = MulticlassClassification(("a", "b"), classes=(("x", "y"), ("p", "q", "r")), uncertainty="evidential")
    assert task.objective.out_channels == 7 and task.objective.point.out_channels == 5
    torch.manual_seed(0)
    outputs = torch.randn(4, 2, 7, dtype=torch.float64)  # [m, members, C]
    each = [task.answers.vacuity(outputs[:, [k]]) for k in (0, 1)]
    assert task.answers.vacuity(outputs) == pytest.approx((each[0] + each[1]) / 2)
    assert task.objective.unscale(outputs, None).split([2, 3], -1)[1].sum(-1).numpy() == pytest.approx(1)
    torch.testing.assert_close(
        task.objective.point.unscale(outputs[..., :5], None), task.objective.softmaxes(outputs[..., :5])
    )
