"""The arrows between folders point one way, and heavy imports wait until they are needed."""

from __future__ import annotations

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# each room and the rooms it may know
ROOMS = {
    "errors": set(),
    "lazy": set(),
    "schema": {"errors"},
    "threads": set(),
    "gelu": set(),
    "code_cache": set(),
    "jit": {"code_cache"},
    "termination": set(),
    "graph": {"threads"},
    "attention": {"graph", "threads", "code_cache"},
    "encodings": {"graph", "gelu", "threads", "jit"},
    "nn": {"attention", "encodings", "graph", "gelu"},
    "sequence": {"schema", "errors"},
    "models": {"schema", "errors", "nn", "attention", "encodings", "graph", "sequence"},
    "molecules": {"schema", "errors", "jit"},
    "data": {"molecules", "errors", "threads", "jit"},
    "report": {"data", "molecules", "errors"},
    "tasks": {"schema", "report", "sequence", "data", "molecules", "errors"},
    "baselines": {"tasks", "report", "data", "molecules", "errors"},
    "dataset": {"tasks", "data", "molecules", "errors"},
    "training": {"dataset", "tasks", "nn", "data", "errors", "termination"},
    "prediction": {"schema", "tasks", "models", "data", "molecules", "errors"},
    "explain": {"prediction", "tasks", "models", "graph", "data", "molecules", "errors"},
    "workflow": {
        *("baselines", "dataset", "prediction", "training", "tasks", "report", "models", "data", "molecules", "errors")
    },
    "estimators": {"workflow", "prediction", "training", "tasks", "models", "data", "molecules", "errors"},
    "cli": {
        *("workflow", "explain", "dataset", "prediction", "training", "tasks", "report", "models", "data", "molecules"),
        *("errors", "termination"),
    },
}
LIBRARIES = {
    "rdkit": {"molecules"},
    "pytorch_lightning": {"training"},
    "lightning": set(),
    "numba": {"jit"},
}


CIRCLES = {"molecules"}  # rooms that still hold files which know each other


def imports(file: Path, types: bool = False) -> set[str]:
    """Dotted names a file imports at run time; what stands under `if TYPE_CHECKING` is not run, but `types` counts."""
    tree = ast.parse(file.read_text())
    found = set()
    skipped = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING" and not types
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


FILES = sorted((ROOT / "gtx").rglob("*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(ROOT)))
def test_a_room_knows_only_the_rooms_below(file: Path) -> None:
    room = file.relative_to(ROOT / "gtx").parts[0].removesuffix(".py")
    if room in ("__init__", "__main__"):
        return
    known = {name.split(".")[1] for name in imports(file) if name.startswith("gtx.")}
    own_package_names = {"__version__", "load", "InputError", "lazy"}
    assert known - own_package_names <= ROOMS[room] | {room}
    for library, rooms in LIBRARIES.items():
        if any(name.split(".")[0] == library for name in imports(file)):
            assert room in rooms, f"{library} is imported in {room}"


@pytest.mark.parametrize("room", sorted(set(ROOMS) - CIRCLES))
def test_no_files_know_each_other(room: str) -> None:
    files = {
        ".".join(file.relative_to(ROOT).with_suffix("").parts): file
        for file in FILES
        if file.is_relative_to(ROOT / "gtx" / room) and file.stem != "__init__"
    }
    graph = {name: imports(file, types=True) & set(files) - {name} for name, file in files.items()}
    assert len(list(TopologicalSorter(graph).static_order())) == len(files)  # CycleError names a circle


def test_the_word_of_a_task_stands_in_tasks_and_on_the_command_line_alone() -> None:
    """Elsewhere a task is an object, so that a new one touches nothing else."""
    for file in FILES:
        if file.relative_to(ROOT / "gtx").parts[0] in ("tasks", "cli"):
            continue
        texts = {node.value for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Constant)}
        assert not texts & {"regression", "classification", "multiclass", "sequence"}, file


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import gtx", ["torch", "rdkit", "pandas", "numpy"]),
        ("import gtx.molecules", ["torch", "pandas", "sklearn", "numba"]),
        ("import gtx.nn", ["rdkit", "pytorch_lightning"]),
        ("import gtx.models", ["rdkit", "pytorch_lightning"]),
    ],
)
def test_importing_brings_no_more_than_it_needs(statement: str, absent: list[str]) -> None:
    code = f"import sys; {statement}; print(*[m for m in {absent} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
