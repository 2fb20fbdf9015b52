"""No circle of files in `experiments`."""

from __future__ import annotations

from graphlib import TopologicalSorter
from pathlib import Path

from tests.test_rooms import imports

ROOT = Path(__file__).parents[2]


def test_no_files_of_experiments_know_each_other() -> None:
    files = {".".join(file.relative_to(ROOT).with_suffix("").parts): file for file in ROOT.glob("experiments/**/*.py")}
    graph = {name: imports(file, types=True) & set(files) - {name} for name, file in files.items()}
    assert len(list(TopologicalSorter(graph).static_order())) == len(files) > 50  # CycleError names a circle
