"""Compiled loops kept between runs: found again, never out of date, never broken by a file or by another process."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from gtx import code_cache

HELPERS = """
import numpy as np
from gtx.jit import njit

TABLE = np.array([10, 20])

@njit
def step(x):
    return x + 1
"""
LOOP = """
from gtx.jit import njit
from helpers_of_jit import TABLE, step

@njit(cache=True, nogil=True)
def loop(x):
    return step(x) + TABLE[0]
"""


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., ModuleType]:
    """A module with a compiled loop, read anew as in a new process, whose cache is below `tmp_path / "cache"`."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))

    def read(helpers: str = HELPERS, loop: str = LOOP, helpers_name: str = "helpers_of_jit") -> ModuleType:
        for name, text in ((helpers_name, helpers), ("loop_of_jit", loop)):
            file = tmp_path / f"{name}.py"
            file.write_text(text)
            spec = importlib.util.spec_from_file_location(name, file)
            module = importlib.util.module_from_spec(spec)
            monkeypatch.setitem(__import__("sys").modules, name, module)
            exec(compile(text, str(file), "exec"), module.__dict__)
        return module

    return read


def hits(module: ModuleType) -> int:
    return sum(module.loop.stats.cache_hits.values())


def files(folder: Path) -> list[Path]:
    return sorted((folder / "cache" / "gtx" / "numba").glob("*"))


def test_a_loop_is_compiled_once_for_each_type_of_argument(load: Callable[..., ModuleType], tmp_path: Path) -> None:
    first = load()
    assert first.loop(1) == 12 and hits(first) == 0 and len(files(tmp_path)) == 1
    again = load()
    assert again.loop(1) == 12 and hits(again) == 1
    assert again.loop(1.5) == 12.5 and len(files(tmp_path)) == 2


@pytest.mark.parametrize(("old", "new", "result"), [("x + 1", "x + 2", 13), ("[10, 20]", "[30, 20]", 32)])
def test_a_change_in_what_it_calls_or_reads_in_another_file_is_noticed(
    load: Callable[..., ModuleType], old: str, new: str, result: int
) -> None:
    assert load().loop(1) == 12
    changed = load(HELPERS.replace(old, new))
    assert changed.loop(1) == result and hits(changed) == 0
    back = load()
    assert back.loop(1) == 12 and hits(back) == 1


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
def test_nothing_is_read_from_a_folder_that_others_may_write_to(
    load: Callable[..., ModuleType], tmp_path: Path
) -> None:
    load().loop(1)
    os.chmod(tmp_path / "cache", 0o777)
    code_cache._private.cache_clear()
    again = load()
    assert again.loop(1) == 12 and hits(again) == 0 and len(files(tmp_path)) == 1


def test_loops_that_are_compiled_at_once_for_different_types_each_find_their_own(
    load: Callable[..., ModuleType], tmp_path: Path
) -> None:
    """numba's own index names the first file of every process alike, so one finds the code of another's types."""
    modules = [load() for _ in range(4)]
    inputs = [1, 1.5, np.float32(1.5), True]
    with ThreadPoolExecutor(4) as pool:
        before = list(pool.map(lambda module, x: module.loop(x), modules, inputs))
    again = load()
    assert [again.loop(x) for x in inputs] == before == [12, 12.5, 12.5, 12] and hits(again) == 4
