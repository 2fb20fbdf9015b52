"""What torchrun says of several processes; how they train together is in test_distributed.py."""

from __future__ import annotations

import pytest

from gtx.cli import main
from gtx.errors import InputError
from gtx.training import TrainSettings, distributed_group
from gtx.training.ranks import machines

TORCHRUN = {"TORCHELASTIC_RUN_ID": "x", "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "8", "GROUP_WORLD_SIZE": "2"}


def test_torchrun_says_how_many_machines_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    assert machines() == 1 and TrainSettings().resolved(5).num_nodes is None
    assert TrainSettings(num_nodes=1).resolved(5).num_nodes is None  # as in the config of a run of one machine
    for name, value in TORCHRUN.items():
        monkeypatch.setenv(name, value)
    assert machines() == 2 and TrainSettings().resolved(5).num_nodes == 2
    assert TrainSettings(num_nodes=3).resolved(5).num_nodes == 3


def test_restarts_that_would_fail_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_process_that_lightning_started_leaves_without_a_word_when_the_main_one_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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


def test_a_mistake_in_the_words_is_said_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    for name, value in TORCHRUN.items():
        monkeypatch.setenv(name, value)
    for rank, said in (("0", "gtx: "), ("1", "")):
        monkeypatch.setenv("RANK", rank)
        assert main(["train", "t.csv", "--epochz", "3"]) == 2
        assert capsys.readouterr().err[:5] == said
