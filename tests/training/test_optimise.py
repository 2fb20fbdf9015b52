"""What decays, and how the learning rate runs."""

import pytest
from torch import nn

from gtx.tasks import Regression
from gtx.training.optimise import adamw, freeze, rate_of, warmup_cosine

from .task import model as small


def test_matrices_alone_decay() -> None:
    model = small(Regression(["y"]))
    names = {id(p): name for name, p in model.named_parameters()}
    decayed, free = ({names[id(p)] for p in group["params"]} for group in adamw(model, 1e-3, 0.1).param_groups)
    assert decayed | free == set(names.values()) and not decayed & free
    assert not [n for n in decayed if "norm" in n or n.endswith(("bias", "table"))]
    assert "head.0.weight" in decayed and "embedding.atoms.table" in free
    assert not [n for n in free if n.endswith("lin.weight") or (n.startswith("head") and n.endswith("weight"))]


def test_rate_rises_then_falls_to_zero() -> None:
    optimiser = adamw(nn.Linear(2, 2), lr=0.01, weight_decay=0)
    schedule = warmup_cosine(optimiser, steps=200, warmup=0.1)
    rates = []
    for _ in range(201):
        rates.append(schedule.get_last_lr()[0])
        optimiser.step()
        schedule.step()
    assert 0 < rates[0] < 0.001 and max(rates) == rates[20] == 0.01
    assert rates[:21] == sorted(rates[:21]) and rates[20:] == sorted(rates[20:], reverse=True)
    assert abs(rates[110] - 0.005) < 1e-9 and rates[200] < 1e-12


def test_the_smallest_part_decides_the_rate() -> None:
    rates = {"all": 0.1, "layers": 0.5, "layers.1": 0.0, "head": 1.0}
    found = [
        rate_of(name, rates) for name in ("norm.weight", "layers.0.norm.bias", "layers.1.x", "layers.10.x", "head")
    ]
    assert found == [0.1, 0.5, 0.0, 0.5, 1.0]
    assert rate_of("norm.weight", {"head": 2.0}) == 1.0


def test_parts_learn_at_their_rates_and_the_slow_ones_later() -> None:
    model = nn.ModuleDict({"body": nn.Linear(2, 2), "head": nn.Linear(2, 2)})
    optimiser = adamw(model, 0.01, 0.1, rates={"body": 0.1})
    schedule = warmup_cosine(optimiser, steps=100, warmup=0.1, head_first=0.3)
    rates = []
    for _ in range(100):
        rates.append([group["lr"] for group in optimiser.param_groups])
        optimiser.step()
        schedule.step()
    fast, slow = zip(*((head, body) for head, _, body, _ in rates), strict=True)
    assert max(fast) == 0.01 and set(slow[:30]) == {0.0}
    assert slow[30:] == pytest.approx([rate / 10 for rate in fast[30:]])
    assert [group["weight_decay"] for group in optimiser.param_groups] == [0.1, 0.0, 0.1, 0.0]


def test_a_module_at_rate_0_is_frozen_and_an_unknown_module_is_named() -> None:
    model = nn.ModuleDict({"body": nn.Linear(2, 2), "head": nn.Linear(2, 2)})
    freeze(model, {"all": 0.0, "head": 1.0})
    assert [name for name, p in model.named_parameters() if p.requires_grad] == ["head.weight", "head.bias"]
    assert len(adamw(model, 0.01, 0.1, rates={"all": 0.0, "head": 1.0}).param_groups) == 2
    with pytest.raises(ValueError, match="no module 'heads'; it has body, head"):
        freeze(model, {"heads": 1.0})
    with pytest.raises(ValueError, match="nothing would learn"):
        freeze(model, {"all": 0})
