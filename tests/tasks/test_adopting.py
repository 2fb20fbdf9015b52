"""What a task takes over of a trained model's: by the names of targets, in any order, among others."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from gtx.errors import InputError
from gtx.tasks import BinaryClassification, CountRegression, MulticlassClassification, Regression, ShareRegression
from gtx.tasks.scaling import ELEMENTS, TargetScaler


def scaler(*means: float, reference: bool = False) -> TargetScaler:
    mean = torch.tensor(means, dtype=torch.float64)
    return TargetScaler(mean, mean + 1, torch.ones(ELEMENTS, len(means)).double() * mean if reference else None)


def test_scales_are_kept_by_name() -> None:
    known = Regression(("a", "b"), scaler=scaler(1, 2, reference=True))
    own = Regression(("c", "b"), scaler=scaler(7, 8)).adopting(known).scaler
    assert own.mean.tolist() == [7, 2] and own.sd.tolist() == [8, 3]
    assert own.reference[0].tolist() == [0, 2] and own.extensive == [1]
    whole = Regression(("a", "b"), scaler=scaler(7, 8)).adopting(known).scaler
    assert whole.reference.equal(known.scaler.reference) and whole.mean.equal(known.scaler.mean)
    assert Regression(("c",), scaler=scaler(7)).adopting(known).scaler.mean.tolist() == [7]
    assert CountRegression(("c", "b"), means=(5.0, 6.0)).adopting(CountRegression(("b",), means=(2.0,))).means == (
        5.0,
        2.0,
    )


def test_outputs_are_known_by_name_in_every_block() -> None:
    two, three = Regression(("a", "b")), Regression(("b", "c", "a"))
    assert three.outputs_of(two) == [1, -1, 0] and two.outputs_of(three) == [2, 0]
    wide = [replace(task, uncertainty="variance") for task in (two, three)]
    assert wide[1].outputs_of(wide[0]) == [1, -1, 0, 3, -1, 2]
    assert three.outputs_of(wide[0]) is None  # outputs of another kind
    assert two.outputs_of(two) is None and two.outputs_of(Regression(("x", "y"))) is None
    assert two.outputs_of(BinaryClassification(("a", "b"))) is None
    assert ShareRegression(("a", "b", "c")).outputs_of(ShareRegression(("a", "b"))) is None


def test_classes_must_be_those_of_the_model() -> None:
    many = MulticlassClassification(("a", "b"), classes=(("x", "y", "z"), ("p", "q", "r", "s")))
    assert MulticlassClassification(("b",), classes=(("p", "q", "r", "s"),)).adopting(many).outputs_of(many) == [
        3,
        4,
        5,
        6,
    ]
    with pytest.raises(InputError, match="b: the model has the classes 'p', 'q', 'r', 's', the table 'p', 'q'"):
        MulticlassClassification(("b",), classes=(("p", "q"),)).adopting(many)
    known, own = (
        replace(task, uncertainty="evidential")
        for task in (many, MulticlassClassification(("b",), classes=many.classes[1:]))
    )
    assert own.outputs_of(known) == [3, 4, 5, 6, 8]  # the logits of b, and its evidence
    two = BinaryClassification(("a",), classes=(("no", "yes"),))
    with pytest.raises(InputError, match="a: the model has the classes 'no', 'yes', the table '0', '1'"):
        BinaryClassification(("c", "a")).adopting(two)
