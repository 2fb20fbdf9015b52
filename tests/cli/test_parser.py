"""Options as they are read, what they ask of the data and of training, and what a wrong one says."""

import re
import sys
from argparse import Namespace
from pathlib import Path

import pytest

from gtx.base.errors import InputError
from gtx.cli import list_commands, load_command, main
from gtx.cli.options import PARTS, settings_from
from gtx.cli.parser import Option, first_type
from gtx.data import SPLIT_METHODS
from gtx.data.public_datasets import PUBLIC_DATASETS
from gtx.settings import option_fields
from gtx.settings.tasks import TASKS
from gtx.tasks import InferredTask, Regression, Task
from gtx.training import TrainSettings
from gtx.training_data import DataSettings
from tests.tables import GOLDEN

TRAIN = ["train", "data.csv", "--target-columns", "y", "--out", "run"]
PAIRS = "--model-arguments"
KEPT_INPUTS = "a model that is trained further keeps its inputs: of a row it reads a single molecule"


@pytest.fixture(autouse=True)
def data_csv(tmp_path, monkeypatch) -> None:
    """The working folder holds `data.csv`."""
    (tmp_path / "data.csv").write_text("smiles,y\nCCO,1\nCCN,2\n")
    monkeypatch.chdir(tmp_path)


def test_pairs() -> None:
    for words, value in (
        (["moments=128"], {"moments": 128}),
        (["moments=128", "dropout=0.1", "lr=1e-3"], {"moments": 128, "dropout": 0.1, "lr": 1e-3}),
        (["gated=true", "bias=False", "edges=bonds"], {"gated": True, "bias": False, "edges": "bonds"}),
        (["none=null"], {"none": None}),
        (["encodings=[bonds, path]", "steps=[1, 2]"], {"encodings": ["bonds", "path"], "steps": [1, 2]}),
        (
            ["channels=010", "at=1:30", "rate=.5", "steps=[010, a]"],
            {"channels": 10, "at": "1:30", "rate": 0.5, "steps": [10, "a"]},
        ),
        (["channels=1_6", "steps=[1_6]", 'a=["1", "b_1"]'], {"channels": "1_6", "steps": ["1_6"], "a": ["1", "b_1"]}),
        (["save_dir=s3://logs/a=b", "on=2026-01-01"], {"save_dir": "s3://logs/a=b", "on": "2026-01-01"}),
        (["layers=2", PAIRS, "channels=16"], {"channels": 16, "layers": 2}),
    ):
        assert load_command("train").parse([*TRAIN[1:], PAIRS, *words]).model_arguments == value


