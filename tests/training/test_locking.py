"""Two trainings never share a folder, and a killed one leaves it free."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest

from gtx.cli import main
from gtx.errors import InputError
from gtx.files import CLAIMS, LOCK, claim, discard, locked
from gtx.training.ranks import lock_output_folder
from tests.tables import XTB9, molecules, write

from .task import train

REFUSED = "another process works in {}: wait until it has ended, or choose another --out"


@contextmanager
def elsewhere(folder: Path) -> Iterator[None]:
    """Somebody else trains in the folder within."""
    begun, ended = Event(), Event()

    def hold() -> None:
        with locked(folder):
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


@pytest.mark.parametrize("command", ["train", "demo"])
def test_a_command_is_refused_at_once(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = [str(XTB9), "--target-columns=gap", "--overwrite"] if command != "demo" else []
    with elsewhere(tmp_path):
        assert main([command, *table, f"--out={tmp_path}"]) == 2
        assert capsys.readouterr() == ("", f"gtx: {REFUSED.format(tmp_path)}\n")
        assert [file.name for file in tmp_path.iterdir()] == [LOCK]


def test_fit_is_refused_and_then_not(tmp_path: Path) -> None:
    with elsewhere(tmp_path), pytest.raises(InputError) as error:
        train(tmp_path, epochs=1)
    assert str(error.value) == REFUSED.format(tmp_path)
    with locked(tmp_path):  # whoever holds it may enter again
        train(tmp_path, epochs=1)
        with elsewhere(tmp_path / "other"):
            pass
    assert not (tmp_path / LOCK).exists()


def test_a_process_that_was_killed_holds_nothing(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        held = locked(tmp_path)
        held.__enter__()
        os.write(writing, b"x")
        signal.pause()
    try:
        assert os.read(reading, 1) == b"x"
        with pytest.raises(InputError), locked(tmp_path):
            pass
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert (tmp_path / LOCK).exists()
    with locked(tmp_path):
        pass
    assert not list(tmp_path.iterdir())


def test_a_folder_that_nothing_was_put_into_is_removed(tmp_path: Path) -> None:
    with pytest.raises(KeyError), locked(tmp_path / "new"):
        raise KeyError
    assert not (tmp_path / "new").exists()
    with locked(tmp_path / "new"):
        (tmp_path / "new" / "file").touch()
    assert (tmp_path / "new" / "file").exists()


def test_only_the_main_process_holds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with elsewhere(tmp_path):
        monkeypatch.setenv("LOCAL_RANK", "1")
        assert lock_output_folder("folder")(lambda folder: 7)(tmp_path) == 7


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="file is a file; --out must name a folder"), locked(tmp_path / "file"):
        pass


def test_what_gtx_did_not_write_is_refused_and_stays(tmp_path: Path) -> None:
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
        with pytest.raises(InputError, match="is damaged: choose another --out"):
            discard(tmp_path)


@pytest.mark.parametrize(
    ("command", "file"),
    [
        ("train", "metrics.json"),
        ("train", "predictions-val.csv"),
        ("tune", "best"),
    ],
)
def test_a_command_takes_nothing_for_its_own(
    command: str, file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "val.csv", [["CCO", 1], ["CCN", 2]], ["smiles", "gap"])
    write(tmp_path / "data.csv", molecules(40)[["smiles", "gap"]].to_numpy().tolist(), ["smiles", "gap"])
    mine = tmp_path / "run" / file / ("" if "." in file else "thesis.txt")
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    (tmp_path / "run" / "predictions-2024.csv").write_text("mine too")
    words = [str(tmp_path / "data.csv"), "--target-columns=gap", f"--out={tmp_path / 'run'}", "--overwrite"]
    words += [f"--val={tmp_path / 'val.csv'}"] if file.startswith("pred") else []
    assert main([command, *words]) == 2
    line = f"gtx: {tmp_path / 'run' / file} exists, and gtx did not write it: move it, or choose another --out\n"
    assert capsys.readouterr().err.endswith(line)
    left = sorted(path for path in (tmp_path / "run").rglob("*") if path.is_file() and path.name != CLAIMS)
    assert [path for path in left if "cache" not in path.parts or file == "cache"] == sorted(
        [mine, tmp_path / "run" / "predictions-2024.csv"]
    )
    assert mine.read_text() == "mine"
