"""Where compiled code is kept: for this user alone, whole, and not for ever."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from gtx import code_cache
from gtx.code_cache import cache_folder, find, keep


def test_the_folder_is_closed_to_others(tmp_path: Path) -> None:
    folder = cache_folder("compiled", tmp_path / "a" / "b")
    assert folder == tmp_path / "a" / "b" / "gtx" / "compiled"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    keep(folder, "sum", b"content", ".so")
    assert find(folder, "sum", ".so").read_bytes() == b"content"
    assert find(folder, "su", ".so") is None and find(folder, "sum") is None


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
def test_a_link_into_a_folder_of_others_is_seen_through(tmp_path: Path) -> None:
    (tmp_path / "open" / "own").mkdir(parents=True)
    (tmp_path / "gtx").mkdir()
    (tmp_path / "gtx" / "compiled").symlink_to(tmp_path / "open" / "own")
    os.chmod(tmp_path / "open", 0o777)
    assert cache_folder("compiled", tmp_path) is None
    os.chmod(tmp_path / "open", 0o1777)  # as /tmp: nobody renames what is not theirs
    code_cache._private.cache_clear()
    assert cache_folder("compiled", tmp_path) == tmp_path / "open" / "own"


def test_what_is_damaged_or_no_file_is_no_find(tmp_path: Path) -> None:
    keep(tmp_path, "sum", b"content")
    (file,) = tmp_path.iterdir()
    file.write_bytes(b"contenT")
    assert find(tmp_path, "sum") is None and not file.exists()
    keep(tmp_path, "sum", b"content")
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    assert find(tmp_path, "sum") is None


def test_what_nobody_used_for_long_is_removed(tmp_path: Path) -> None:
    for name in ("used", "unused"):
        keep(tmp_path, name, b"content")
    (tmp_path / "partial-x").mkdir()  # what a killed process left
    (tmp_path / "partial-x" / "content").write_bytes(b"cont")
    for file in tmp_path.iterdir():
        os.utime(file, (1, 1))
    find(tmp_path, "used")
    keep(tmp_path, "new", b"content")
    assert sorted(file.name.partition("-")[0] for file in tmp_path.iterdir()) == ["new", "used"]


def test_what_cannot_be_written_leaves_nothing_but_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    keep(tmp_path, "sum", b"content")
    assert not list(tmp_path.iterdir())
    assert f"cannot be kept in {tmp_path}: No space left on device" in caplog.text
