"""What options ask of the data and of training, and how their help reads."""

import re

import pytest

from gtx.base.errors import InputError
from gtx.cli import load_command
from gtx.cli.options import PARTS, settings_from
from gtx.data import SPLIT_METHODS
from gtx.data.public_datasets import PUBLIC_DATASETS
from gtx.tasks import InferredTask, Regression, Task
from gtx.training import TrainSettings
from gtx.training_data import DataSettings

pytestmark = pytest.mark.usefixtures("data_csv")


def settings_of(command: str, *words: str) -> tuple[DataSettings, TrainSettings]:
    """The settings that the words ask for."""
    return settings_from(vars(load_command(command).parse(words)))


def read(command: str, *words: str) -> tuple[DataSettings, TrainSettings]:
    """The settings of a table of one target."""
    return settings_of(command, "data.csv", "--target-columns", "y", "--out", "run", *words)


@pytest.mark.parametrize("command", ["train", "benchmark"])
def test_models_of_several_seeds_may_share_a_split(command: str) -> None:
    def seeds(*words: str) -> tuple[int, int]:
        data, settings = read(command, *words)
        return data.seed, settings.seed

    assert seeds() == (0, 0) and seeds("--seed=3") == (3, 3)
    assert seeds("--seed=3", "--split-seed=0") == (0, 3) and seeds("--split-seed=7") == (7, 0)


def test_a_public_set_is_divided_as_it_says_unless_told_otherwise() -> None:
    for words, column, split in (
        ([], "split_random", "random"),
        (["--split=scaffold"], None, "scaffold"),
        (["--split=random"], None, "random"),
        (["--split-sizes", "0.7", "0.2", "0.1"], None, "random"),
        (["--split-seed=1"], None, "random"),
        (["--folds=5"], "split_random", "random"),
        (["--val=data.csv"], None, "random"),
        (["--split-column=split_scaffold"], "split_scaffold", "random"),
    ):
        data, _ = settings_of("train", "xtb9", "--out=run", *words)
        assert (data.split_column, data.split) == (column, split)


def test_without_options_the_settings_are_the_defaults() -> None:
    assert read("train") == (DataSettings("data.csv", ("y",)), TrainSettings())


def test_units_are_texts_of_targets() -> None:
    assert read("train", "--units", "y=1e-3 %")[0].units == {"y": "1e-3 %"}
    words = ("xtb9", "--target-columns", "gap", "dipole", "--out", "run", "--units", "gap=Eh")
    data, _ = settings_of("benchmark", *words)
    assert data.units == {"gap": "Eh", "dipole": PUBLIC_DATASETS["xtb9"].units["dipole"]}
    with pytest.raises(InputError, match=r"^units: 'Y' is not predicted; did you mean 'y'\?"):
        read("train", "--units", "Y=eV")
    with pytest.raises(InputError, match=r"^units: expected a text of 1 to 40 characters, .* for 'y', got ''$"):
        read("train", "--units", "y=")


def test_columns_of_atoms_and_bonds_make_their_tasks() -> None:
    def task(*words: str) -> Task:
        return settings_of("train", "data.csv", "--out=o", *words)[0].task

    assert vars(task("--atom-class-columns=site")) == vars(InferredTask("site", level="atom"))
    kinds = vars(InferredTask("kind", level="bond"))
    assert vars(task("--task=bond-classes", "--target-columns", "kind")) == kinds
    assert vars(task("--task=bond-classes", "--bond-class-columns=kind")) == kinds
    balanced = task("--atom-class-columns=site", "--class-weights=balanced")
    assert balanced.options == {"class_weights": "balanced"} and balanced.name == "atom-classes"
    found = task("--target-columns", "y", "--atom-class-columns=site", "--bond-target-columns=order", "--loss=mae")
    numbers, sites, orders = found.tasks
    assert (numbers, orders) == (Regression("y", loss="mae"), Regression("order", level="bond", loss="mae"))
    assert sites.name == "atom-classes" and sites.targets == ("site",)
    for words, reason in (
        (["--atom-class-columns=a", "--atom-target-columns=b"], "of atoms and one of bonds: got atoms, atom-classes"),
        (["--atom-class-columns=a", "--loss=mae"], "loss: atom-classes have no such option"),
        (["--atom-target-columns=a", "--task=classification"], "classes of atoms are --atom-class-columns, of bonds"),
    ):
        with pytest.raises(InputError, match=reason):
            task(*words)


def test_the_help_says_what_every_method_of_splitting_does() -> None:
    (split,) = (each for each in PARTS if each.name == "split")
    assert set(re.findall(r"(\w+): ", split.text)) - {"default"} == set(SPLIT_METHODS)
