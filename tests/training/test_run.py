"""A folder holds one run, which one process works in; ranks of several processes; settings."""

import json
import math
import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import numpy as np
import pytest
import yaml
from lightning_fabric.plugins.environments import LightningEnvironment
from pytorch_lightning import Trainer
from pytorch_lightning.utilities.rank_zero import rank_zero_only

from gtx.base.errors import InputError
from gtx.base.files import CLAIMS, LOCK, claim, differences, discard, lock_folder
from gtx.cli import main
from gtx.tasks import Regression
from gtx.training import TrainSettings
from gtx.training.processes import distributed_group, is_main_process, machines
from gtx.training.run import RunFolder, collect_run_config
from tests.tables import XTB9, write, write_molecules

from .task import train


def config(rows: int = 10, **settings: object) -> dict:
    return collect_run_config(Regression(["y"]), TrainSettings(**settings), {"data": {"rows": rows}})


def begin(run: RunFolder, config: dict) -> None:
    """As if one epoch had been trained."""
    run.open(config)
    run.member(0).mkdir(parents=True)
    (run.member(0) / "last.ckpt").write_text("x")


def test_of_many_differences_the_first_are_named() -> None:
    settings = ("batch_molecules", "clip", "folds", "epochs", "lr", "patience", "seed")
    told = differences(config(), config(**dict.fromkeys(settings, 7)))
    assert len(told) == 6 and told[0].startswith("settings.batch_molecules (") and told[-1] == "and 2 more"


def test_the_same_run_goes_on_and_another_is_refused(tmp_path) -> None:
    run = RunFolder(tmp_path)
    begin(run, config())
    assert run.open(config(progress=False, threads=2))  # harmless
    with pytest.raises(InputError) as error:
        run.open(config(rows=11, lr=0.5))
    assert "data.rows (10 there, 11 now)" in str(error.value)
    assert "settings.lr (0.001 there, 0.5 now)" in str(error.value)
    assert "epochs" not in str(error.value) and "\n" not in str(error.value)


def test_entries_that_come_or_go_are_named(tmp_path) -> None:
    run = RunFolder(tmp_path)
    begin(run, {"a": 1, "b": {"c": [1, 2]}})
    run.open({"a": 1, "b": {"c": (1, 2)}})
    with pytest.raises(InputError, match=r"b\.c \(\[1, 2\] there, absent now\); d \(absent there, 5 now\)"):
        run.open({"a": 1, "d": 5})
    for unchosen in (None, False, "none"):
        run.open({"a": 1, "b": {"c": [1, 2]}, "e": unchosen})  # an option that nobody chose
    with pytest.raises(InputError, match=r"a \(1 there, null now\)"):
        run.open({"a": None, "b": {"c": [1, 2]}})


def test_overwriting_removes_the_run_and_nothing_else(tmp_path) -> None:
    run = RunFolder(tmp_path)
    begin(run, config())
    (tmp_path / "thesis.tex").write_text("years of work")
    run.finish()
    run.open(config(lr=0.5), overwrite=True)
    assert not run.member(0).exists() and not run.finished
    assert (tmp_path / "thesis.tex").exists()


def test_what_never_trained_gives_way(tmp_path) -> None:
    run = RunFolder(tmp_path)
    assert not run.open(config(lr=1e9))
    run.member(0).mkdir(parents=True)
    assert not run.open(config())
    assert yaml.safe_load((tmp_path / "config.yaml").read_text())["settings"]["lr"] == 1e-3


def test_a_broken_config_is_named(tmp_path) -> None:
    claim(tmp_path, ("config.yaml",))
    (tmp_path / "config.yaml").write_text("a: [1,")
    with pytest.raises(InputError, match=r"config\.yaml cannot be read"):
        RunFolder(tmp_path).open(config())


def test_members_of_an_unknown_run_are_not_taken_over(tmp_path) -> None:
    claim(tmp_path, ("members",))
    (tmp_path / "members" / "0").mkdir(parents=True)
    (tmp_path / "members" / "0" / "trained.pt").touch()
    with pytest.raises(InputError, match=r"no config\.yaml"):
        RunFolder(tmp_path).open(config())