def test_names_of_targets_may_have_a_sign_of_equality() -> None:
    words = ["--target-weights", "k=1=2", "y=3"]
    assert load_command("train").parse([*TRAIN[1:], *words]).target_weights == {"k=1": 2, "y": 3}


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["trian", "x.csv"], "there is no command 'trian'; did you mean 'train'? (gtx --help)"),
        (["predict", "m.gtx", "CCO", "--sets"], "unknown option --sets (gtx predict --help)"),
        (["--verison"], "unknown option --verison; did you mean --version? (gtx --help)"),
        ([*TRAIN, "--epoch", "3"], "unknown option --epoch; did you mean --epochs? (gtx train --help)"),
        (["predict"], "the following arguments are required: MODEL, MOLECULES (gtx predict --help)"),
        ([*TRAIN, "--epochs"], "--epochs: expected one argument (gtx train --help)"),
        ([*TRAIN, "--epochs", "three"], "--epochs: expected a whole number, got 'three' (gtx train --help)"),
        ([*TRAIN, "--epochs", "1_6"], "--epochs: expected a number, got '1_6' (gtx train --help)"),
        ([*TRAIN, PAIRS, "channels=1_6"], "model.arguments.channels: expected a whole number, got '1_6'"),
        ([*TRAIN, "--target-weights", "y=1_6"], "--target-weights: expected a number, got '1_6' (gtx train --help)"),
        ([*TRAIN, "--blend", "kernl"], "--blend: expected one of 'kernel' or 'no', got 'kernl'; did you mean 'k"),
        ([*TRAIN, PAIRS, "moments"], "--model-arguments: expected name=value, such as layers=4, got 'moments'"),
        ([*TRAIN, PAIRS, "=3"], "--model-arguments: expected name=value, such as layers=4, got '=3'"),
        ([*TRAIN, PAIRS, "a=[1"], "--model-arguments: expected name=value, such as layers=4, got 'a=[1'"),
        ([*TRAIN, "--no-report=x"], "--report/--no-report: expected no value, got 'x' (gtx train --help)"),
        ([*TRAIN, "--config", "."], "--config .: Is a directory"),
        ([*TRAIN, "--smiles-column", "a", "--reaction-column", "b"], "--smiles-column and --reaction-column: give one"),
        ([*TRAIN, "--atom-order", "map"], "--atom-order is for lists of values of atoms or bonds, and this model has"),
        ([*TRAIN, "--feature-columns", "ph", "ph"], "feature column 'ph' is given twice"),
        ([*TRAIN, "--separate-encoders"], "separate encoders are for rows of several molecules: give --smiles-columns"),
        ([*TRAIN, "--smiles-columns", "a", "b", "--task=atoms"], "task atoms does not support several molecules a row"),
        ([*TRAIN, "--smiles-columns", "a", "b", "--from=foundation"], KEPT_INPUTS),
        ([*TRAIN, "--reaction-column=a", "--from=foundation"], KEPT_INPUTS),
        ([*TRAIN, "--reaction-mode", "reactant-products"], "--reaction-mode: expected one of 'reactants-"),
        ([*TRAIN, "--smiles-column=a", "--reaction-mode", "reactants-products"], "--reaction-mode is for reactions: g"),
        ([*TRAIN, "--smiles-column=a", "--agents"], "--agents is for reactions: give --reaction-column"),
        ([*TRAIN, "--out="], "--out: expected a name, got '' (gtx train --help)"),
        ([*TRAIN, "--molecule-features", "rdkit", "morgn"], "--molecule-features: expected one of 'morgan', "),
        (["info", "a.gtx", "b.gtx"], "unexpected: b.gtx (gtx info --help)"),
        ([*TRAIN, "--split-sizes", "80", "10", "10"], "split sizes 80 10 10 add up to 100; shares must add up to 1, "),
        ([*TRAIN, PAIRS, "momentz=8"], "the model cannot be made: the model standard has no argument 'momentz'; did"),
        ([*TRAIN, PAIRS, "channels=1000000"], "model standard would have 47,000,"),
        ([*TRAIN, PAIRS, "layers=100000"], "the model cannot be made: expected layers of at most 1,"),
        ([*TRAIN, PAIRS, "heads=1000000000"], "model.arguments.heads: expected a number of at most 1,"),
        ([*TRAIN, PAIRS, "dropout=inf"], "--model-arguments.dropout: expected finite numbers of at most 64"),
        ([*TRAIN, "--model", "bert"], "there is no model 'bert'; gtx has standard, transformer, gat, "),
        ([*TRAIN, "--accelerator=gpu"], "--accelerator: this machine has no GPU that torch can use"),
        ([*TRAIN, "--precision=3-true"], "Lightning cannot train so: "),
    ],
    ids=lambda value: " ".join(value[-2:]) if isinstance(value, list) else None,
)
def test_a_wrong_word_is_one_line_and_exit_2_before_any_table_is_read(words, line, capsys, monkeypatch) -> None:
    monkeypatch.setattr("torch.accelerator.is_available", lambda: False)
    Path("data.csv").write_text("no table")
    assert main(words) == 2
    said = capsys.readouterr()
    assert said.err.startswith(f"gtx: {line}") and said.err.count("\n") == 1 and not said.out


def test_without_what_a_command_needs_one_line_says_what_to_install(monkeypatch, capsys) -> None:
    monkeypatch.delitem(sys.modules, "gtx.serve.app", raising=False)
    tune = ["tune", "data.csv", "--target-columns=y", "--out=run"]
    for words, module, name in (tune, "optuna", "Optuna"), (["serve", str(GOLDEN / "mix.gtx")], "fastapi", "fastapi"):
        monkeypatch.setitem(sys.modules, module, None)
        assert main(words) == 2 and not Path("run").exists()
        install = f"gtx {words[0]} needs {name}: in the folder of gtx, pip install '.[{words[0]}]'"
        assert capsys.readouterr().err == f"gtx: {install}\n"


def test_words_may_stand_before_and_behind_options() -> None:
    given = load_command("predict").parse(["model.gtx", "CCO", "--device", "cpu", "CCN", "--", "-.smi"])
    assert (given.model, given.molecules, given.device) == ("model.gtx", ["CCO", "CCN", "-.smi"], "cpu")
    assert given.chosen == {"model", "molecules", "device"} and given.out == "-"


def test_gtx_shows_its_version_and_without_a_word_its_help(capsys) -> None:
    assert main(["--version"]) == 0 and capsys.readouterr().out == "gtx 0.1.0\n"
    assert main([]) == 0 and "gtx predict run/model.gtx molecules.csv" in capsys.readouterr().out


