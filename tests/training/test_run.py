"""A folder holds one run: another in its place is refused, by name, unless it is told to overwrite."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from lightning_fabric.plugins.environments import LightningEnvironment
from pytorch_lightning import Trainer
from pytorch_lightning.utilities.rank_zero import rank_zero_only

from gtx.errors import InputError
from gtx.files import claim, differences
from gtx.tasks import Regression
from gtx.training import RunFolder, TrainSettings, collect_run_config, is_main_process


def config(rows: int = 10, **settings: object) -> dict:
    return collect_run_config(Regression(["y"]), TrainSettings(**settings), {"data": {"rows": rows}})


def begin(run: RunFolder, config: dict) -> None:
    """As if one epoch had been trained."""
    run.open(config)
    run.member(0).mkdir(parents=True)
    (run.member(0) / "last.ckpt").write_text("x")


def test_of_many_differences_the_first_are_named() -> None:
    settings = ("batch_molecules", "clip", "ensemble", "epochs", "lr", "patience", "seed")
    told = differences(config(), config(**dict.fromkeys(settings, 7)))
    assert len(told) == 6 and told[0].startswith("settings.batch_molecules (") and told[-1] == "and 2 more"


def test_the_same_run_goes_on_and_another_is_refused(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    begin(run, config())
    assert run.open(config(progress=False, threads=2))  # harmless
    with pytest.raises(InputError) as error:
        run.open(config(rows=11, lr=0.5))
    assert "data.rows (10 there, 11 now)" in str(error.value)
    assert "settings.lr (0.001 there, 0.5 now)" in str(error.value)
    assert "epochs" not in str(error.value) and "\n" not in str(error.value)


def test_entries_that_come_or_go_are_named(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    begin(run, {"a": 1, "b": {"c": [1, 2]}})
    run.open({"a": 1, "b": {"c": (1, 2)}})
    with pytest.raises(InputError, match=r"b\.c \(\[1, 2\] there, absent now\); d \(absent there, 5 now\)"):
        run.open({"a": 1, "d": 5})
    for unchosen in (None, False, "none"):
        run.open({"a": 1, "b": {"c": [1, 2]}, "e": unchosen})  # an option that nobody chose
    with pytest.raises(InputError, match=r"a \(1 there, null now\)"):
        run.open({"a": None, "b": {"c": [1, 2]}})


def test_overwriting_removes_the_run_and_nothing_else(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    begin(run, config())
    (tmp_path / "thesis.tex").write_text("years of work")
    run.finish()
    run.open(config(lr=0.5), overwrite=True)
    assert not run.member(0).exists() and not run.finished
    assert (tmp_path / "thesis.tex").exists()


def test_what_never_trained_gives_way(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    assert not run.open(config(lr=1e9))
    run.member(0).mkdir(parents=True)
    assert not run.open(config())
    assert yaml.safe_load((tmp_path / "config.yaml").read_text())["settings"]["lr"] == 1e-3


def test_a_broken_config_is_named(tmp_path: Path) -> None:
    claim(tmp_path, ("config.yaml",))
    (tmp_path / "config.yaml").write_text("a: [1,")
    with pytest.raises(InputError, match=r"config\.yaml cannot be read"):
        RunFolder(tmp_path).open(config())


def test_members_of_an_unknown_run_are_not_taken_over(tmp_path: Path) -> None:
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
def test_the_main_process_is_that_of_lightning(named: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_tasks_that_lightning_cannot_number_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_NTASKS", "2")
    with pytest.raises(InputError, match="Use `--ntasks-per-node=2` instead"):
        is_main_process()


def test_only_the_main_process_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_main_process()
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert not is_main_process()
    RunFolder(tmp_path).open(config(), overwrite=True)
    assert not list(tmp_path.iterdir())
