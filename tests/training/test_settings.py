"""Settings say what they are and refuse what cannot be."""

import json
import math
import re

import numpy as np
import pytest

from gtx.base.errors import InputError
from gtx.training import TrainSettings


def test_decisive_options_are_plain_and_leave_out_the_harmless() -> None:
    decisive = TrainSettings(model_arguments={"layers": 3}).decisive()
    assert json.loads(json.dumps(decisive)) == decisive
    assert decisive["model_arguments"] == {"layers": 3} and "lr" in decisive
    assert not decisive.keys() & {"progress", "threads", "logger", "logger_arguments"}


@pytest.mark.parametrize(
    "name, value",
    [
        ("epochs", 0),
        ("epochs", "two"),
        ("ema", 1.0),
        ("lr", math.nan),
        ("warmup", 1.5),
        ("threads", 10**17),
        ("folds", 10**19),
        ("blend", "forest"),
        ("model_arguments", {"channels": math.inf}),
        ("model_arguments", {"cutoffs": [1, [2**64]]}),
    ],
)
def test_values_that_cannot_be_are_named(name: str, value: object) -> None:
    shown = next(iter(value.values())) if isinstance(value, dict) else value
    with pytest.raises(InputError, match=rf"^{name}\S*: expected .*, got {re.escape(repr(shown)[:12])}"):
        TrainSettings(**{name: value})


def test_numbers_of_numpy_are_pythons_own() -> None:
    given = {"epochs": np.arange(1, 4)[1], "lr": np.float32(0.5), "seed": np.int64(3), "ema": np.float64(0.5)}
    settings = TrainSettings(**given, model_arguments={"channels": np.int64(8), "sizes": np.arange(2)})
    assert settings.model_arguments == {"channels": 8, "sizes": [0, 1]}
    assert {type(getattr(settings, name)) for name in given} == {int, float}
    assert json.loads(json.dumps(settings.decisive())) == settings.decisive()