@pytest.mark.parametrize("command", list_commands())
def test_help_fits_a_page_and_all_of_it_names_every_option(command: str, capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    short, full = (shown([command, "--help", *more], capsys) for more in ([], ["all"]))
    assert len(short) <= 60 and max(map(len, short + full)) <= 80
    assert "example" in "".join(short[:6])  # before the options
    for option in load_command(command).options:
        for name in [option.flag or option.metavar, *off(option)]:
            assert re.search(rf"(?<![\w-]){name}(?![\w-])", "\n".join(full)), name
    assert (short != full) == any("--help all" in line for line in short) == (len(full) > 60)
    monkeypatch.setenv("COLUMNS", "1000")
    assert " ".join(full).split() == " ".join(shown([command, "--help", "all"], capsys)).split()  # no word is broken


@pytest.mark.parametrize("task", [task for task in TASKS if task != "molecule-atom-bond"])
def test_a_task_has_a_help_of_its_own(task: str, capsys) -> None:
    text = "\n".join(shown(["train", "--task", task, "--help"], capsys))
    every = {field.name for entry in TASKS.values() for field in option_fields(entry.options)}
    own = {field.name for field in option_fields(TASKS[task].options)}
    assert {name for name in every if re.search(rf"  --{name.replace('_', '-')}[ ,]", text)} == own


def off(option: Option) -> list[str]:
    """The spelling that turns off a switch that is on, or that gtx decides."""
    return [f"--no-{option.flag[2:]}"] if first_type(option.kind) is bool and option.default is not False else []


def shown(words: list[str], capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The lines of a help."""
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert stop.value.code == 0
    return capsys.readouterr().out.splitlines()


# --- Files of options: what they say, what the command line says over it, and what is wrong with them.

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


def read_config(words: list[str], config: str) -> Namespace:
    Path("options.yaml").write_text(config)
    return load_command("train").parse([*words, "--config", "options.yaml"])


def test_a_file_says_what_words_would() -> None:
    given = read_config([], CONFIG)
    words = "data.csv --target-columns y z --split-sizes 0.6 0.2 0.2 --out run --epochs 40 --lr 3e-4"
    words += " --blend no --coordinates --no-baselines --rates all=0.1 head=1"
    words += " --model-arguments channels=96 encodings=[bonds,path] cutoff=0.1"
    other = load_command("train").parse([*words.split(), "--from", "foundation"])
    assert given.chosen == other.chosen | {"config"} and "seed" not in given.chosen
    assert vars(given) | {"config": None, "chosen": other.chosen} == vars(other)


def test_the_command_line_wins() -> None:
    words = ["other.csv", "--epochs=3", "--target-columns", "w", "--baselines", "--model-arguments", "channels=32"]
    given = read_config(words, CONFIG)
    assert (given.data, given.epochs, given.target_columns, given.baselines) == ("other.csv", 3, ["w"], True)
    assert given.model_arguments == {"channels": 32, "encodings": ["bonds", "path"], "cutoff": 0.1}
    assert given.lr == 3e-4 and given.out == "run"


def test_what_is_wrong_is_one_line() -> None:
    for config, message in (
        ("epoch: 3", "options.yaml: gtx train has no option 'epoch'; did you mean 'epochs'?"),
        ("epochs: many", "options.yaml: epochs: expected a whole number, got 'many'"),
        ("coordinates: perhaps", "options.yaml: coordinates: expected true or false, got 'perhaps'"),
        ("logger: os.abort", "logger: expected one of 'csv', 'tensorboard', 'wandb' or 'mlflow', got 'os.abort'"),
        ("split_sizes: 0.8", "options.yaml: split_sizes: expected a list, got '0.8'"),
        ("split_sizes: [0.8, 0.2]", "options.yaml: split_sizes: expected 3 values, got 2"),
        ("reaction_columns: [before]", "options.yaml: reaction_columns: expected 2 values, got 1"),
        (
            "model_arguments: [layers: 4]",
            """options.yaml: model_arguments: expected name=value, such as layers=4, got "{'layers': '4'}\"""",
        ),
        ("epochs", "--config options.yaml: expected options by name, such as epochs: 40"),
        ("epochs: 3\nlr: 1\nepochs: 4", "--config options.yaml is no YAML: line 3: 'epochs' is there twice"),
        ("model_arguments:\n  layers: 3\n  layers: 3", "options.yaml is no YAML: line 3: 'layers' is there twice"),
        ("batch_pairs: 4\nbatch-pairs: 5", "--config options.yaml: 'batch_pairs' is there twice, with - and with _"),
        ("a: [", "--config options.yaml is no YAML"),
        ("settings: {}\nfeaturiser: {}", "notes of a run to know it again, not a file of options"),
    ):
        with pytest.raises(InputError) as error:
            read_config(["data.csv", "--target-columns", "y", "--out", "run"], config)
        assert message in str(error.value) and "\n" not in str(error.value)


# --- What options ask of the data and of training.


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
