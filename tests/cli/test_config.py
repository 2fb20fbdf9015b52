"""Files of options: what they say, what the command line says over it, and what is wrong with them."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from gtx.base.errors import InputError
from gtx.cli import load_command

CONFIG = """
table: data.csv
target_columns: [y, z]
split-sizes: [0.6, 0.2, 0.2]
out: run
epochs: 40
lr: 3e-4
blend: no        # a word here, as on the command line, and not YAML's false
coordinates: true
baselines: false
model_arguments: {channels: 96, encodings: [bonds, path], cutoff: 1e-1}
rates: {all: 0.1, head: 1}
from: foundation
seed:
"""


def read(words: list[str], config: str) -> Namespace:
    Path("options.yaml").write_text(config)
    return load_command("train").parse([*words, "--config", "options.yaml"])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_file_says_what_words_would() -> None:
    given = read([], CONFIG)
    words = "data.csv --target-columns y z --split-sizes 0.6 0.2 0.2 --out run --epochs 40 --lr 3e-4"
    words += " --blend no --coordinates --no-baselines --rates all=0.1 head=1"
    words += " --model-arguments channels=96 encodings=[bonds,path] cutoff=0.1"
    other = load_command("train").parse([*words.split(), "--from", "foundation"])
    assert given.chosen == other.chosen | {"config"} and "seed" not in given.chosen
    assert vars(given) | {"config": None, "chosen": other.chosen} == vars(other)


def test_the_command_line_wins() -> None:
    given = read(
        ["other.csv", "--epochs=3", "--target-columns", "w", "--baselines", "--model-arguments", "channels=32"], CONFIG
    )
    assert (given.data, given.epochs, given.target_columns, given.baselines) == ("other.csv", 3, ["w"], True)
    assert given.model_arguments == {"channels": 32, "encodings": ["bonds", "path"], "cutoff": 0.1}
    assert given.lr == 3e-4 and given.out == "run"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("epoch: 3", "options.yaml: gtx train has no option 'epoch'; did you mean 'epochs'?"),
        ("epochs: many", "options.yaml: epochs: expected a whole number, got 'many'"),
        ("coordinates: perhaps", "options.yaml: coordinates: expected true or false, got 'perhaps'"),
        (
            "logger: os.abort",
            "options.yaml: logger: expected one of 'csv', 'tensorboard', 'wandb' or 'mlflow', got 'os.abort'",
        ),
        ("epochs", "--config options.yaml: expected options by name, such as epochs: 40"),
        ("a: [", "--config options.yaml is no YAML"),
        ("settings: {}\nfeaturiser: {}", "notes of a run to know it again, not a file of options"),
    ],
)
def test_what_is_wrong_is_one_line(config: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        read(["data.csv", "--target-columns", "y", "--out", "run"], config)
    assert message in str(error.value) and "\n" not in str(error.value)
