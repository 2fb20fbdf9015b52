"""The arrows between folders point one way, and heavy imports wait until they are needed."""

import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = {
    ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file
    for file in sorted(ROOT.glob("gtx/**/*.py"))
}
TABLE = (ROOT / "docs" / "architecture.md").read_text().split("\n## Rooms\n")[1].split("\n\n")[1]
ROOMS = [room for row in TABLE.splitlines()[2:] for room in re.findall(r"`(\w+)`", row.split("|")[1])]
"""The rooms in the order of the page, which is the order in which they may import each other."""
LIBRARIES = {
    "rdkit": {"molecules", "fast"},
    "pytorch_lightning": {"training"},
    "lightning": set(),
    "numba": {"base", "encodings", "kernel", "fast"},
    "optuna": {"workflow"},
    "ray": {"prediction"},
    "dask": set(),
    "fastapi": {"serve"},
    "uvicorn": {"serve"},
    "prometheus_client": {"serve"},
    "onnx": {"export"},
    "onnxruntime": {"export"},
}


def room_of(name: str) -> str:
    """The room of a module; empty for `gtx` itself."""
    return "".join(name.split(".")[1:2])


@cache
def imports(file: Path, types: bool) -> tuple[str, ...]:
    """Dotted names that a file imports anywhere; for annotations alone, under `if TYPE_CHECKING`, only with `types`."""

    def below(node: ast.AST) -> Iterator[str]:
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING" and not types:
            return
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif not isinstance(node, ast.expr):
            for inner in ast.iter_child_nodes(node):
                yield from below(inner)

    return tuple(below(ast.parse(file.read_text())))


def test_a_room_knows_only_rooms_in_lower_rows_and_its_libraries() -> None:
    for name, file in FILES.items():
        room = room_of(name)
        if name in ("gtx", "gtx.__main__"):
            continue
        for imported in imports(file, types=True):
            other = room_of(imported) if imported.startswith("gtx.") else ""
            if other in ROOMS and other != room:
                assert ROOMS.index(room) < ROOMS.index(other), f"{name}: {imported}"
        for library in {imported.split(".")[0] for imported in imports(file, types=False)} & LIBRARIES.keys():
            assert room in LIBRARIES[library], f"{name}: {library}"


def test_no_circle_of_files_within_a_room() -> None:
    """Imports within functions and for annotations count."""
    known: dict[str, dict[str, set[str]]] = defaultdict(dict)
    for name, file in FILES.items():
        modules = set()
        for imported in imports(file, types=True):
            module = imported if imported in FILES else imported.rpartition(".")[0]
            modules |= {module} if module in FILES and room_of(module) == room_of(name) else set()
        known[room_of(name)][name] = modules
    for files in known.values():
        assert set(TopologicalSorter(files).static_order()) >= set(files)  # CycleError names a circle


def test_the_word_of_a_task_stands_in_tasks_and_on_the_command_line_alone() -> None:
    """Elsewhere a task is an object, so that a new one touches nothing else."""
    for name, file in FILES.items():
        if room_of(name) not in ("tasks", "settings", "sequence", "cli"):
            assert not re.findall(r"""(["'])(regression|classification|multiclass|sequence)\1""", file.read_text()), (
                name
            )


@pytest.mark.parametrize(
    "steps",
    [
        [
            ("import gtx", "torch rdkit pandas numpy"),
            ("from gtx.cli import main", "torch rdkit pandas numpy"),
            ("with suppress(SystemExit): main(['train', '--help'])", "torch rdkit pandas sklearn matplotlib"),
            ("import gtx.molecules", "torch pandas sklearn numba matplotlib"),
        ],
        [
            ("sys.modules['triton'] = None; import gtx.nn, gtx.models", "rdkit pytorch_lightning"),
            ("import gtx.prediction, gtx.tasks.regression", "pytorch_lightning torchmetrics scipy.stats sklearn"),
        ],
    ],
    ids=["without torch", "with torch, without triton"],
)
def test_importing_brings_no_more_than_it_needs(steps: list[tuple[str, str]]) -> None:
    """One step after the other in one process: each brings less than what those behind it may."""
    lines = [f"{step}\nassert not (more := set({absent.split()}) & set(sys.modules)), more" for step, absent in steps]
    head = "import sys; from contextlib import suppress"
    done = subprocess.run([sys.executable, "-c", "\n".join([head, *lines])], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
