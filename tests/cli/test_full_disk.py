"""A disk that is full: one line, no half file, and the same command goes on once there is room."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gtx.cli import main
from tests.tables import TINY_TRAIN, molecules, write


@contextmanager
def room(kilobytes: int) -> Iterator[None]:
    """No file may be larger within; the system then fails a write as it does on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (kilobytes * 1024, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_training_goes_on_when_there_is_room_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = molecules(60)[["smiles", "gap"]].to_numpy().tolist()
    table, out = write(tmp_path / "data.csv", rows, ["smiles", "gap"]), tmp_path / "run"
    words = ["train", str(table), "--target-columns=gap", "--workers=0", f"--out={out}", *TINY_TRAIN]
    for kilobytes, file in ((1, "cache/*.safetensors"), (100, "members/0/last.ckpt")):
        with room(kilobytes):
            assert main(words) == 2
        said = capsys.readouterr().err.splitlines(keepends=True)[-1]
        named, reason = said.removeprefix("gtx: ").rsplit(": ", 1)
        assert Path(named).match(str(out / file)), said
        assert reason == "File too large; run the same command again to resume\n"
        assert not list(out.rglob("*.part"))
    assert main(words) == 0
