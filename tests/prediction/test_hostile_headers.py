"""A header that says something else than gtx wrote is refused in one line, or describes a model that works."""

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import gtx
from tests.tables import GOLDEN

ABSENT = object()
VALUES = [ABSENT, -1, "evil\n\x1b[31m"], [None, 10**400, {"layers": 10**9}]
"""At every second place the first, at the others the second."""
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
    "reaction": [True],
    "atom_sizes": [[10**6] * 10],
    "substructures": [{"atoms": [99]}, {"bonds": [-1]}, {"radius": 10**6}, {"folded": 0}, {"wings": 1}],
}


LONE = "\ud800"  # half of a character, which no file and no terminal can hold
LONG = "a" * 10**6


class File:
    """A golden file in parts, to be put together with another header."""

    def __init__(self, whole: bytes) -> None:
        start = 8 + int.from_bytes(whole[:8], "little")
        self.tensors, self.data = json.loads(whole[8:start]), whole[start:]
        self.header = json.loads(self.tensors["__metadata__"]["gtx"])
        del self.header["sha256"]

    def write(self, path: Path, header: Any, text_of: Callable[[Any], str] = json.dumps) -> Path:
        text = json.dumps(self.tensors | {"__metadata__": {"gtx": text_of(header)}}).encode()
        path.write_bytes(len(text).to_bytes(8, "little") + text + self.data)
        return path


FILES = {name: File((GOLDEN / f"{name}.gtx").read_bytes()) for name in ("regression", "classification", "sequence")}
OBSERVED = gtx.load(GOLDEN / "regression.gtx", device="cpu").header.extent
FILES["regression"].header["extent"] = replace(OBSERVED, features={"temperature": (273.0, 373.0)}).to_dict()
SHARED = {"smiles_column", "split", "settings", "metrics", "versions", "format", "featuriser"}
ENTRIES = [("regression", entry) for entry in FILES["regression"].header if entry not in ("split", "settings")]
ENTRIES += [("sequence", entry) for entry in FILES["sequence"].header if entry not in SHARED]
ENTRIES += [("classification", "task")]


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


@pytest.mark.slow
@pytest.mark.parametrize(("name", "entry"), ENTRIES)
def test_any_other_value_is_refused_or_works(name: str, entry: str, tmp_path) -> None:
    file, refused = FILES[name], 0
    for number, path in enumerate(places(file.header[entry], (entry,))):
        for value in VALUES[number % 2]:
            refused += refused_or_works(file.write(tmp_path / "bad.gtx", changed(file.header, path, value)))
    assert refused


@pytest.mark.parametrize("argument", ARGUMENTS)
def test_no_argument_of_a_model_is_trusted(argument: str, tmp_path) -> None:
    for name, at in (("regression", ()), ("sequence", ()), ("sequence", ("encoder",))):
        file = FILES[name]
        for value in ARGUMENTS[argument]:
            header = deepcopy(file.header)
            given = header["model"]["arguments"]
            for key in at:
                given = given.setdefault(key, {})
            given[argument] = value
            assert refused_or_works(file.write(tmp_path / "bad.gtx", header))


def test_texts_that_cannot_be_shown_are_refused_wherever_they_stand(tmp_path) -> None:
    file = File((GOLDEN / "neighbours.gtx").read_bytes())
    (name,) = file.header["task"]["targets"]
    cells = ("training", "values", name)
    texts = [path for entry in file.header for path in places(file.header[entry], (entry,))]
    texts = [path for path in texts if isinstance(value_at(file.header, path), str)] + [(*cells, 0)]
    assert len(texts) > 20
    for i, path in enumerate(texts):
        text = (LONE, LONG)[i % 2]
        assert refused_or_works(file.write(tmp_path / "bad.gtx", changed(file.header, path, text))), path
    for entry in ("split", "settings", "metrics", "versions"):
        for text in (LONE, LONG):
            header = changed(file.header, (entry, text), "x")
            assert refused_or_works(file.write(tmp_path / "bad.gtx", header)), (entry, text[:9])


@pytest.mark.parametrize(
    "entry", ['"features": {"names": [], "blanks": false, "wings": 2}', '"sha256": "", "x": 1e999']
)
def test_an_entry_that_gtx_does_not_write_is_refused_or_ignored(entry: str, tmp_path) -> None:
    file = FILES["regression"]
    header = json.dumps({name: value for name, value in file.header.items() if name != "features"})
    bad = file.write(tmp_path / "bad.gtx", header.replace("{", f"{{{entry}, ", 1), str)
    assert refused_or_works(bad) == ("sha256" in entry)


def test_a_kernel_compares_something(tmp_path) -> None:
    file = File((GOLDEN / "mix.gtx").read_bytes())
    bad = changed(file.header, ("partner", "arguments", "labels", 0), [])
    assert refused_or_works(file.write(tmp_path / "bad.gtx", bad))


def test_molecules_to_compare_with_have_no_more_characters_than_gtx_writes(tmp_path) -> None:
    file = File((GOLDEN / "neighbours.gtx").read_bytes())
    (name,) = file.header["task"]["targets"]
    many = {"smiles": ["C" * 990] * 2000, "rows": list(range(2000)), "values": {name: ["1"] * 2000}, "trained": 2000}
    assert refused_or_works(file.write(tmp_path / "bad.gtx", changed(file.header, ("training",), many)))


def value_at(header: Any, path: tuple) -> Any:
    for key in path:
        header = header[key]
    return header
