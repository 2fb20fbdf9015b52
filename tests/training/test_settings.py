"""Settings say what they are and refuse what cannot be."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import fields

import pytest

from gtx.errors import InputError
from gtx.training import TrainSettings


def test_every_option_has_help() -> None:
    assert all(f.metadata["help"].endswith(".") for f in fields(TrainSettings))


def test_decisive_options_are_plain_and_leave_out_the_harmless() -> None:
    decisive = TrainSettings(model_arguments={"layers": 3}).decisive()
    assert json.loads(json.dumps(decisive)) == decisive
    assert decisive["model_arguments"] == {"layers": 3} and "lr" in decisive
    assert not decisive.keys() & {"progress", "threads", "logger", "logger_arguments"}


@pytest.mark.parametrize(
    "name, value", [("epochs", 0), ("epochs", "two"), ("ema", 1.0), ("lr", -1e-3), ("warmup", 1.5), ("threads", 0)]
)
def test_values_that_cannot_be_are_named(name: str, value: float | str) -> None:
    with pytest.raises(InputError, match=f"{name}: .* got {value!r}"):
        TrainSettings(**{name: value})


def test_epochs_are_settled_by_the_task_unless_asked_for() -> None:
    assert TrainSettings().settled(20).epochs == 20 and TrainSettings(epochs=3).settled(20).epochs == 3


def test_reading_settings_does_not_wait_for_torch() -> None:
    code = "import sys, gtx.tasks, gtx.training; gtx.training.TrainSettings(); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
