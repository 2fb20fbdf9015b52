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
from gtx.training.locking import locked
from tests.tables import XTB9

from .task import train

REFUSED = "another process trains in {}: wait until it has ended, or choose another --out"


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


@pytest.mark.parametrize("command", ["train", "benchmark", "demo"])
def test_a_command_is_refused_at_once(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = [str(XTB9), "--target-columns=gap", "--overwrite"] if command != "demo" else []
    with elsewhere(tmp_path):
        assert main([command, *table, f"--out={tmp_path}"]) == 2
        assert capsys.readouterr() == ("", f"gtx: {REFUSED.format(tmp_path)}\n")
        assert [file.name for file in tmp_path.iterdir()] == [".lock"]


def test_fit_is_refused_and_then_not(tmp_path: Path) -> None:
    with elsewhere(tmp_path), pytest.raises(InputError) as error:
        train(tmp_path, epochs=1)
    assert str(error.value) == REFUSED.format(tmp_path)
    with locked(tmp_path):  # whoever holds it may enter again
        train(tmp_path, epochs=1)
        with elsewhere(tmp_path / "other"):
            pass
    assert not (tmp_path / ".lock").exists()


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
    assert (tmp_path / ".lock").exists()
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
        with locked(tmp_path):
            pass


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="file is a file; --out must name a folder"), locked(tmp_path / "file"):
        pass
