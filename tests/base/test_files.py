"""A file is whole or not there, whatever happens while it is written."""

import errno
import os

import pytest

from gtx.base.files import atomic_file, write_text


def test_takes_its_name_when_all_of_it_has_reached_the_disk(tmp_path, monkeypatch) -> None:
    file, synced = tmp_path / "a" / "b.txt", []
    sync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda number: synced.append((os.fstat(number), file.exists())) or sync(number))
    with atomic_file(file, "w") as opened:
        opened.write("ä\r\n")
    assert file.read_bytes() == "ä\r\n".encode() and list(file.parent.iterdir()) == [file]
    ((state, was_there),) = synced
    assert state.st_ino == file.stat().st_ino and state.st_size == 4 and not was_there


def test_two_threads_may_write_one_file(tmp_path) -> None:
    file = tmp_path / "b.txt"
    with atomic_file(file, "w") as first:  # of another thread: the number of the process is the same
        first.write("all of the first")
        write_text(file, "second")
        assert file.read_text() == "second"
    assert file.read_text() == "all of the first" and list(tmp_path.iterdir()) == [file]


def test_an_error_leaves_what_was_there(tmp_path) -> None:
    file = tmp_path / "b.txt"
    write_text(file, "old")
    with pytest.raises(KeyboardInterrupt), atomic_file(file, "w") as opened:
        opened.write("new")
        raise KeyboardInterrupt
    assert file.read_text() == "old" and list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("when", ["write", "fsync"])
def test_a_full_disk_is_told_of_the_file(when: str, tmp_path, monkeypatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    if when == "fsync":
        monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError) as error, atomic_file(tmp_path / "c") as opened:
        opened.write(b"half")
        if when == "write":
            full()
    assert (error.value.errno, error.value.filename) == (errno.ENOSPC, str(tmp_path / "c"))
    assert not list(tmp_path.iterdir())


def test_a_link_stays_one_and_others_may_read(tmp_path) -> None:
    (tmp_path / "real").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "real" / "file")
    before = os.umask(0o022)
    try:
        write_text(link, "x")
    finally:
        os.umask(before)
    assert link.is_symlink() and (tmp_path / "real" / "file").read_text() == "x"
    assert (tmp_path / "real" / "file").stat().st_mode & 0o777 == 0o644
