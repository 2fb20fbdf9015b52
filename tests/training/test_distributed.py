"""Two processes on the CPU (DDP over gloo) train one model; torchrun or Lightning starts them, and a killed one."""

import json
import signal
from functools import partial
from pathlib import Path

import pytest
import torch

from tests.tables import read

from .distributed import Status, command, gtx_train, lightning_train, processes, ranks, torchrun

pytestmark = pytest.mark.slow

WRITTEN = [".gtx.json", "cache", "config.yaml", "members", "metrics.json", "model.gtx", "predictions.csv", "split.csv"]
UNTIMED = {"seconds": 0, "cpu_seconds": 0}


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("ranks")


@pytest.fixture(scope="module")
def whole(base: Path) -> list[Status]:
    """A run of two machines that nothing happened to, in the folder `whole`."""
    train = partial(gtx_train, command(base / "whole"))
    return ranks(base, train, train)


def history(out: Path) -> list[dict]:
    return [row | UNTIMED for row in read(out / "members" / "0" / "log.csv")]


def seen(out: Path) -> list[list[str]]:
    return [out.with_suffix(f".seen-{rank}").read_text().split() for rank in "01"]


def assert_same_run(one: Path, other: Path) -> None:
    assert history(one) == history(other)
    weights, again = (torch.load(out / "members" / "0" / "trained.pt")["weights"] for out in (one, other))
    assert weights.keys() == again.keys()
    assert all(torch.equal(weight, again[name]) for name, weight in weights.items())


def test_the_first_rank_alone_writes_and_speaks(whole: list[Status], base: Path) -> None:
    (first, said), silent = whole
    assert first == 0 and silent == (0, "") and said.count("model.gtx") == 2 and "Traceback" not in said
    assert sorted(path.name for path in (base / "whole").iterdir()) == WRITTEN
    assert sorted(path.name for path in (base / "whole" / "members" / "0").iterdir()) == ["log.csv", "trained.pt"]
    assert [row["epoch"] for row in history(base / "whole")] == ["1", "2"]


def test_every_rank_gets_as_many_batches(whole: list[Status], base: Path) -> None:
    first, second = seen(base / "whole")
    assert first == second == [f"{epoch}.{batch}" for epoch in range(2) for batch in range(3)]  # of 6


def test_the_ranks_hold_one_copy_of_the_training_molecules(whole: list[Status], base: Path) -> None:
    files = [(base / "whole").with_suffix(f".mapped-{rank}").read_text().split() for rank in "01"]
    first, second = ([name for name in mapped if name.startswith("train-")] for mapped in files)
    assert first == second and len(first) == 1


def test_validation_saw_every_row(whole: list[Status], base: Path) -> None:
    judged = json.loads((base / "whole" / "metrics.json").read_text())["val"]["rmse"]  # by one process
    assert float(history(base / "whole")[-1]["val_rmse"]) == pytest.approx(judged, rel=1e-4)


def test_torchrun_starts_again_what_was_killed(whole: list[Status], base: Path) -> None:
    out = base / "restarted"
    agents = torchrun(base, 1, gtx_train, command(out), base / "died")
    assert (base / "died").exists() and [status for status, _ in agents] == [0, 0]
    assert_same_run(base / "whole", out)
    assert seen(out)[1] == ["0.0", "0.1", "0.2", "1.0", "1.1", *seen(base / "whole")[1][3:]]  # from its second epoch on


def test_the_same_command_goes_on_where_a_rank_was_killed(whole: list[Status], base: Path) -> None:
    out = base / "killed"
    train = partial(gtx_train, command(out), base / "died too")
    (status, said), killed = ranks(base, train, train)
    assert status == 2 and killed == (-signal.SIGKILL, "")
    assert [line[:5] for line in said.splitlines()][-1] == "gtx: " and said.count("gtx: ") == 1
    assert "another of the processes that train together has ended" in said and "Traceback" not in said
    assert [status for status, _ in ranks(base, train, train)] == [0, 0]
    assert_same_run(base / "whole", out)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--weight-column", "z"), "there is no column 'z'"),  # every rank finds it
        (("--out", "{whole}", "--lr", "0.1"), "settings.lr (0.001 there, 0.1 now)"),  # the first one
    ],
)
def test_an_error_ends_all_ranks_with_one_message(more, message, whole, base) -> None:
    words = command(base / "wrong", *(word.format(whole=base / "whole") for word in more))
    ended = ranks(base, partial(gtx_train, words), partial(gtx_train, words))
    assert sorted(status for status, _ in ended) == [1, 2]
    (line,) = (line for _, said in ended for line in said.splitlines() if line.startswith("gtx: "))
    assert message in line and "Traceback" not in "".join(said for _, said in ended)


def test_an_error_of_another_rank_than_the_first_is_told(base: Path) -> None:
    words = [word for word in command(base / "missing") if word not in ("--split-column", "part")]
    elsewhere = [*words, "--test", "not-on-this-machine.csv"]
    ended = ranks(base, partial(gtx_train, words), partial(gtx_train, elsewhere))
    assert sorted(status for status, _ in ended) == [1, 2]
    assert "".join(said for _, said in ended).count("gtx: ") == 1 and "not-on-this-machine.csv" in ended[1][1]


def test_lightning_starts_the_second_and_sigterm_ends_both(base: Path) -> None:
    words = command(base / "ended", "--devices", "2", "--folds", "2")
    ((status, said),) = processes(base, partial(lightning_train, words, 2 * 3 + 2))
    assert status == 143 and "Traceback" not in said and said.count("gtx: ") == 1
    assert "gtx: terminated; run the same command again to resume" in said
    assert (base / "ended" / "members" / "0" / "trained.pt").exists()  # so it was the second that was ended
    ended = ranks(base, partial(gtx_train, words), partial(gtx_train, words), devices=2)  # by torchrun on one machine
    assert [status for status, _ in ended] == [0, 0]
    assert "member 1/2 epoch" not in ended[0][1] and "member 2/2 epoch" in ended[0][1]
