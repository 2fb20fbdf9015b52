"""A header that says something else than gtx wrote is refused in one line, or describes a model that works."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

import gtx

GOLDEN = Path(__file__).parent / "golden"
ABSENT = object()
VALUES = [ABSENT, None, -1, 0, 10**9, 10**400, "evil\n\x1b[31m", [], {"layers": 10**9}]
# what single arguments may do: allocate for ever, take very long, or fail when the first molecule comes
ARGUMENTS: dict[str, list[Any]] = {
    "layers": [10**6],
    "heads": [3, 10**6],
    "virtual_nodes": [10**6],
    "encodings": [["path"] * 10**4, ["wings"]],
    "steps": [10**6],
    "farthest": [10**6],
    "moments": [3],
    "pair_channels": [0],
    "readout": [["sum"] * 10**4],
    "edges": [3],
    "score": ["dot"],
    "layer": [5],
    "wings": [2],
    "coordinates": [True],
    "atom_sizes": [[10**6] * 10],
    "substructures": [{"atoms": [99]}, {"bonds": [-1]}, {"radius": 10**6}, {"folded": 0}, {"wings": 1}],
}


class File:
    """A golden file in parts, to be put together with another header."""

    def __init__(self, whole: bytes) -> None:
        start = 8 + int.from_bytes(whole[:8], "little")
        self.tensors, self.data = json.loads(whole[8:start]), whole[start:]
        self.header = json.loads(self.tensors["__metadata__"]["gtx"])

    def write(self, path: Path, header: Any) -> Path:
        text = json.dumps(self.tensors | {"__metadata__": {"gtx": json.dumps(header)}}).encode()
        path.write_bytes(len(text).to_bytes(8, "little") + text + self.data)
        return path


def rewritten(path: Path) -> bytes:
    """A file of an older format as it is written now."""
    with TemporaryDirectory() as folder:
        gtx.load(path, device="cpu").save(Path(folder, "new.gtx"))
        return Path(folder, "new.gtx").read_bytes()


FILES = {name: File((GOLDEN / f"{name}.gtx").read_bytes()) for name in ("regression", "sequence")}
FILES |= {
    f"new {name}": File(rewritten(GOLDEN / f"{name}.gtx")) for name in ("regression", "classification", "sequence")
}
SHARED = {"smiles_column", "split", "settings", "metrics", "versions", "format", "featuriser", "interval", "scaler"}
UNREAD = ("split", "settings", "vocabulary", "limit")  # or nothing to a regression
ENTRIES = [("regression", entry) for entry in FILES["regression"].header if entry not in UNREAD]
ENTRIES += [("sequence", entry) for entry in FILES["sequence"].header if entry not in SHARED]

ENTRIES += [(name, "task") for name in FILES if name.startswith("new ")]


def places(node: Any, path: tuple = ()) -> Iterator[tuple]:
    """Where something stands in a header; of what is alike, the first alone."""
    yield path
    inner = list(node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ())
    for key in inner[:1] if isinstance(node, list) or path[:1] in (("metrics",), ("versions",)) else inner:
        yield from places(node[key], (*path, key))


def changed(header: dict[str, Any], path: tuple, value: Any) -> dict[str, Any]:
    header = deepcopy(header)
    node = header
    for key in path[:-1]:
        node = node[key]
    if value is ABSENT:
        del node[path[-1]]
    else:
        node[path[-1]] = value
    return header


def refused_or_works(path: Path) -> bool:
    """Whether a file is refused; if not, its model predicts."""
    try:
        model = gtx.load(path, device="cpu")
    except gtx.InputError as reason:
        assert str(reason).startswith(f"{path} cannot be used: ") and "\n" not in str(reason)
        assert len(str(reason)) < len(str(path)) + 300
        return True
    assert len(model.predict(["CCO", "C1CC"], workers=0)) == 2
    return False


@pytest.mark.parametrize(("name", "entry"), ENTRIES)
def test_any_other_value_is_refused_or_works(name: str, entry: str, tmp_path: Path) -> None:
    file, refused = FILES[name], 0
    for path in places(file.header[entry], (entry,)):
        for value in VALUES:
            refused += refused_or_works(file.write(tmp_path / "bad.gtx", changed(file.header, path, value)))
    assert refused


@pytest.mark.parametrize("argument", ARGUMENTS)
def test_no_argument_of_a_model_is_trusted(argument: str, tmp_path: Path) -> None:
    for name, at in (("regression", ()), ("sequence", ()), ("sequence", ("encoder",))):
        file = FILES[name]
        for value in ARGUMENTS[argument]:
            header = deepcopy(file.header)
            given = header["model"]["arguments"]
            for key in at:
                given = given.setdefault(key, {})
            given[argument] = value
            assert refused_or_works(file.write(tmp_path / "bad.gtx", header))