LAUNCHED = [
    {},
    {"SLURM_PROCID": "1", "SLURM_NTASKS": "2", "SLURM_NTASKS_PER_NODE": "2", "SLURM_JOB_NAME": "bash"},  # interactive
    {"SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NODEID": "0", "SLURM_NTASKS": "1"},  # one task
    {
        **{"SLURM_PROCID": "1", "SLURM_LOCALID": "1", "SLURM_NODEID": "0", "SLURM_JOB_NAME": "train"},
        **{"SLURM_NTASKS": "2", "SLURM_NTASKS_PER_NODE": "2"},
    },
    {"LOCAL_RANK": "1"},
    {"TORCHELASTIC_RUN_ID": "x", "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "2", "SLURM_PROCID": "3"},
    {"TORCHELASTIC_RUN_ID": "x", "RANK": "2", "LOCAL_RANK": "0", "WORLD_SIZE": "4"},
]


@pytest.mark.parametrize("named", LAUNCHED, ids=lambda named: " ".join(f"{k}={v}" for k, v in named.items()) or "none")
def test_the_main_process_is_that_of_lightning(named: dict[str, str], monkeypatch) -> None:
    for name in {name for given in LAUNCHED for name in given} | {"GROUP_RANK"}:
        monkeypatch.delenv(name, raising=False)
    for name, value in named.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(rank_zero_only, "rank", 0, raising=False)  # which the trainer sets, for all tests that follow
    trainer = Trainer(accelerator="cpu", devices=2, strategy="ddp", num_nodes=2, logger=False)
    launcher = trainer.strategy.cluster_environment
    own = isinstance(launcher, LightningEnvironment)  # numbers its processes only when it trains
    rank = launcher.node_rank() * 2 + launcher.local_rank() if own else launcher.global_rank()
    assert is_main_process() == (rank == 0)


def test_tasks_that_lightning_cannot_number_are_an_error(monkeypatch) -> None:
    monkeypatch.setenv("SLURM_NTASKS", "2")
    with pytest.raises(InputError, match="Use `--ntasks-per-node=2` instead"):
        is_main_process()


# --- Two trainings never share a folder, and a killed one leaves it free.


REFUSED = "another process works in {}: wait until it has ended, or choose another folder"


@contextmanager
def elsewhere(folder: Path) -> Iterator[None]:
    """Somebody else trains in the folder within."""
    begun, ended = Event(), Event()

    def hold() -> None:
        with lock_folder(folder):
            begun.set()
            ended.wait(60)

    thread = Thread(target=hold)
    thread.start()
    assert begun.wait(60)
    try:
        yield
    finally:
        ended.set()
        thread.join()


@pytest.mark.parametrize("command", ["train", "tune"])
def test_a_command_is_refused_at_once(command: str, tmp_path, capsys) -> None:
    with elsewhere(tmp_path):
        assert main([command, str(XTB9), "--target-columns=gap", "--overwrite", f"--out={tmp_path}"]) == 2
        assert capsys.readouterr() == ("", f"gtx: {REFUSED.format(tmp_path)}\n")
        assert [file.name for file in tmp_path.iterdir()] == [LOCK]


def test_fit_is_refused_and_then_not(tmp_path) -> None:
    with elsewhere(tmp_path), pytest.raises(InputError) as error:
        train(tmp_path, epochs=1)
    assert str(error.value) == REFUSED.format(tmp_path)
    with lock_folder(tmp_path):  # whoever holds it may enter again
        train(tmp_path, epochs=1)
        with elsewhere(tmp_path / "other"):
            pass
    assert not (tmp_path / LOCK).exists()


def test_a_process_that_was_killed_holds_nothing(tmp_path) -> None:
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        held = lock_folder(tmp_path)
        held.__enter__()
        os.write(writing, b"x")
        signal.pause()
    try:
        assert os.read(reading, 1) == b"x"
        with pytest.raises(InputError), lock_folder(tmp_path):
            pass
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert (tmp_path / LOCK).exists()
    with lock_folder(tmp_path):
        pass
    assert not list(tmp_path.iterdir())


def test_a_folder_that_nothing_was_put_into_is_removed(tmp_path) -> None:
    with pytest.raises(KeyError), lock_folder(tmp_path / "new"):
        raise KeyError
    assert not (tmp_path / "new").exists()
    with lock_folder(tmp_path / "new"):
        (tmp_path / "new" / "file").touch()
    assert (tmp_path / "new" / "file").exists()


def test_a_file_is_no_folder(tmp_path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="file is a file; expected a folder"), lock_folder(tmp_path / "file"):
        pass


def test_what_gtx_did_not_write_is_refused_and_stays(tmp_path) -> None:
    (tmp_path / "config.yaml").write_text("mine")
    (tmp_path / "members").mkdir()
    with pytest.raises(InputError, match=r"config\.yaml exists, and gtx did not write it: move it, or"):
        claim(tmp_path, ("members", "config.yaml"))
    assert not (tmp_path / CLAIMS).exists()
    (tmp_path / "config.yaml").rename(tmp_path / "notes.md")
    (tmp_path / "members").rename(tmp_path / "best")
    claim(tmp_path, ("members", "config.yaml"))
    (tmp_path / "config.yaml").write_text("gtx's")
    (tmp_path / "members" / "0").mkdir(parents=True)
    claim(tmp_path, ("config.yaml", "model.gtx"))  # again, and one more
    (tmp_path / "model.gtx").symlink_to(tmp_path / "notes.md")
    discard(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [CLAIMS, "best", "notes.md"]
    for damage in ('["../best"]', '[""]', "[", "{}", "[1]"):
        (tmp_path / CLAIMS).write_text(damage)
        with pytest.raises(InputError, match="is damaged: choose another folder"):
            discard(tmp_path)


@pytest.mark.parametrize("command", ["train", "tune", "benchmark"])
def test_what_another_command_wrote_is_refused_and_stays(command: str, tmp_path, capsys) -> None:
    holds = {"config.yaml": "a training run", "study.yaml": "a study of gtx tune", "splits": "a gtx benchmark"}
    own = {"train": "config.yaml", "tune": "study.yaml", "benchmark": "splits"}[command]
    for name in holds.keys() - {own}:
        out = tmp_path / name.removesuffix(".yaml")
        claim(out, [name])
        (out / name).write_text("gtx's")
        assert main([command, str(XTB9), "--target-columns=gap", "--overwrite", f"--out={out}"]) == 2
        assert f"gtx: {out} holds {holds[name]}: choose another folder" in capsys.readouterr().err
        assert sorted(path.name for path in out.iterdir()) == [CLAIMS, name]


@pytest.mark.parametrize(
    ("command", "file"), [("train", "metrics.json"), ("train", "predictions-val.csv"), ("tune", "best")]
)
def test_a_command_takes_nothing_for_its_own(command: str, file: str, tmp_path, capsys) -> None:
    write(tmp_path / "val.csv", [["CCO", 1], ["CCN", 2]], ["smiles", "gap"])
    write_molecules(tmp_path / "data.csv", 40, "gap")
    mine = tmp_path / "run" / file / ("" if "." in file else "thesis.txt")
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    (tmp_path / "run" / "predictions-2024.csv").write_text("mine too")
    words = [str(tmp_path / "data.csv"), "--target-columns=gap", f"--out={tmp_path / 'run'}", "--overwrite"]
    words += [f"--val={tmp_path / 'val.csv'}"] if file.startswith("pred") else []
    assert main([command, *words]) == 2
    line = f"gtx: {tmp_path / 'run' / file} exists, and gtx did not write it: move it, or choose another folder\n"
    assert capsys.readouterr().err.endswith(line)
    left = sorted(path for path in (tmp_path / "run").rglob("*") if path.is_file() and path.name != CLAIMS)
    assert [path for path in left if "cache" not in path.parts or file == "cache"] == sorted(
        [mine, tmp_path / "run" / "predictions-2024.csv"]
    )
    assert mine.read_text() == "mine"


@pytest.mark.parametrize("command", ["train", "benchmark", "tune"])
def test_a_run_is_not_written_over_its_own_table(command: str, tmp_path, capsys) -> None:
    table = tmp_path / ("trials.csv" if command == "tune" else "predictions.csv")
    claim(tmp_path, [table.name])  # an earlier run wrote it
    before = write_molecules(table, 40, "gap").read_text()
    assert main([command, str(table), "--target-columns=gap", f"--out={tmp_path}", "--overwrite"]) == 2
    assert f"cannot write {table}: it is read as input" in capsys.readouterr().err and table.read_text() == before


# --- What torchrun says of several processes; how they train together is in test_distributed.py.


TORCHRUN = {"TORCHELASTIC_RUN_ID": "x", "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "8", "GROUP_WORLD_SIZE": "2"}


def test_torchrun_says_how_many_machines_there_are(monkeypatch) -> None:
    assert machines() == 1 and TrainSettings().resolve(5, machines()).num_nodes is None
    assert TrainSettings(num_nodes=1).resolve(5, machines()).num_nodes is None  # as in a config
    for name, value in TORCHRUN.items():
        monkeypatch.setenv(name, value)
    assert machines() == 2 and TrainSettings().resolve(5, machines()).num_nodes == 2
    assert TrainSettings(num_nodes=3).resolve(5, machines()).num_nodes == 3


def test_restarts_that_would_fail_are_refused(monkeypatch) -> None:
    for name, value in TORCHRUN.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TORCHELASTIC_MAX_RESTARTS", "2")
    monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", "True")
    with (
        pytest.raises(InputError, match="--max-restarts 2 needs TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1"),
        distributed_group(),
    ):
        pass


LOST = "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:1234"


def test_a_process_that_lightning_started_leaves_without_a_word_when_the_main_one_has(monkeypatch) -> None:
    with (
        pytest.raises(InputError, match=r"another of the processes .* has ended .*Connection closed"),
        distributed_group(),
    ):
        raise RuntimeError(LOST)
    monkeypatch.setenv("LOCAL_RANK", "1")
    with pytest.raises(SystemExit) as left, distributed_group():
        raise RuntimeError(LOST)
    assert left.value.code == 1
    with pytest.raises(RuntimeError, match="something else"), distributed_group():
        raise RuntimeError("something else")


def test_a_mistake_in_the_words_is_said_once(monkeypatch, capsys) -> None:
    for name, value in TORCHRUN.items():
        monkeypatch.setenv(name, value)
    for rank, said in (("0", "gtx: "), ("1", "")):
        monkeypatch.setenv("RANK", rank)
        assert main(["train", "t.csv", "--epochz", "3"]) == 2
        assert capsys.readouterr().err[:5] == said


# --- Settings say what they are and refuse what cannot be.


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
