"""The arrows between folders point one way, and heavy imports wait until they are needed."""

from __future__ import annotations

import ast
import itertools
import re
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# each room and the rooms it may know
ROOMS = {
    "base": set(),
    "settings": {"base"},
    "graph": {"base"},
    "attention": {"base", "graph"},
    "encodings": {"base", "graph"},
    "nn": {"attention", "encodings", "graph"},
    "kernel": {"base", "graph", "nn"},
    "models": {"attention", "base", "encodings", "graph", "kernel", "nn"},
    "molecules": {"base"},
    "fast": {"base", "molecules"},
    "data": {"base", "graph", "kernel", "molecules"},
    "tasks": {"base", "data", "kernel", "molecules", "settings"},
    "training_data": {"base", "data", "molecules", "tasks"},
    "report": {"base", "data", "kernel", "molecules", "tasks", "training_data"},
    "training": {
        *("base", "data", "kernel", "models", "molecules", "nn", "settings", "tasks", "training_data"),
    },
    "prediction": {"base", "data", "graph", "kernel", "models", "molecules", "tasks"},
    "explain": {"base", "data", "graph", "models", "molecules", "prediction", "tasks"},
    "sequence": {
        "base",
        "data",
        "graph",
        "models",
        "molecules",
        "nn",
        "report",
        "settings",
        "tasks",
        "training_data",
    },
    "select": {"base", "cli", "data", "kernel", "prediction", "report", "tasks", "settings"},
    "export": {"base", "cli", "data", "graph", "kernel", "models", "molecules", "prediction", "tasks", "settings"},
    "serve": {"base", "cli", "data", "explain", "molecules", "prediction", "settings"},
    "workflow": {
        "base",
        "data",
        "kernel",
        "models",
        "molecules",
        "prediction",
        "report",
        "tasks",
        "training",
        "training_data",
    },
    "estimators": {
        "base",
        "data",
        "models",
        "molecules",
        "prediction",
        "tasks",
        "training",
        "training_data",
        "workflow",
    },
    "testing": {"attention", "data", "encodings", "graph", "models", "molecules", "nn", "tasks", "training_data"},
    "cli": {
        "base",
        "data",
        "explain",
        "models",
        "molecules",
        "prediction",
        "report",
        "settings",
        "tasks",
        "training",
        "training_data",
        "workflow",
    },
}
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


@cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


@cache
def imports(file: Path, types: bool = False) -> set[str]:
    """Dotted names a file imports at run time; what stands under `if TYPE_CHECKING` is not run, but `types` counts."""
    tree = parsed(file)
    found = set()
    skipped = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        if not types
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


FILES = sorted((ROOT / "gtx").rglob("*.py"))


def test_a_room_knows_only_the_rooms_below() -> None:
    own_package_names = {"__version__", "load", "InputError"}
    for file in FILES:
        room = file.relative_to(ROOT / "gtx").parts[0].removesuffix(".py")
        if room in ("__init__", "__main__"):
            continue
        known = {name.split(".")[1] for name in imports(file, types=True) if name.startswith("gtx.")}
        assert known - own_package_names <= ROOMS[room] | {room}, file
        libraries = {name.split(".")[0] for name in imports(file)} & LIBRARIES.keys()
        assert not [library for library in libraries if room not in LIBRARIES[library]], file


def module_name(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def definitions(file: Path) -> set[str]:
    """Names that a file binds itself, not by an import."""
    found = set()
    for node in parsed(file).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
    return found


def files_known(folders: list[str], types: bool = False) -> dict[str, set[str]]:
    """Per file the files that it imports, anywhere in it, by dotted names.

    A name that is taken from a package comes from the file of the package that defines it; whoever is outside a package
    also runs its `__init__`.
    """
    files = {module_name(file): file for folder in folders for file in sorted((ROOT / folder).rglob("*.py"))}
    homes: dict[str, set[str]] = {}
    for name, file in files.items():
        if file.stem != "__init__":
            for defined in definitions(file):
                homes.setdefault(f"{name.rpartition('.')[0]}.{defined}", set()).add(name)
    known = {name: set() for name in files}
    for name, file in files.items():
        for imported in imports(file, types):
            package = imported.rpartition(".")[0]
            found = {imported} if imported in files else {package, *homes.get(imported, ())}
            above = itertools.accumulate(imported.split(".")[:-1], "{}.{}".format)
            found |= {one for one in above if not f"{name}.".startswith(f"{one}.")}
            known[name] |= found & set(files) - {name}
    return known


def test_no_circle_of_files() -> None:
    """What is imported within functions counts; what is imported for annotations alone does not."""
    known = files_known(["gtx", "experiments"])
    assert len(list(TopologicalSorter(known).static_order())) == len(known)  # CycleError names a circle


def test_no_circle_of_files_within_a_room_by_annotations_either() -> None:
    known = files_known(["gtx"], types=True)
    for name, others in known.items():
        known[name] = {other for other in others if other.split(".")[1:2] == name.split(".")[1:2]}
    assert len(list(TopologicalSorter(known).static_order())) == len(known)


def test_the_word_of_a_task_stands_in_tasks_and_on_the_command_line_alone() -> None:
    """Elsewhere a task is an object, so that a new one touches nothing else."""
    for file in FILES:
        if file.relative_to(ROOT / "gtx").parts[0] in ("tasks", "settings", "sequence", "cli"):
            continue
        found = re.findall(r"""(["'])(regression|classification|multiclass|sequence)\1""", file.read_text())
        assert not found, file


HEAD = "import sys; from contextlib import suppress"


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
    lines = [f"{step}\nassert not (found := set({absent.split()}) & set(sys.modules)), found" for step, absent in steps]
    done = subprocess.run([sys.executable, "-c", "\n".join([HEAD, *lines])], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
