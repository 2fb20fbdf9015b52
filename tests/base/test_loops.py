"""Compiled loops kept between runs: made anew where a file is damaged or the source has changed."""

import runpy
from collections.abc import Callable

import numba
import pytest

LOOP = """
from numba import njit
from gtx.base.loops import compiled_loop

@njit
def step(x):
    return x + 1

@compiled_loop
def loop(x):
    return step(x) * 10
"""


@pytest.fixture
def call(tmp_path, monkeypatch) -> Callable[[], int]:
    """A function that calls a compiled loop, made anew; numba's cache is below `tmp_path / "cache"`."""
    (tmp_path / "loops.py").write_text(LOOP)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    return lambda: runpy.run_path(str(tmp_path / "loops.py"))["loop"](1)


def test_a_damaged_file_or_a_change_of_a_function_that_the_loop_calls_is_noticed(call, tmp_path) -> None:
    assert call() == 20
    for kind in ("nbi", "nbc"):
        (file,) = tmp_path.rglob(f"*.{kind}")
        whole = file.read_bytes()
        file.write_bytes(whole[: len(whole) // 2])
        assert call() == 20
        (file,) = tmp_path.rglob(f"*.{kind}")
        assert len(file.read_bytes()) > len(whole) // 2
    (tmp_path / "loops.py").write_text(LOOP.replace("x + 1", "x + 2"))
    assert call() == 30


def test_where_no_folder_can_be_written_the_loop_is_compiled_all_the_same(call, tmp_path, monkeypatch) -> None:
    (tmp_path / "__pycache__").write_text("a file, not a folder")
    monkeypatch.setattr(numba.config, "CACHE_DIR", "/dev/null/x")
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, "/dev/null/x")
    assert call() == 20
    assert not [file for file in tmp_path.rglob("*") if file.suffix in (".nbi", ".nbc")]
