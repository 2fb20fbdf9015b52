"""Compiled loops kept between runs: made anew where a file is damaged or the source has changed."""

import os
import subprocess
import sys
from collections.abc import Callable

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
CALL = "from loops import loop; print(loop(1))"


@pytest.fixture
def call(tmp_path) -> Callable[..., str]:
    """A function that calls a compiled loop in a process of its own; numba's cache is below `tmp_path / "cache"`."""
    (tmp_path / "loops.py").write_text(LOOP)

    def run(**more: str) -> str:
        paths = os.pathsep.join([str(tmp_path), os.getcwd()])
        env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": paths} | more
        return subprocess.run([sys.executable, "-c", CALL], env=env, check=True, capture_output=True, text=True).stdout

    return run


def test_a_damaged_file_or_a_change_of_a_function_that_the_loop_calls_is_noticed(call, tmp_path) -> None:
    assert call() == "20\n"
    for kind in ("nbi", "nbc"):
        (file,) = tmp_path.rglob(f"*.{kind}")
        whole = file.read_bytes()
        file.write_bytes(whole[: len(whole) // 2])
        assert call() == "20\n"
        (file,) = tmp_path.rglob(f"*.{kind}")
        assert len(file.read_bytes()) > len(whole) // 2
    (tmp_path / "loops.py").write_text(LOOP.replace("x + 1", "x + 2"))
    assert call() == "30\n"


def test_where_no_folder_can_be_written_the_loop_is_compiled_all_the_same(call: Callable[..., str], tmp_path) -> None:
    (tmp_path / "__pycache__").write_text("a file, not a folder")
    nowhere = {name: "/dev/null/x" for name in ("NUMBA_CACHE_DIR", "HOME", "XDG_CACHE_HOME")}
    assert call(**nowhere) == "20\n"
